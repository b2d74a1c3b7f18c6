// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/eventstream"
)

// A part says what an event of a stream means for the client that waits for it.
type part uint8

const (
	partPreamble part = iota // says nothing yet: kept until something else comes
	partShown                // of the answer: it goes on as it is
	partHeld                 // from here on a call is proposed that must not go on by itself
	partFault                // the provider reports an error: the answer ends without an end
	partEnd
)

// An answer is what a provider has said, as far as it matters here.
type answer struct {
	said   counterfactual.Answer
	input  int64 // tokens; 0 = not said
	output int64
	// strange: something in it is not read here, and a client may take it for a call.
	strange bool
	// fetched: the provider has run something on the way, whose result the model has read
	// before it proposed what comes behind.
	fetched bool
}

// A gate says which calls need a decision.
type gate struct {
	policy *counterfactual.Privileges
	// readers: those calls too that are not privileged, and that may reach an address.
	readers bool
	// teaching says which calls count that are written as text; nil: those that are not shown
	// as code.
	teaching *teaching
	rules    delegation.Rules // nil: there are none
}

// holds reports whether a call of that tool may need a decision, before its arguments are known.
func (g gate) holds(tool string) bool { return g.readers || g.privileged(tool) || g.ruled(tool) }

func (g gate) privileged(tool string) bool { return g.policy.Privilege(tool) > 0 }

// ruled reports whether a rule about values names the tool.
func (g gate) ruled(tool string) bool { return g.rules != nil && g.rules.Names(tool) }

// calls are the calls of an answer that need a decision, each once.
func (g gate) calls(assembly *counterfactual.Assembly, said *counterfactual.Answer) []counterfactual.Call {
	out := delegation.Gate(assembly, g.policy, said, format.MaxCalls)
	if g.rules == nil {
		return out
	}
	seen := map[string]bool{}
	digest := func(c counterfactual.Call) string { p := g.policy.Proposal(c); return p.Digest() }
	for _, c := range out {
		seen[digest(c)] = true
	}
	for _, c := range said.Calls[:min(len(said.Calls), format.MaxCalls)] {
		if g.ruled(c.Name) && !seen[digest(c)] {
			seen[digest(c)] = true
			out = append(out, c)
		}
	}
	return out
}

// decides reports whether a decision is needed.
func (a *answer) decides(g gate) bool {
	for _, c := range a.said.Calls {
		if g.policy.PrivilegeOf(c) > 0 || g.ruled(c.Name) || g.readers && counterfactual.MayReach(c.Arguments) {
			return true
		}
	}
	return a.strange
}

// answerOf is what an answer means here. Order among events is no matter in a body.
func answerOf(a *format.Answer, t *teaching) *answer {
	out := &answer{said: *counterfactual.AnswerOf(a), input: a.Usage.Input, output: a.Usage.Output, fetched: a.Fetched,
		strange: a.Odd&format.OddCall != 0}
	for _, c := range a.Calls() {
		out.strange = out.strange || unread(&c)
	}
	out.said.Calls = out.said.Calls[:len(a.Calls())]
	written, shown := a.Written()
	for i, c := range written {
		switch counts := t.counts(c.Name, shown[i]); {
		case c.Kind == format.CallOther:
			out.strange = out.strange || counts
		case counts:
			out.said.Calls = append(out.said.Calls, counterfactual.Call{Name: c.Name, Arguments: c.Arguments})
		}
	}
	return out
}

// unread reports whether a call is of a kind that is not read here.
func unread(c *format.Call) bool { return c.Kind == format.CallOther || c.Name == "" }

// read reads a body that is no stream.
func read(f format.Format, body []byte, t *teaching) *answer {
	root := format.Parse(body)
	if !root.Exists() {
		return &answer{strange: true}
	}
	return answerOf(f.Read(root), t)
}

// A reading takes in a stream, event by event.
type reading struct {
	stream  format.Stream
	gate    gate
	held    bool // a privileged call was proposed
	waits   bool // a call was proposed that may need a decision
	strange bool
	writing format.Writing
	wrote   bool // a call may have begun in the text
}

func newReading(f format.Format, g gate) *reading {
	return &reading{stream: f.NewStream(), gate: g}
}

// event takes in an event and says what it means.
func (r *reading) event(e eventstream.Event) part {
	parts, odd := r.stream.Event(e)
	is := partPreamble
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case format.PartError:
			is = max(is, partFault)
		case format.PartEnd:
			is = partEnd
		case format.PartCall, format.PartCallWhole:
			if unread(&p.Call) {
				odd |= format.OddCall
			}
			r.held = r.held || r.gate.privileged(p.Call.Name)
			r.waits = r.waits || r.gate.holds(p.Call.Name)
			is = max(is, partShown)
		case format.PartText:
			if began, shown := r.writing.Add(p.Text); began && (!shown || r.gate.teaching.isTaught()) {
				r.wrote = true
			}
			is = max(is, partShown)
		default:
			is = max(is, partShown)
		}
	}
	if odd&format.OddCall != 0 || r.held && odd&format.OddOrder != 0 {
		r.held, r.strange = true, true
		return partHeld
	}
	switch {
	case is >= partFault:
		return is
	case r.held || r.waits || r.wrote:
		return partHeld
	}
	r.stream.Passed()
	return is
}

// answer is what was read. What is tested must be what any client takes the answer for:
// where a call needs a decision, nothing may be odd about the order.
func (r *reading) answer() *answer {
	said := r.stream.Answer()
	a := answerOf(said, r.gate.teaching)
	// A call may stand in a text that was cut.
	a.strange = a.strange || r.strange || r.wrote && len(a.said.Text) >= format.MaxKept
	if (r.held || a.decides(r.gate)) && said.Odd&format.OddOrder != 0 {
		a.strange = true
	}
	return a
}

// tail ends, with a text, a stream of which nothing after the last event that was
// partShown has been passed on.
func (r *reading) tail(text string) []byte { return r.stream.AppendTail(nil, text) }
