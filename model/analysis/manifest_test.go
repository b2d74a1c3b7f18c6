// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
)

const manifest = `{"version":"ccr-manifest/1","clearance":1,"trust":[{"source":"?/get_*","weight":0.9},{"source":"*","weight":0.1}],
 "segments":{"s1":{"trust":0,"capsule":"k"}},"edges":[{"kind":"derived","from":"s1","to":"s2"}],
 "capsules":[{"id":"k","forbidden_topics":["x y"],"clearance":2,"output_schema":{"type":"object"},"no_external_calls":true,"expires":"2027-01-01T00:00:00Z"}]}`

const twoResults = `{"messages":[{"role":"user","content":"x"},
 {"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"get_page","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}}]},
 {"role":"tool","tool_call_id":"a","content":"one"},{"role":"tool","tool_call_id":"b","content":"two"}]}`

// TestManifest: what a manifest says is what the assembly has.
func TestManifest(t *testing.T) {
	q := question(t, Context{Turn: -1, Manifest: file(t, manifest)}, twoResults)
	a := q.Assembly
	if len(a.Segments) != 2 || a.Segments[0].Trust != 0 || a.Segments[1].Trust != 100 || a.Segments[0].Capsule != "k" || q.clearance != 1 {
		t.Errorf("%+v, clearance %d", a.Segments, q.clearance)
	}
	if len(a.Edges) != 1 || a.Edges[0] != (counterfactual.Edge{Kind: counterfactual.EdgeDerived, From: 0, To: 1}) {
		t.Errorf("%+v", a.Edges)
	}
	if c := a.Capsules[0]; c.Expires != 1798761600 || c.Clearance != 2 || !c.NoExternalCalls || string(c.OutputSchema) != `{"type":"object"}` {
		t.Errorf("%+v", c)
	}
	if plain := question(t, Context{Turn: -1}, twoResults).Assembly; plain.ID() == a.ID() || plain.Segments[1].Trust != 0 {
		t.Errorf("%+v", plain.Segments)
	}
}

// TestManifestRefused: what is wrong with a manifest is said, and nothing of it quoted raw.
func TestManifestRefused(t *testing.T) {
	for _, c := range [][2]string{
		{`{}`, "want version ccr-manifest/1"},
		{`{"version":"ccr-manifest/1","x":1}`, "member"},
		{`{"version":"ccr-manifest/1","trust":[{"source":"a"}]}`, "trust 1: weight: want a number from 0 to 1"},
		{`{"version":"ccr-manifest/1","trust":[{"source":"","weight":1}]}`, "trust 1: source: want"},
		{`{"version":"ccr-manifest/1","segments":{"s1":{"trust":1.5}}}`, "trust: want a number from 0 to 1"},
		{`{"version":"ccr-manifest/1","segments":{"s01":{}}}`, `"s01": the context has no such segment`},
		{`{"version":"ccr-manifest/1","segments":{"s\u202e1":{}}}`, `"s\u202e1": the context has no such segment`},
		{`{"version":"ccr-manifest/1","segments":{"s3":{}}}`, "no such segment"},
		{`{"version":"ccr-manifest/1","segments":{"s1":{"capsule":"k"}}}`, "no such capsule"},
		{`{"version":"ccr-manifest/1","edges":[{"kind":"derived","from":"s1","to":"s9"}]}`, "no such segment"},
		{`{"version":"ccr-manifest/1","edges":[{"kind":"stolen","from":"s1","to":"s2"}]}`, "an edge of no kind"},
		{`{"version":"ccr-manifest/1","edges":[{"kind":"derived","from":"s1","to":"s2"},{"kind":"copied","from":"s2","to":"s1"}]}`, "derives from itself"},
		{`{"version":"ccr-manifest/1","capsules":[{"id":"a b"}]}`, "capsule 1: id: want"},
		{`{"version":"ccr-manifest/1","capsules":[{"id":"a"},{"id":"a"}]}`, "capsule 2: id: an earlier one has it"},
		{`{"version":"ccr-manifest/1","capsules":[{"id":"a","expires":"tomorrow"}]}`, "expires: want a time of RFC 3339"},
		{`{"version":"ccr-manifest/1","capsules":[{"id":"a","clearance":-1}]}`, "clearance: want 0 or more"},
		{`{"version":"ccr-manifest/1","capsules":[{"id":"a","forbidden_topics":[" "]}]}`, "forbidden_topics: want words"},
	} {
		of := Context{Turn: -1, Manifest: file(t, c[0])}
		if _, err := of.Read(strings.NewReader(twoResults), "-", ""); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %s", c[0], err, c[1])
		}
	}
}

// FuzzManifest reads bytes as a manifest: one that is read applies to a context or says why it
// does not, and what it makes can be planned.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(manifest))
	f.Add([]byte(`{"version":"ccr-manifest/1","edges":[{"kind":"copied","from":"s2","to":"s1"}]}`))
	f.Add([]byte(`{"version":"ccr-manifest/1","trust":[{"source":"**","weight":1e-9}],"segments":{"s2":{"trust":1}}}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := ParseManifest(src)
		if err != nil {
			return
		}
		a, err := counterfactual.Parse(format.Chat, []byte(twoResults), counterfactual.ParseOptions{Trust: m.trust})
		if err != nil {
			t.Fatal(err)
		}
		b, err := m.apply(a)
		if err != nil {
			return
		}
		for _, s := range b.Segments {
			if s.Trust < 0 || s.Trust > 1000 {
				t.Fatalf("%+v", s)
			}
		}
		b.Breaches(&counterfactual.Answer{Text: "x y"}, counterfactual.Reader{}, nil)
		if _, err := counterfactual.NewPlan(b.Problem([]counterfactual.Proposal{{Tool: "x"}}, 0)); err != nil {
			t.Fatal(err)
		}
	})
}
