// SPDX-License-Identifier: Apache-2.0

package mcpmsg

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func value(t testing.TB, s string) strictjson.Value {
	var doc strictjson.Doc
	if err := doc.Reset([]byte(s), strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

func TestParamHeaders(t *testing.T) {
	tests := []struct {
		name, schema string
		want         []ParamHeader
	}{
		{"none", `{"type":"object"}`, nil},
		{"no object", `true`, nil},
		{"one", `{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`,
			[]ParamHeader{{[]string{"region"}, "Region"}}},
		{"nested", `{"properties":{"a":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}},"c":{"type":"boolean","x-mcp-header":"C"}}}`,
			[]ParamHeader{{[]string{"a", "b"}, "B"}, {[]string{"c"}, "C"}}},
		{"number is no primitive", `{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil},
		{"same name twice", `{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"x"}}}`, nil},
		{"no token", `{"properties":{"a":{"type":"string","x-mcp-header":"X\r\nEvil: 1"}}}`, nil},
		{"empty", `{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil},
		{"no string", `{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, nil},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ParamHeaders(value(t, c.schema))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRouteOf(t *testing.T) {
	headers := []ParamHeader{{[]string{"s"}, "S"}, {[]string{"o", "i"}, "I"}, {[]string{"b"}, "B"}}
	tests := []struct {
		name, method, params string
		want                 wire.Route
	}{
		{"legacy", "tools/list", `{}`, wire.Route{}},
		{"version", "tools/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, wire.Route{Version: "2026-07-28"}},
		{"prompt", "prompts/get", `{"name":"p","arguments":{"s":"x"}}`, wire.Route{Name: "p"}},
		{"resource", "resources/read", `{"uri":"file:///x","name":"n"}`, wire.Route{Name: "file:///x"}},
		{"call", "tools/call", `{"name":"t","arguments":{"s":"x y","o":{"i":1e2},"b":true}}`,
			wire.Route{Name: "t", Params: map[string]string{"S": "x y", "I": "100", "B": "true"}}},
		{"absent, null and containers", "tools/call", `{"name":"t","arguments":{"s":null,"o":[],"b":{}}}`, wire.Route{Name: "t"}},
		{"no safe integers", "tools/call", `{"name":"t","arguments":{"s":1.5,"o":{"i":9007199254740992},"b":-9007199254740991}}`,
			wire.Route{Name: "t", Params: map[string]string{"B": "-9007199254740991"}}},
		{"no arguments", "tools/call", `{"name":"t"}`, wire.Route{Name: "t"}},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			got := RouteOf(c.method, value(t, c.params), headers)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(wire.ID{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := RouteOf("tools/call", strictjson.Value{}, headers); got.Name != "" || got.Params != nil {
		t.Errorf("absent params: %+v", got)
	}
}

// TestLookupIsTotal: what nobody named is Data.
func TestLookupIsTotal(t *testing.T) {
	for _, p := range []Part{Params, Result, Error} {
		row := Lookup(p, "no/such")
		if row == nil || row.Shape == nil || row.Shape.Rest != Data {
			t.Errorf("%v: %+v", p, row)
		}
	}
	seen := map[string]bool{}
	for _, r := range Rows() {
		key := r.Method + " " + r.Part.String()
		if seen[key] {
			t.Errorf("%s: two rows", key)
		}
		seen[key] = true
		if Lookup(r.Part, r.Method).Shape != r.Shape {
			t.Errorf("%s: not found", key)
		}
	}
}

// TestOpaqueIsRare: nothing but what a client echoes unseen may be opaque.
func TestOpaqueIsRare(t *testing.T) {
	seen := map[*Shape]bool{}
	var walk func(s *Shape)
	walk = func(s *Shape) {
		if seen[s] {
			return
		}
		seen[s] = true
		if s.Rest != Data && s.Rest != Schema {
			t.Errorf("%s: the rest is %v", s.name, s.Rest)
		}
		for _, f := range s.Fields {
			if f.Treat == Opaque && f.Shape == nil && opaquePositions[f.Name] == "" {
				t.Errorf("%s.%s is opaque", s.name, f.Name)
			}
			if f.Shape != nil {
				walk(f.Shape)
			}
		}
	}
	for _, r := range Rows() {
		walk(r.Shape)
	}
}

func FuzzRouteOf(f *testing.F) {
	f.Add("tools/call", `{"name":"t","arguments":{"a":1}}`, `{"properties":{"a":{"type":"integer","x-mcp-header":"A"}}}`)
	f.Fuzz(func(t *testing.T, method, params, schema string) {
		var p, s strictjson.Doc
		if p.Reset([]byte(params), strictjson.Limits{}) != nil || s.Reset([]byte(schema), strictjson.Limits{}) != nil {
			return
		}
		for name := range RouteOf(method, p.Root(), ParamHeaders(s.Root())).Params {
			if !isToken(name) {
				t.Errorf("header name %q", name)
			}
		}
	})
}

func TestAppendListParams(t *testing.T) {
	for _, tt := range []struct{ cursor, meta, want string }{
		{"", "", `{}`},
		{"a\"b", "", `{"cursor":"a\"b"}`},
		{"", `{"k":1}`, `{"_meta":{"k":1}}`},
		{"c", `{}`, `{"cursor":"c","_meta":{}}`},
	} {
		var meta []byte
		if tt.meta != "" {
			meta = []byte(tt.meta)
		}
		if got := string(AppendListParams(nil, tt.cursor, meta)); got != tt.want {
			t.Errorf("%q, %q: %s, want %s", tt.cursor, tt.meta, got, tt.want)
		}
	}
}
