// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRulings: adding a rule that tightens, or a quarantined source, never makes a response
// milder; a rule that loosens counts for its verdicts alone; and only an approval goes before both.
func TestRulings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usual := rapid.SampledFrom(Responses).Draw(t, "usual")
		f := Facts{Own: rapid.Bool().Draw(t, "own"), Unread: true} // stated, or cannot-tell
		for range rapid.IntRange(0, 4).Draw(t, "rules") {
			r := Ruling{Rule: "r", Says: rapid.SampledFrom(Responses).Draw(t, "says"), Failed: rapid.Bool().Draw(t, "failed")}
			if r.Says.Passes() {
				r.Verdicts = rapid.SliceOf(rapid.SampledFrom(Verdicts)).Draw(t, "verdicts")
			}
			f.Rulings = append(f.Rulings, r)
		}
		got := f.response(usual)
		tightened := slices.ContainsFunc(f.Rulings, func(r Ruling) bool { return !r.Says.Passes() })
		if tightened && (Worse(got, usual) != got || got.Passes()) {
			t.Errorf("tightened from %s to %s", usual, got)
		}
		v := f.Verdict()
		loosened := slices.ContainsFunc(f.Rulings, func(r Ruling) bool { return r.Says.Passes() && !r.Failed && slices.Contains(r.Verdicts, v) })
		if !loosened && Worse(got, usual) != got {
			t.Errorf("loosened from %s to %s without a rule for %s", usual, got, v)
		}
		if loosened && !tightened && !got.Passes() {
			t.Errorf("not loosened: %s", got)
		}
		more := f
		more.Rulings = append(slices.Clone(f.Rulings), Ruling{Rule: "more", Says: Ask})
		if x := more.response(usual); Worse(x, got) != x || x.Passes() {
			t.Errorf("one more rule: from %s to %s", got, x)
		}
		held := f
		held.Quarantined = true
		if x := held.response(usual); Worse(x, usual) != x {
			t.Errorf("quarantined: from %s to %s", usual, x)
		}
		f.Approval = "id"
		if f.response(usual) != Pass {
			t.Error("not approved")
		}
		held.Approval = "id"
		if x := held.response(usual); Worse(x, usual) != x {
			t.Errorf("approved while quarantined: %s", x)
		}
		f.Usual = usual
		if !f.Follows(Pass) || f.Follows(Hold) {
			t.Error("the response does not follow")
		}
	})
}
