// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// TestTableCoversSchemas derives every position at which a server can put a
// string, in every message of every revision, from the published schemas, and
// demands that the table names it: directly, or inside a part that is treated
// at every depth.
func TestTableCoversSchemas(t *testing.T) {
	for _, rev := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(rev, func(t *testing.T) {
			w := &schemaWalk{t: t, defs: loadDefs(t, rev), seen: map[string]bool{}}
			w.messages()
			if w.positions < 100 {
				t.Errorf("%d positions; the walk is broken", w.positions)
			}
			t.Logf("%d string positions in %d messages", w.positions, w.roots)
		})
	}
}

func loadDefs(t *testing.T, rev string) map[string]any {
	path, err := datatest.Find("../..", "mcp-schema/"+rev+".json")
	if err != nil {
		t.Skip(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"$defs", "definitions"} {
		if defs, ok := doc[key].(map[string]any); ok {
			return defs
		}
	}
	t.Fatal("schema without definitions")
	return nil
}

// opaquePositions are those that may pass unseen, and why.
var opaquePositions = map[string]string{
	"requestState": "a client echoes it byte for byte and shows it to nobody",
}

// ownPositions are not third-party text: the gateway sets them, or checks them
// when it decodes the envelope.
var ownPositions = []string{"jsonrpc", "id", "method"}

type schemaWalk struct {
	t         *testing.T
	defs      map[string]any
	seen      map[string]bool
	positions int
	roots     int
}

type object = map[string]any

func (w *schemaWalk) messages() {
	// Results: of whatever a client may ask.
	for _, req := range w.union("ClientRequest") {
		method := w.method(req)
		res := strings.TrimSuffix(req, "Request") + "Result"
		if _, ok := w.defs[res]; !ok {
			res = "Result"
		}
		w.root(Lookup(Result, method), object{"$ref": "/" + res})
		for _, also := range []string{"InputRequiredResult", "CreateTaskResult"} {
			if _, ok := w.defs[also]; ok {
				w.root(Lookup(Result, method), object{"$ref": "/" + also})
			}
		}
		w.errors(method)
	}
	// Notifications and requests of servers.
	servers := append(w.union("ServerNotification"), w.union("ServerRequest")...)
	for _, also := range []string{"CreateMessageRequest", "ElicitRequest", "ListRootsRequest"} {
		if _, ok := w.defs[also]; ok && !slices.Contains(servers, also) {
			servers = append(servers, also)
		}
	}
	for _, msg := range servers {
		props, _ := w.resolve(object{"$ref": "/" + msg})["properties"].(object)
		if p, ok := props["params"].(object); ok {
			w.root(Lookup(Params, w.method(msg)), p)
		}
	}
}

func (w *schemaWalk) errors(method string) {
	for name, def := range w.defs {
		props, _ := def.(object)["properties"].(object)
		if e, ok := props["error"].(object); ok && strings.Contains(name, "Error") {
			w.root(Lookup(Error, method), e)
		}
	}
}

func (w *schemaWalk) root(row *Row, s object) {
	w.roots++
	clear(w.seen)
	w.object(fmt.Sprintf("%s %s", row.Method, row.Part), row.Shape, s)
}

func (w *schemaWalk) union(name string) (names []string) {
	def, ok := w.defs[name].(object)
	if !ok {
		return nil
	}
	alts, _ := def["anyOf"].([]any)
	for _, a := range append(alts, def) {
		if ref, ok := a.(object)["$ref"].(string); ok {
			names = append(names, ref[strings.LastIndex(ref, "/")+1:])
		}
	}
	return names
}

func (w *schemaWalk) method(msg string) string {
	props := w.resolve(object{"$ref": "/" + msg})["properties"].(object)
	return props["method"].(object)["const"].(string)
}

func (w *schemaWalk) resolve(s object) object {
	for {
		ref, ok := s["$ref"].(string)
		if !ok {
			return s
		}
		s = w.defs[ref[strings.LastIndex(ref, "/")+1:]].(object)
	}
}

// object walks the members of s beside the fields of shape.
func (w *schemaWalk) object(path string, sh *Shape, s object) {
	s = w.resolve(s)
	key := fmt.Sprintf("%p %p", sh, s)
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	for _, alt := range alternatives(s) {
		w.object(path, sh, alt)
	}
	props, _ := s["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		sub, _ := props[name].(object)
		at := path + "." + name
		f := sh.Field([]byte(name))
		if f == nil {
			if w.holdsStrings(sub, nil) && !slices.Contains(ownPositions, name) && sh.Rest == Data {
				w.t.Errorf("%s: shape %s does not name it", at, sh.name)
			}
			w.positions++
			continue
		}
		w.field(at, f, sub)
	}
	if extra, ok := s["additionalProperties"].(object); ok && len(extra) > 0 && len(props) == 0 && w.holdsStrings(extra, nil) {
		w.t.Errorf("%s.*: shape %s is no map", path, sh.name)
	}
}

func (w *schemaWalk) field(at string, f *Field, s object) {
	s = w.resolve(s)
	switch {
	case s["type"] == "array" && (f.Arity == List || f.Arity == OneOrMany):
		if items, ok := s["items"].(object); ok {
			w.value(at+"[]", f, items)
		}
	case f.Arity == Map:
		w.value(at+".*", f, s["additionalProperties"].(object))
	case f.Arity == OneOrMany:
		alts := alternatives(s)
		for _, alt := range alts {
			w.field(at, f, alt)
		}
		if len(alts) == 0 {
			w.value(at, f, s)
		}
	case f.Arity == List:
		w.t.Errorf("%s: table says list, schema does not", at)
	default:
		w.value(at, f, s)
	}
}

func (w *schemaWalk) value(at string, f *Field, s object) {
	if !w.holdsStrings(s, nil) {
		return
	}
	w.positions++
	if f.Shape != nil {
		w.object(at, f.Shape, s)
		return
	}
	switch f.Treat {
	case Opaque:
		if opaquePositions[f.Name] == "" {
			w.t.Errorf("%s: opaque, and no reason is given", at)
		}
	case Data, Schema, Meta: // at every depth
	default:
		if w.holdsObjects(s) {
			w.t.Errorf("%s: %v holds objects", at, f.Treat)
		}
	}
}

func alternatives(s object) (alts []object) {
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		list, _ := s[key].([]any)
		for _, a := range list {
			alts = append(alts, a.(object))
		}
	}
	return alts
}

// holdsStrings reports whether a value of s can hold a string. A schema that
// says nothing can.
func (w *schemaWalk) holdsStrings(s object, visiting []string) bool {
	s = w.resolve(s)
	key := fmt.Sprintf("%p", s)
	if slices.Contains(visiting, key) {
		return false
	}
	visiting = append(visiting, key)
	alts := alternatives(s)
	for _, a := range alts {
		if w.holdsStrings(a, visiting) {
			return true
		}
	}
	if len(alts) > 0 {
		return false
	}
	if c, ok := s["const"]; ok {
		_, text := c.(string)
		return text
	}
	types, ok := s["type"].([]any)
	if !ok {
		if s["type"] == nil {
			return true
		}
		types = []any{s["type"]}
	}
	for _, t := range types {
		switch t {
		case "string":
			return true
		case "array":
			items, ok := s["items"].(object)
			if !ok || w.holdsStrings(items, visiting) {
				return true
			}
		case "object":
			props, _ := s["properties"].(object)
			for _, p := range props {
				if w.holdsStrings(p.(object), visiting) {
					return true
				}
			}
			if len(props) == 0 || s["additionalProperties"] != nil {
				return true
			}
		}
	}
	return false
}

func (w *schemaWalk) holdsObjects(s object) bool {
	s = w.resolve(s)
	return s["type"] == "object" || slices.ContainsFunc(alternatives(s), w.holdsObjects)
}
