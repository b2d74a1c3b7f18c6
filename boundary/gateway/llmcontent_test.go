// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

func TestMergeContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		c      frame.LLMContent
		obj    string // the server's own structuredContent
		merged string
		stayed []string
	}{
		{"answer", frame.LLMContent{LLMOrigin: frame.LLMOrigin{Source: "perplexity-sonar", Model: "sonar-pro", Tool: "ask"}, Citations: []string{"https://a.example/", "https://b.example/"}},
			`{}`,
			`{"response":"","untrusted":true,"source":"perplexity-sonar","model":"sonar-pro","citations":["https://a.example/","https://b.example/"]}`, nil},
		{"search", frame.LLMContent{LLMOrigin: frame.LLMOrigin{Source: "perplexity-search", Tool: "search"}, Search: true, Results: []byte(`[{"url":"https://a.example/"}]`)},
			`{"results":"own","n":1e2}`,
			`{"results":"own","n":1e2,"untrusted":true,"source":"perplexity-search","structured_results":[{"url":"https://a.example/"}]}`, []string{"results"}},
		{"own members stay, those of the operator do not", frame.LLMContent{LLMOrigin: frame.LLMOrigin{Source: "a\"b", Model: "m", Tool: "t"}},
			`{"untrusted": false, "source": {"x": 1}, "model":null,"citations":[],"response":"r"}`,
			`{"untrusted": true, "source": "other", "model":"m","citations":[],"response":"r"}`, []string{"response", "citations"}},
		{"untrusted of another type", frame.LLMContent{LLMOrigin: frame.LLMOrigin{Source: "s", Tool: "t"}, Search: true},
			`{"untrusted":"no"}`,
			`{"untrusted":true,"results":"","source":"s","structured_results":[]}`, nil},
	} {
		var doc strictjson.Doc
		var e strictjson.Edits
		if err := doc.Reset([]byte(c.obj), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		stayed := mergeContent(&e, doc.Root(), c.c.Members())
		if d := cmp.Diff(c.merged, string(e.Apply(nil, doc.Root()))); d != "" {
			t.Errorf("%s: merged: %s", c.name, d)
		}
		if d := cmp.Diff(c.stayed, stayed); d != "" {
			t.Errorf("%s: stayed: %s", c.name, d)
		}
	}
}

func TestExtendSchema(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, want string
		search             bool
	}{
		{"answer", `{"type":"object","properties":{"response":{"type":"string","minLength":1}},"additionalProperties":false}`,
			`{"type":"object","properties":{"response":{"type":"string","minLength":1},"untrusted":{"type":"boolean","const":true},` +
				`"source":{"type":"string"},"model":{"type":"string"},"citations":{"type":"array","items":{"type":"string"}}},"additionalProperties":false}`, false},
		{"search", `{"properties":{"untrusted":{"const":false}},"type":"object"}`,
			`{"properties":{"untrusted":{"type":"boolean","const":true},"results":{"type":"string"},"source":{"type":"string"},"structured_results":{"type":"array"}},"type":"object"}`, true},
		{"no object", `{"type":"array"}`, "", false},
		{"no properties", `{"type":"object"}`, "", false},
		{"reference", `{"type":"object","properties":{},"$ref":"#/x"}`, "", false},
		{"union", `{"type":"object","properties":{},"oneOf":[{}]}`, "", false},
		{"boolean", `true`, "", false},
	} {
		var doc strictjson.Doc
		var e strictjson.Edits
		if err := doc.Reset([]byte(c.schema), strictjson.Limits{}); err != nil {
			t.Fatal(err)
		}
		ok := extendSchema(&e, doc.Root(), c.search)
		want := c.want
		if want == "" {
			want = c.schema
		}
		if got := string(e.Apply(nil, doc.Root())); got != want || ok != (c.want != "") {
			t.Errorf("%s: %v %s", c.name, ok, cmp.Diff(want, got))
		}
	}
}
