// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Exception is hold.ExceptionOptions.Evidence.
func (r *Recorder) Exception(x hold.Exception) ([]byte, error) { return r.Seal(Exception(x)) }

// Exception returns the event of an exception that a reviewer has proposed, granted or revoked.
func Exception(x hold.Exception) *ledger.Event {
	e := &ledger.Event{Kind: ledger.PolicyDecided, Time: x.Since, Server: x.Server, Tool: x.Tool, Rule: hold.RuleException, Actor: "person", Verdict: "granted",
		Reason: string(x.Code)}
	if !x.Until.IsZero() {
		e.Numbers = []ledger.Number{{Name: "until", N: x.Until.Unix()}}
	}
	if id, err := ledger.ParseID(x.ID); err == nil {
		e.Of = id
	}
	e.Subjects = digests(e.Subjects, ledger.Received, x.Digest)
	by := x.By
	switch {
	case !x.Revoked.IsZero():
		e.Verdict, e.Time, by = "revoked", x.Revoked, x.Revoker
	case x.Proposed():
		e.Verdict, e.Numbers = "proposed", []ledger.Number{{Name: "seconds", N: int64(x.Keep / time.Second)}}
	case x.Second != "":
		e.Time, by = time.Now(), x.Second
	}
	e.Subjects = names(e.Subjects, ledger.By, by)
	return e
}

// proposed words that the first of two persons has proposed to release an item.
func proposed(e *ledger.Event, it *hold.Item) {
	e.Kind, e.Rule, e.Verdict, e.Actor, e.Time = ledger.PolicyDecided, hold.RuleTwoPersons, "proposed", "person", it.Decided
	e.Subjects = names(e.Subjects, ledger.By, it.By)
}
