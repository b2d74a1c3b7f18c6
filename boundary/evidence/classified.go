// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/text/frame"
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
func (r *Recorder) Classified(c gateway.Classified) {
	if !r.join(&c) {
		r.Note(classified(&c))
	}
}

// leaveOpen lets the record of a message say more until it is written.
func (r *Recorder) leaveOpen(e *ledger.Event) {
	if e.ID == (ledger.ID{}) {
		return
	}
	r.late.Lock()
	defer r.late.Unlock()
	r.open[e.ID] = e
}

// shut ends that.
func (r *Recorder) shut(e *ledger.Event) {
	r.late.Lock()
	defer r.late.Unlock()
	if r.open[e.ID] == e {
		delete(r.open, e.ID)
	}
}

// join has the record of the message itself say that a classifier in shadow mode found
// nothing in it, if that record waits: nearly every verdict is such a one, and a record
// of its own would cost as much as that of the message. spec: evidence/1.6
func (r *Recorder) join(c *gateway.Classified) bool {
	name := "classifier:" + c.Name
	if c.Mode != policy.Shadow || verdictOf(c) != benign || !frame.IsLabel(name+":microseconds") || !frame.IsLabel(c.Version) {
		return false
	}
	r.late.Lock()
	defer r.late.Unlock()
	m := r.open[ledger.ID(c.Of)]
	if m == nil || len(m.Numbers) >= maxJoined*len(figures(c)) ||
		!slices.Contains(m.Subjects, ledger.Subject{Role: ledger.Received, Digest: ledger.Digest(c.Input)}) ||
		slices.ContainsFunc(m.Versions, func(v ledger.Version) bool { return v.Of == name }) {
		return false
	}
	m.Versions = append(m.Versions, ledger.Version{Of: name, Version: c.Version})
	for _, n := range figures(c) {
		m.Numbers = append(m.Numbers, ledger.Number{Name: name + ":" + n.Name, N: n.N})
	}
	return true
}

// maxJoined keeps the record of a message far below its greatest length.
const maxJoined = 8

// figures are what a verdict says in numbers.
func figures(c *gateway.Classified) []ledger.Number {
	return []ledger.Number{{Name: "score", N: int64(c.P * 1e6)}, {Name: "asked", N: int64(c.Asked)}, {Name: "cached", N: int64(c.Cached)},
		{Name: "microseconds", N: c.Latency.Microseconds()}}
}

func classified(c *gateway.Classified) *ledger.Event {
	e := &ledger.Event{Kind: ledger.Classified, Time: c.Time, Server: c.Server, Tool: c.Tool, Shape: string(c.Kind), Of: ledger.ID(c.Of),
		Actor: "classifier", Rule: "classifier:" + c.Name, Verdict: verdictOf(c), Reason: string(c.Reason),
		Versions: []ledger.Version{{Of: "classifier", Version: c.Version}},
		Numbers:  append(figures(c), ledger.Number{Name: c.Mode.String(), N: 1}, ledger.Number{Name: "outcome-" + c.Outcome(), N: 1})}
	if c.Code != "" && c.Reason == "" {
		e.Reason = string(c.Code)
	}
	e.Subjects = digests(e.Subjects, ledger.Input, c.Input)
	return e
}

func verdictOf(c *gateway.Classified) string {
	switch {
	case c.Flagged() && c.Mode == policy.Enforce:
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
