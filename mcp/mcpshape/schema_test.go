// SPDX-License-Identifier: Apache-2.0

package mcpshape

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type object = map[string]any

// published are the definitions of a published schema, with the named differences
// taken out, and a compiled schema for each type that is judged.
type published struct {
	defs object
	doc  object
	comp map[string]*jsonschema.Schema
}

func loadPublished(t testing.TB, revision string) *published {
	path, err := datatest.Find("../..", "mcp-schema/"+revision+".json")
	if err != nil {
		t.Skip(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &published{comp: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(b, &p.doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"$defs", "definitions"} {
		if defs, ok := p.doc[key].(object); ok {
			p.defs = defs
		}
	}
	p.doc["$defs"] = p.defs
	for _, name := range []string{"JSONValue"} {
		if _, ok := p.defs[name]; ok {
			p.defs[name] = object{}
		}
	}
	loosen(p.doc)
	return p
}

// loosen takes out what the table judges otherwise than the published schemas:
//
//   - format is an annotation (JSON Schema 2020-12): servers give any string as a URI;
//   - JSONValue: its published form forgets null and fractions, which JSON has;
//   - the members of a requested form are any objects: what a client can show is its own affair;
//   - a progress token inside _meta is between the two sides.
func loosen(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			loosen(e)
		}
	case object:
		if _, text := v["format"].(string); text {
			delete(v, "format")
		}
		props, _ := v["properties"].(object)
		delete(props, "progressToken")
		if form, ok := props["requestedSchema"].(object); ok && props["message"] != nil {
			if inner, ok := form["properties"].(object); ok {
				inner["properties"] = object{"type": "object", "additionalProperties": object{"type": "object"}}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			loosen(v[name])
		}
	}
}

// ref is the definition of one of our types; nil if the revision has none.
func (p *published) ref(name string) object {
	switch name {
	case "TaskResult":
		name = "GetTaskResult"
	case "ElicitRequestParams", "CreateMessageRequestParams":
		if _, ok := p.defs[name]; ok {
			break
		}
		req, ok := p.defs[strings.TrimSuffix(name, "Params")].(object)
		if !ok {
			return nil
		}
		return req["properties"].(object)["params"].(object)
	}
	if _, ok := p.defs[name]; !ok {
		return nil
	}
	return object{"$ref": "#/$defs/" + name}
}

func (p *published) schema(t testing.TB, name string) *jsonschema.Schema {
	if s := p.comp[name]; s != nil {
		return s
	}
	doc := maps.Clone(p.doc)
	delete(doc, "definitions")
	delete(doc, "$schema")
	doc["allOf"] = []any{p.ref(name)}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte("#/definitions/"), []byte("#/$defs/"))
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	url := "schema:///" + name
	if err := c.AddResource(url, parsed); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(url)
	if err != nil {
		t.Fatal(err)
	}
	p.comp[name] = s
	return s
}

// roots are the types of whole messages.
var roots = []string{
	"InitializeResult", "DiscoverResult", "ListToolsResult", "ListPromptsResult", "ListResourcesResult",
	"ListResourceTemplatesResult", "ListTasksResult", "CallToolResult", "ReadResourceResult", "GetPromptResult",
	"CompleteResult", "CreateTaskResult", "TaskResult", "InputRequiredResult", "ElicitRequestParams", "CreateMessageRequestParams",
}

// TestTableAgainstSchemas draws valid values from the published schemas, changes them at
// random, and demands the verdict of the published schema for each; and that what is
// repaired or left out leaves a value that the published schema allows.
func TestTableAgainstSchemas(t *testing.T) {
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			p := loadPublished(t, revision)
			ours := tables[revision]()
			for _, root := range roots {
				if p.ref(root) == nil {
					continue
				}
				if ours.types[root] == nil {
					t.Errorf("the table lacks %s", root)
					continue
				}
				valid, invalid := 0, 0
				for seed := range 1500 {
					g := &generator{p: p, r: rand.New(rand.NewPCG(uint64(seed), 4))}
					value := g.value(p.ref(root), 0)
					for range g.r.IntN(3) {
						value = g.change(value)
					}
					if p.agrees(t, ours, root, value) {
						valid++
					} else {
						invalid++
					}
					if t.Failed() {
						return
					}
				}
				if valid < 100 || invalid < 100 {
					t.Errorf("%s: %d valid, %d invalid: the generator is one-sided", root, valid, invalid)
				}
			}
		})
	}
}

func (p *published) agrees(t *testing.T, ours *table, root string, value any) bool {
	src, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var doc strictjson.Doc
	if err := doc.Reset(src, strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	r := ours.check(root, doc.Root())
	theirs := p.schema(t, root).Validate(reread(t, src))
	if r.Clean() != (theirs == nil) {
		t.Errorf("%s %s\nours:   %+v\ntheirs: %v", root, src, r, theirs)
		return false
	}
	if (r.Fault == Fault{}) && !r.Clean() {
		var e strictjson.Edits
		r.Mend(&e)
		mended := e.Apply(nil, doc.Root())
		if err := p.schema(t, root).Validate(reread(t, mended)); err != nil {
			t.Errorf("%s %s\nmended: %s\n%v", root, src, mended, err)
		}
	}
	return theirs == nil
}

func reread(t *testing.T, src []byte) any {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// generator draws values of a schema.
type generator struct {
	p *published
	r *rand.Rand
}

func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func (g *generator) value(s object, depth int) any {
	if ref, ok := s["$ref"].(string); ok {
		return g.value(g.p.defs[ref[strings.LastIndex(ref, "/")+1:]].(object), depth)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e, ok := s["enum"].([]any); ok {
		return e[g.r.IntN(len(e))]
	}
	if alts, ok := s["anyOf"].([]any); ok {
		return g.value(alts[g.r.IntN(len(alts))].(object), depth)
	}
	if all, ok := s["allOf"].([]any); ok {
		out := object{}
		for _, part := range all {
			maps.Copy(out, g.value(part.(object), depth).(object))
		}
		return out
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok {
		kind = kinds[g.r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "string":
		return []string{"", "a", "text", "image", "1"}[g.r.IntN(5)]
	case "boolean":
		return g.one(2)
	case "integer":
		return []json.Number{"0", "1", "7", "1.0", "1e2", "120e-1"}[g.r.IntN(6)]
	case "number":
		return []json.Number{"0", "1", "0.5", "1e0", "0.25"}[g.r.IntN(5)]
	case "null":
		return nil
	case "array":
		list := []any{}
		for range g.r.IntN(3) {
			list = append(list, g.value(s["items"].(object), depth+1))
		}
		return list
	case "object":
		return g.object(s, depth)
	}
	return g.anything()
}

func (g *generator) object(s object, depth int) any {
	out := object{}
	props, _ := s["properties"].(object)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if slices.Contains(required, any(name)) || depth < 6 && g.one(2) {
			out[name] = g.value(props[name].(object), depth+1)
		}
	}
	if extra, ok := s["additionalProperties"].(object); ok && g.one(2) {
		out["more"] = g.value(extra, depth+1)
	}
	if g.one(8) && s["additionalProperties"] == nil {
		out["unknown"] = g.anything()
	}
	return out
}

func (g *generator) anything() any {
	return []any{nil, true, "x", "text", json.Number("3"), json.Number("-0.5"), []any{}, object{}, object{"type": "text"}, []any{"a"}}[g.r.IntN(10)]
}

// change puts something else into one place of v, or takes it away.
func (g *generator) change(v any) any {
	switch v := v.(type) {
	case object:
		names := slices.Sorted(maps.Keys(v))
		if len(names) == 0 || g.one(12) {
			return g.anything()
		}
		name := names[g.r.IntN(len(names))]
		switch g.r.IntN(6) {
		case 0:
			delete(v, name)
		case 1:
			v[name] = g.anything()
		default:
			v[name] = g.change(v[name])
		}
		return v
	case []any:
		if len(v) == 0 || g.one(8) {
			return g.anything()
		}
		i := g.r.IntN(len(v))
		v[i] = g.change(v[i])
		return v
	}
	return g.anything()
}
