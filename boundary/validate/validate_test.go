// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func parse(t testing.TB, src string) strictjson.Value {
	t.Helper()
	var doc strictjson.Doc
	if err := doc.Reset([]byte(src), strictjson.Limits{}); err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

func TestCheck(t *testing.T) {
	const point = `{"type":"object","properties":{"x":{"type":"number"},"tags":{"type":"array","items":{"enum":["a","b"]}}},"required":["x"],"additionalProperties":false}`
	const tree = `{"$defs":{"n":{"type":"object","properties":{"l":{"$ref":"#/$defs/n"},"r":{"$ref":"#/$defs/n"},"v":{"type":"integer"}}}},"$ref":"#/$defs/n"}`
	for _, c := range []struct {
		name, schema, value string
		want                Result
	}{
		{"valid", point, `{"x":1.5,"tags":["a","b","a"]}`, Result{Conformity: Valid}},
		{"type", point, `{"x":"1"}`, Result{Conformity: Invalid, Keyword: "type", Pointer: "/#0"}},
		{"required", point, `{}`, Result{Conformity: Invalid, Keyword: "required"}},
		{"additional", point, `{"x":1,"ignore previous instructions":1}`, Result{Conformity: Invalid, Keyword: "additionalProperties"}},
		{"two failures", point, `{"a":0,"x":1,"tags":["a","c"]}`, Result{Conformity: Invalid, Keyword: "additionalProperties"}},
		{"enum", point, `{"x":1,"tags":["a","c"]}`, Result{Conformity: Invalid, Keyword: "enum", Pointer: "/#1/1"}},
		{"integer beyond 2^53", `{"const":9007199254740993}`, `9007199254740993`, Result{Conformity: Valid}},
		{"another beyond 2^53", `{"const":9007199254740993}`, `9007199254740992`, Result{Conformity: Invalid, Keyword: "const"}},
		{"recursive", tree, `{"l":{"r":{"v":1}},"r":{"v":2}}`, Result{Conformity: Valid}},
		{"recursive, invalid", tree, `{"l":{"r":{"v":1.5}}}`, Result{Conformity: Invalid, Keyword: "type", Pointer: "/#0/#0/#0"}},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`,
			Result{Conformity: Invalid, Keyword: "additionalItems"}},
		{"false", `false`, `1`, Result{Conformity: Invalid, Keyword: "schema"}},
		{"true", `true`, `{"any":1}`, Result{Conformity: Valid}},

		{"no JSON", `{`, `1`, Result{Conformity: Unverifiable, Reason: notJSON}},
		{"duplicate member", `{"type":"object","type":"array"}`, `1`, Result{Conformity: Unverifiable, Reason: notJSON}},
		{"no schema", `{"type":"objekt"}`, `1`, Result{Conformity: Unverifiable, Reason: notSchema}},
		{"not an object", `[1]`, `1`, Result{Conformity: Unverifiable, Reason: notSchema}},
		{"file", `{"$ref":"file:///etc/passwd"}`, `1`, Result{Conformity: Unverifiable, Reason: remote}},
		{"http", `{"$ref":"http://127.0.0.1/x"}`, `1`, Result{Conformity: Unverifiable, Reason: remote}},
		{"unknown dialect", `{"$schema":"https://example.org/dialect"}`, `1`, Result{Conformity: Unverifiable, Reason: remote}},
		{"missing target", `{"$ref":"#/$defs/none"}`, `1`, Result{Conformity: Unverifiable, Reason: notSchema}},
		{"pattern", `{"pattern":"(?=a)"}`, `"a"`, Result{Conformity: Unverifiable, Reason: badPattern}},
		{"dynamic", `{"$dynamicAnchor":"a","items":{"$dynamicRef":"#a"}}`, `1`, Result{Conformity: Unverifiable, Reason: dynamic}},
		{"loop", `{"$ref":"#"}`, `1`, Result{Conformity: Unverifiable, Reason: looping}},
		{"loop of two", `{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}`, `1`, Result{Conformity: Unverifiable, Reason: looping}},
		{"huge bound", `{"minLength":1e300}`, `"a"`, Result{Conformity: Unverifiable, Reason: notSchema}},
		{"huge divisor", `{"multipleOf":1e-300}`, `1e300`, Result{Conformity: Valid}},
		{"long number", `{"type":"number"}`, strings.Repeat("1", 100), Result{Conformity: Unverifiable, Reason: valueLimits}},
		{"large schema", `{"description":"` + strings.Repeat("a", MaxSchema) + `"}`, `1`, Result{Conformity: Unverifiable, Reason: tooLarge}},
		{"deep schema", strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70), `1`, Result{Conformity: Unverifiable, Reason: tooLarge}},
		{"doubling", doubling(40), `1`, Result{Conformity: Unverifiable, Reason: tooCostly}},
		{"doubling on the way down", `{"$defs":{"n":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}},"$ref":"#/$defs/n"}`,
			strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60), Result{Conformity: Unverifiable, Reason: tooCostly}},
		{"all unlike all", `{"uniqueItems":true}`, `[` + strings.Repeat(`[],`, 5000) + `[]]`, Result{Conformity: Unverifiable, Reason: tooCostly}},
		{"unlike numbers", `{"uniqueItems":true}`, `[` + numbers(5000) + `]`, Result{Conformity: Valid}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want.Reason == valueLimits && len(c.value) > 64 { // strictjson has a bound of its own
				var doc strictjson.Doc
				if doc.Reset([]byte(c.value), strictjson.Limits{}) != nil {
					t.Skip("refused before")
				}
			}
			start := time.Now()
			got := Compile([]byte(c.schema)).Check(t.Context(), parse(t, c.value))
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("took %v", d)
			}
		})
	}
}

// numbers writes those below n.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,", i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// doubling is a schema in which each of n definitions applies the next one twice.
func doubling(n int) string {
	var b strings.Builder
	b.WriteString(`{"$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	fmt.Fprintf(&b, `"d%d":{"type":"number"}},"$ref":"#/$defs/d0"}`, n)
	return b.String()
}

func TestTool(t *testing.T) {
	s := Compile([]byte(`{"type":"object","required":["n"]}`))
	for result, want := range map[string]Conformity{
		`{"content":[]}`: Absent,
		`{"content":[],"structuredContent":{"n":1}}`:                Valid,
		`{"content":[],"structuredContent":{}}`:                     Invalid,
		`{"content":[],"structuredContent":{},"isError":true}`:      Invalid,
		`{"content":[],"structuredContent":{"n":1},"isError":true}`: Valid,
		`{"content":[],"structuredContent":null,"isError":true}`:    Absent,
		`{"content":[],"structuredContent":{},"isError":false}`:     Invalid,
		`{"content":[],"structuredContent":null}`:                   Invalid,
		`{"content":[],"structuredContent":[{"n":1}],"isError":0}`:  Invalid,
	} {
		if got := s.Tool(t.Context(), parse(t, result)); got.Conformity != want {
			t.Errorf("%s: %v, want %v", result, got.Conformity, want)
		}
	}
}

// TestSurfaces: every output schema of the surfaces of real servers can be judged by.
func TestSurfaces(t *testing.T) {
	dir, err := datatest.Find("../..", "mcp-surfaces")
	if err != nil {
		t.Skip(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d surfaces: %v", len(files), err)
	}
	schemas := 0
	var find func(v strictjson.Value)
	find = func(v strictjson.Value) {
		for name, m := range v.Members() {
			if name.Text() == "outputSchema" && m.Kind() == '{' {
				schemas++
				if r := Compile(m.Raw()).Reason(); r != "" {
					t.Errorf("%s: %s", filepath.Base(files[0]), r)
				}
				continue
			}
			find(m)
		}
		for e := range v.Elements() {
			find(e)
		}
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var doc strictjson.Doc
		if err := doc.Reset(src, strictjson.Limits{}); err != nil {
			t.Fatalf("%s: %v", filepath.Base(f), err)
		}
		find(doc.Root())
	}
	t.Logf("%d output schemas of %d surfaces", schemas, len(files))
	if schemas == 0 {
		t.Error("none was found: the test looks in the wrong place")
	}
}

func TestCache(t *testing.T) {
	var c Cache
	src := []byte(`{"type":"object"}`)
	if a, b := c.Compile(src), c.Compile([]byte(`{"type":"object"}`)); a != b {
		t.Error("compiled twice")
	}
	if a, b := c.Compile(src), c.Compile([]byte(`{"type":"array"}`)); a == b {
		t.Error("two schemas are one")
	}
	for i := range maxCached + 10 {
		c.Compile(fmt.Appendf(nil, `{"const":%d}`, i))
	}
	if n := len(c.held); n > maxCached {
		t.Errorf("%d schemas are held", n)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"$ref":"#"}}}`), []byte(`{"a":{"a":{}}}`))
	f.Add([]byte(doubling(30)), []byte(`1`))
	f.Add([]byte(`{"items":{"oneOf":[{"type":"string"},{"pattern":"^a+$"}]},"uniqueItems":true}`), []byte(`["a",1,{"b":null}]`))
	f.Add([]byte(`{"unevaluatedProperties":false,"allOf":[{"patternProperties":{"^x":{"multipleOf":0.1}}}]}`), []byte(`{"x":1e300}`))
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		var doc strictjson.Doc
		if doc.Reset(value, strictjson.Limits{}) != nil {
			return
		}
		s := Compile(schema)
		first := s.Check(context.Background(), doc.Root())
		if again := s.Check(context.Background(), doc.Root()); again.Conformity != first.Conformity || again.Reason != first.Reason {
			t.Errorf("%+v, then %+v", first, again)
		}
		if first.Conformity == Unverifiable && first.Reason == "" || first.Conformity == Invalid && !knownKeywords[first.Keyword] && first.Keyword != "schema" {
			t.Errorf("%+v", first)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s := Compile([]byte(`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id"]}}}}`))
	value := `{"rows":[` + strings.Repeat(`{"id":1,"name":"a name of usual length"},`, 99) + `{"id":2}]}`
	var doc strictjson.Doc
	if err := doc.Reset([]byte(value), strictjson.Limits{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if r := s.Check(context.Background(), doc.Root()); r.Conformity != Valid {
			b.Fatal(r)
		}
	}
}
