// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// Rules are the operator's rules about the values of calls.
type Rules interface {
	// Names reports whether a rule is about a tool.
	Names(tool string) bool
	// Rulings are what the rules say of a call. origins is nil if the arguments of the call
	// cannot be read, or are too many.
	Rulings(a *counterfactual.Assembly, c counterfactual.Call, origins []counterfactual.Origin) []Ruling
}

// A Ruling is what one rule says of a call. It tightens if what it says does not pass, and
// loosens if it does.
type Ruling struct {
	Rule string   `json:"rule"`
	Says Response `json:"says"`
	// Verdicts are those that a rule which loosens is for. It says nothing of others.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Failed: the condition could not be evaluated. A rule that tightens then says Ask, and
	// one that loosens says nothing.
	Failed bool `json:"failed,omitempty"`
}

// loosens reports whether the ruling lets calls of a verdict pass.
func (r *Ruling) loosens(v Verdict) bool {
	return r.Says.Passes() && !r.Failed && slices.Contains(r.Verdicts, v)
}

// ruled reports whether something else than the policy for verdicts decides.
func (f *Facts) ruled() bool { return len(f.Rulings) > 0 || f.Approval != "" }

// response is what is done with the call, where the policy says usual of its verdict. The
// sternest rule that tightens goes before every rule that loosens, and never makes the policy
// milder. An approval by a person goes before the rules. Neither an approval nor a rule lets a
// call pass while a text of a quarantined source is in the context.
func (f *Facts) response(usual Response) Response {
	if f.Approval != "" && !f.Quarantined {
		return Pass
	}
	out, tightened := usual, false
	for _, r := range f.Rulings {
		if !r.Says.Passes() {
			out, tightened = Worse(out, r.Says), true
		}
	}
	if tightened || f.Quarantined {
		return out
	}
	v := f.Verdict()
	for _, r := range f.Rulings {
		if r.loosens(v) && Worse(out, r.Says) == out {
			out = r.Says
		}
	}
	return out
}

// Follows reports whether a response follows from the facts, as far as they say.
func (f *Facts) Follows(r Response) bool {
	if !f.ruled() {
		return f.Usual == ""
	}
	return slices.Contains(Responses, f.Usual) && f.response(f.Usual) == r
}

// settle says what is done with the call.
func (w *deciding) settle(ctx context.Context, usual Response) Response {
	f := &w.facts
	f.Quarantined = len(f.Rulings) > 0 && w.quarantined()
	out := f.response(usual)
	if !out.Passes() && w.p.Approved != nil && !f.Unread && !w.quarantined() {
		f.Approval = w.p.Approved(ctx, w.call)
		out = f.response(usual)
	}
	if f.ruled() {
		f.Usual = usual
	}
	return out
}

func (w *deciding) quarantined() bool { return w.p.Quarantined != nil && w.p.Quarantined() }
