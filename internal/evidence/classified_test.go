package evidence

import (
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/classify"
	"github.com/pellucid-mcp/pellucid/gateway"
	"github.com/pellucid-mcp/pellucid/internal/standing"
	"github.com/pellucid-mcp/pellucid/ledger"
	"github.com/pellucid-mcp/pellucid/trust"
)

func TestClassified(t *testing.T) {
	flagged := []classify.Judgement{{}, {Score: classify.Score{P: 0.97, Flagged: true, Code: "word"}}}
	for _, tt := range []struct {
		name    string
		c       gateway.Classified
		verdict string
		kind    trust.Kind // what it does to a score
	}{
		{"enforced", gateway.Classified{Verdict: classify.Verdict{Segments: flagged}}, standing.Injection, trust.Classified},
		{"in shadow mode it does not act", gateway.Classified{Verdict: classify.Verdict{Mode: classify.Shadow, Segments: flagged}}, "suspected", ""},
		{"clean", gateway.Classified{Verdict: classify.Verdict{Segments: []classify.Judgement{{}}}}, "benign", ""},
		{"failed", gateway.Classified{Verdict: classify.Verdict{Reason: classify.Timeout}}, "not-judged", ""},
		{"narrow", gateway.Classified{Verdict: classify.Verdict{Reason: classify.Narrow}}, "skipped", ""},
		{"dropped", gateway.Classified{Dropped: true, Verdict: classify.Verdict{Reason: classify.OverBudget}}, "dropped", ""},
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
				if !strings.Contains(string(sealed.Octets()), want) {
					t.Errorf("the record lacks %s: %s", want, sealed.Octets())
				}
			}
		})
	}
}
