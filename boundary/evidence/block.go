// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Block is hold.BlockOptions.Evidence.
func (r *Recorder) Block(b hold.Block) ([]byte, error) { return r.Seal(Block(b)) }

// Block returns the event of a source that is withheld from now on, or no longer.
func Block(b hold.Block) *ledger.Event {
	e := &ledger.Event{Kind: ledger.Counterfactual, Time: b.Since, Server: b.Server, Tool: b.Tool, Verdict: "quarantined", Rule: "quarantine-" + b.Scope(),
		Numbers: []ledger.Number{{Name: "severity", N: int64(b.Severity)}, {Name: "until", N: b.Until.Unix()}}}
	if id, err := ledger.ParseID(b.Evidence); err == nil {
		e.Of = id
	}
	if b.Text != (hold.Digest{}) {
		e.Subjects = digests(e.Subjects, ledger.Input, b.Text)
	}
	if !b.Lifted.IsZero() {
		e.Verdict, e.Actor, e.Time = "lifted", "person", b.Lifted
		e.Subjects = names(e.Subjects, ledger.By, b.By)
	}
	return e
}
