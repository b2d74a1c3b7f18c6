// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Approval is hold.ApprovalOptions.Evidence.
func (r *Recorder) Approval(a hold.Approval) ([]byte, error) { return r.Seal(Approval(a)) }

// Approval returns the event of an approval of a call, or of its revocation.
func Approval(a hold.Approval) *ledger.Event {
	e := &ledger.Event{Kind: ledger.Counterfactual, Time: a.Since, Server: "guard", Tool: a.Tool, Verdict: "approved", Rule: "approval", Actor: "person",
		Numbers: []ledger.Number{{Name: "until", N: a.Until.Unix()}}}
	if id, err := ledger.ParseID(a.Item); err == nil {
		e.Of = id
	}
	e.Subjects = digests(e.Subjects, ledger.Call, a.Call)
	e.Subjects = names(e.Subjects, ledger.Principal, a.Principal)
	by := a.By
	if !a.Revoked.IsZero() {
		e.Verdict, e.Time, by = "revoked", a.Revoked, a.Revoker
	}
	e.Subjects = names(e.Subjects, ledger.By, by)
	return e
}
