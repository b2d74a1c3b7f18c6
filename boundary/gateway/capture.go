// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

// Capture says which texts of a tool's calls are kept for a reviewer. Its zero value keeps none.
// Arguments are kept with a result that is held; all three of calls with a verdict in Of, and of
// those whose result a schema refuses, since no reviewer can find that in the queue.
type Capture struct {
	Arguments, Received, Delivered bool
	Of                             []Verdict
}

// any reports whether a call with that verdict is kept.
func (c *Capture) any(v Verdict) bool {
	return (c.Arguments || c.Received || c.Delivered) && slices.Contains(c.Of, v)
}

// and is what both keep.
func (c Capture) and(d *Capture) Capture {
	return Capture{c.Arguments && d.Arguments, c.Received && d.Received, c.Delivered && d.Delivered,
		slices.DeleteFunc(slices.Clone(c.Of), func(v Verdict) bool { return !slices.Contains(d.Of, v) })}
}

// question is what is kept of the arguments of a call until it is answered; nil: nothing. Arguments that
// are too long leave their length.
func (r *relay) question(rule *Rule, m *wire.Message) *hold.Question {
	if !rule.Capture.Arguments || r.cfg.Hold == nil && r.cfg.Captures == nil {
		return nil
	}
	raw := m.Params.Get("arguments").Raw()
	q := &hold.Question{Bytes: len(raw), Params: len(m.Params.Raw())}
	if len(raw) <= hold.MaxArguments {
		q.Arguments = string(raw)
	}
	return q
}

// questionOf is the document of the question that a held result answers; nil: it is not kept.
func (in *inspection) questionOf() []byte {
	if in.p.question == nil {
		return nil
	}
	q := *in.p.question
	q.ID = in.d.ID.String()
	return q.Document()
}

// foundIn is what was found in a result and what classifiers say of it, for a reviewer.
func (in *inspection) foundIn() hold.Found {
	f := hold.NewFound(in.w.found, scoresFor(in.d.Classified))
	for _, c := range in.w.foundMore {
		f.Add(c.Code, c.N)
	}
	if in.p.ofTask() {
		f.Task = in.row.Method
	}
	return f
}

func scoresFor(list []classify.Assessment) (out []hold.Score) {
	for i := range list {
		a := &list[i]
		out = append(out, hold.Score{Name: a.Name, Version: a.Version, Mode: a.Mode.String(), P: a.P, Outcome: a.Outcome(),
			Code: string(a.Code), Reason: string(a.Reason)})
	}
	return out
}

// captureTexts keeps the texts of the call that the message answers, where the rule asks for it, and
// reports whether it does. It waits for nothing; delivered is nil where nothing of the message was.
func (in *inspection) captureTexts(received, delivered []byte) bool {
	c := &in.rule.Capture
	refused := (in.unreleasable || in.leftContent) && (c.Arguments || c.Received)
	if in.cfg.Captures == nil || !in.ofTool() || !isToolResult(in.row) && !in.marked || !c.any(in.d.Verdict) && !refused {
		return false
	}
	if !c.Received {
		received = nil
	}
	if !c.Delivered {
		delivered = nil
	}
	in.cfg.keepTexts(&in.d, in.p.question, received, delivered)
	return true
}

// keepTexts gives texts of a call to the keeper, as far as it has room.
func (c *Config) keepTexts(d *Decision, q *hold.Question, received, delivered []byte) {
	n := 0
	for _, text := range [...][]byte{received, delivered} {
		if len(text) <= captures.MaxPart {
			n += len(text)
		}
	}
	if q != nil {
		n += len(q.Arguments)
	}
	if !c.Captures.Room(n) {
		return
	}
	out := captures.Capture{ID: d.ID.String(), Time: d.Time, Server: d.Server, Tool: d.Tool, Principal: c.Principal, Verdict: string(d.Verdict)}
	if q != nil {
		out.Arguments, out.Params = &captures.Part{Bytes: q.Bytes, Text: q.Arguments}, q.Params
	}
	if received != nil {
		out.Received = captures.NewPart(received)
	}
	if delivered != nil {
		out.Delivered = captures.NewPart(delivered)
	}
	c.Captures.Keep(out, n)
}
