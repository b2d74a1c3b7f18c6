// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

func TestClassified(t *testing.T) {
	flagged := []classify.Judgement{{}, {Score: classify.Score{P: 0.97, Flagged: true, Code: "word"}}}
	for _, tt := range []struct {
		name    string
		c       gateway.Classified
		verdict string
		kind    trust.Kind // what it does to a score
	}{
		{"enforced", gateway.Classified{Assessment: classify.Assessment{Segments: flagged}}, standing.Injection, ""},
		{"in shadow mode it does not act", gateway.Classified{Assessment: classify.Assessment{Mode: policy.Shadow, Segments: flagged}}, "suspected", ""},
		{"clean", gateway.Classified{Assessment: classify.Assessment{Segments: []classify.Judgement{{}}}}, "benign", ""},
		{"failed", gateway.Classified{Assessment: classify.Assessment{Reason: classify.Timeout}}, "not-judged", ""},
		{"narrow", gateway.Classified{Assessment: classify.Assessment{Reason: classify.Narrow}}, "skipped", ""},
		{"dropped", gateway.Classified{Dropped: true, Assessment: classify.Assessment{Reason: classify.OverBudget}}, "dropped", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.c
			c.Server, c.Tool, c.Time, c.Of, c.Input = "web", "fetch", time.Unix(1000, 0), gateway.ID{1}, [32]byte{2}
			c.Name, c.Version, c.P, c.Code = "shields", "v-1", 0.97, "word"
			e := classified(&c)
			if e.Verdict != tt.verdict || e.Rule != "classifier:shields" || e.Of != (ledger.ID{1}) || e.Kind != ledger.Classified {
				t.Errorf("%+v", e)
			}
			if got, counts := standing.Of(e); counts != (tt.kind != "") || got.Kind != tt.kind {
				t.Errorf("it counts as %q", got.Kind)
			}
			e.ID = ledger.ID{9}
			sealed, err := e.Seal(ledger.Salt{1})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{`"score":970000`, "classifier:shields", "v-1"} {
				if !strings.Contains(string(sealed.Bytes()), want) {
					t.Errorf("the record lacks %s: %s", want, sealed.Bytes())
				}
			}
		})
	}
}

// TestJoin: what a classifier in shadow mode found nothing in, its own record says so if
// it waits; any other verdict has a record of its own.
func TestJoin(t *testing.T) {
	clean := gateway.Classified{Of: gateway.ID{1}, Server: "files", Tool: "read", Input: [32]byte{1}, Assessment: classify.Assessment{
		Name: "local", Version: "linear-1", Mode: policy.Shadow, P: 0.25, Asked: 2, Cached: 1, Latency: 7 * time.Microsecond, Segments: []classify.Judgement{{}}}}
	for name, tt := range map[string]struct {
		change func(c *gateway.Classified)
		joins  bool
	}{
		"clean":                      {func(*gateway.Classified) {}, true},
		"flagged":                    {func(c *gateway.Classified) { c.Segments = []classify.Judgement{{Score: classify.Score{Flagged: true}}} }, false},
		"enforced":                   {func(c *gateway.Classified) { c.Mode = policy.Enforce }, false},
		"not judged":                 {func(c *gateway.Classified) { c.Reason = classify.Timeout }, false},
		"dropped":                    {func(c *gateway.Classified) { c.Dropped = true }, false},
		"about another":              {func(c *gateway.Classified) { c.Of = gateway.ID{2} }, false},
		"of other bytes":             {func(c *gateway.Classified) { c.Input = [32]byte{9} }, false},
		"a name that is no label":    {func(c *gateway.Classified) { c.Name = "my own" }, false},
		"a name that fills a label":  {func(c *gateway.Classified) { c.Name = strings.Repeat("n", 110) }, false},
		"a version that is no label": {func(c *gateway.Classified) { c.Version = "" }, false},
	} {
		m := &memory{}
		r := New(Options{Store: m, BestEffort: true, gather: time.Minute})
		if err := r.Record(decision(1)); err != nil {
			t.Fatal(err)
		}
		c := clean
		tt.change(&c)
		r.Classified(c)
		r.Close(context.Background())
		st := m.statements(t)
		if tt.joins != (len(st) == 1) || len(st) > 2 || len(st) == 2 && st[1].Kind != ledger.Classified {
			t.Errorf("%s: %d records", name, len(st))
		}
		want := `"numbers":{"classifier:local:asked":2,"classifier:local:cached":1,"classifier:local:microseconds":7,"classifier:local:score":250000}`
		if said := string(st[0].Bytes); strings.Contains(said, want) != tt.joins || strings.Contains(said, `"classifier:local":"linear-1"`) != tt.joins {
			t.Errorf("%s: %s", name, said)
		}
		if e, counts := standing.Of(&st[0].Event); counts { // as without it
			t.Errorf("%s: it counts as %q", name, e.Kind)
		}
		if len(r.open) > 0 {
			t.Errorf("%s: %d stay open", name, len(r.open))
		}
	}
}

// TestJoinOnce: a second verdict of the same classifier, that of one too many and one
// that comes when the record is written are not lost; nor is anything kept of a message
// that is.
func TestJoinOnce(t *testing.T) {
	m := &memory{}
	r := New(Options{Store: m, BestEffort: true, queue: 4, gather: 5 * time.Second})
	c := gateway.Classified{Of: gateway.ID{1}, Input: [32]byte{1}, Assessment: classify.Assessment{Name: "local", Version: "v", Mode: policy.Shadow}}
	r.Record(decision(1))
	for i := range maxJoined {
		c.Name = "local-" + string(rune('a'+i))
		r.Classified(c)
	}
	r.Classified(c)
	c.Name = "one-too-many"
	r.Classified(c)
	waittest.Until(t, "three records", func() bool { return r.Figures().recorded == 3 })
	r.Classified(c)
	waittest.Until(t, "four records", func() bool { return r.Figures().recorded == 4 })
	m.block = make(chan struct{})
	for n := range byte(20) {
		r.Record(decision(n))
	}
	close(m.block)
	r.Close(context.Background())
	if r.Figures().Lost == 0 || len(r.open) > 0 {
		t.Errorf("%d lost, %d stay open", r.Figures().Lost, len(r.open))
	}
}
