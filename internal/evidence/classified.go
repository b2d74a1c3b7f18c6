package evidence

import (
	"github.com/pellucid-mcp/pellucid/classify"
	"github.com/pellucid-mcp/pellucid/gateway"
	"github.com/pellucid-mcp/pellucid/internal/standing"
	"github.com/pellucid-mcp/pellucid/ledger"
)

// The verdicts of a record of ledger.Classified, beside standing.Injection. Those of a
// classifier in shadow mode count for nobody's score: they are not to act.
const (
	suspected = "suspected"
	benign    = "benign"
	unjudged  = "not-judged"
	skipped   = "skipped"
	dropped   = "dropped"
)

// Classified records the verdict of a classifier, best effort: the decision that it
// led to has a record of its own.
func (r *Recorder) Classified(c gateway.Classified) { r.Note(classified(&c)) }

func classified(c *gateway.Classified) *ledger.Event {
	e := &ledger.Event{Kind: ledger.Classified, Time: c.Time, Server: c.Server, Tool: c.Tool, Of: ledger.ID(c.Of),
		Actor: "classifier", Rule: "classifier:" + c.Name, Verdict: verdictOf(c), Reason: string(c.Reason),
		Versions: []ledger.Version{{Of: "classifier", Version: c.Version}},
		Numbers: []ledger.Number{{Name: c.Mode.String(), N: 1}, {Name: "outcome-" + c.Outcome.String(), N: 1},
			{Name: "score", N: int64(c.P * 1e6)}, {Name: "asked", N: int64(c.Asked)}, {Name: "cached", N: int64(c.Cached)},
			{Name: "microseconds", N: c.Latency.Microseconds()}}}
	if c.Code != "" && c.Reason == "" {
		e.Reason = string(c.Code)
	}
	e.Subjects = digests(e.Subjects, ledger.Input, c.Input)
	return e
}

func verdictOf(c *gateway.Classified) string {
	switch {
	case c.Flagged() && c.Mode == classify.Enforce:
		return standing.Injection
	case c.Flagged():
		return suspected
	case c.Dropped:
		return dropped
	case c.Reason == classify.Narrow:
		return skipped
	case c.Reason != classify.Judged:
		return unjudged
	}
	return benign
}
