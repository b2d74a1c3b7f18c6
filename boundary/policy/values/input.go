// SPDX-License-Identifier: Apache-2.0

package values

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// The classes of an origin, the one that says the least last.
const (
	classUser     = "user"     // the user's or the operator's words hold the value
	classFree     = "free"     // free text in which no address, account or amount stands
	classData     = "data"     // text that was read holds it
	classComposed = "composed" // text that was read holds only the host of this URL
	classNowhere  = "nowhere"  // no text holds it
)

var classes = []string{classUser, classFree, classData, classComposed, classNowhere}

func classOf(o *counterfactual.Origin) string {
	switch {
	case o.Trusted:
		return classUser
	case o.Composed:
		return classComposed
	case o.Segments != "":
		return classData
	}
	return classNowhere
}

// input is what conditions may name. args is nil if the arguments cannot be read.
func input(a *counterfactual.Assembly, c counterfactual.Call, origins []counterfactual.Origin) map[string]any {
	in := map[string]any{"tool": c.Name, "args": nil}
	var doc strictjson.Doc
	src := c.Arguments
	if len(strings.TrimSpace(string(src))) == 0 {
		src = []byte("{}")
	}
	if origins == nil || len(src) > maxBytes || doc.Reset(src, strictjson.Limits{Depth: 32, Values: 1 << 14}) != nil || doc.Root().Kind() != '{' {
		return in
	}
	class, form, sources := map[string]string{}, map[string]string{}, map[string][]string{}
	for i := range origins {
		o := &origins[i]
		is := classOf(o)
		for path := o.Path(); ; {
			if before, ok := class[path]; !ok || slices.Index(classes, before) < slices.Index(classes, is) {
				class[path] = is
			}
			if form[path] == "" {
				form[path] = string(o.Form)
			}
			for k := range o.Segments.Places() {
				if from := a.Segments[k].Source.Label(); !slices.Contains(sources[path], from) {
					sources[path] = append(sources[path], from)
				}
			}
			cut := strings.LastIndexByte(path, '.')
			if cut < 0 {
				break
			}
			path = path[:cut] // an object has the class of its worst member
		}
	}
	for name, v := range doc.Root().Members() {
		if path := name.Text(); class[path] == "" && v.Kind() != 'n' {
			class[path], form[path] = classFree, string(counterfactual.FormText)
		}
	}
	for path := range class {
		if sources[path] == nil {
			sources[path] = []string{}
		}
	}
	in["args"], in["origin"], in["form"], in["sources"] = plain(doc.Root()), class, form, sources
	return in
}

// plain is a JSON value as CEL takes it.
func plain(v strictjson.Value) any {
	switch v.Kind() {
	case '{':
		out := map[string]any{}
		for name, x := range v.Members() {
			out[name.Text()] = plain(x)
		}
		return out
	case '[':
		out := []any{}
		for x := range v.Elements() {
			out = append(out, plain(x))
		}
		return out
	case '"':
		return v.Text()
	case 't', 'f':
		b, _ := v.Bool()
		return b
	case 'n':
		return nil
	}
	if n, ok := v.Int64(); ok {
		return n
	}
	if f, err := strconv.ParseFloat(string(v.Raw()), 64); err == nil {
		return f
	}
	return string(v.Raw()) // no comparison with a number holds: the condition fails
}
