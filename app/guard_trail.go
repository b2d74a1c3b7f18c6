// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// guardTrail keeps what the guard decides: the statement whole in a file, and its
// digest in the ledger.
type guardTrail struct {
	records *install.Records
	dir     *state.Dir
}

// guardSource names the guard in records, which are about no server of the gateway.
const guardSource = "guard"

// Record implements guard.Sink.
func (t guardTrail) Record(_ context.Context, _ string, statement []byte, cost guard.Cost) error {
	var said struct {
		ID, Act, Reason, Response string
	}
	if err := json.Unmarshal(statement, &said); err != nil {
		return err
	}
	id, err := ledger.ParseID(said.ID)
	if err != nil {
		return err
	}
	if err := t.dir.Write(said.ID+".json", statement); err != nil {
		return err
	}
	return t.records.Require(&ledger.Event{
		ID: id, Time: time.Now(), Kind: ledger.Counterfactual, Verdict: said.Act, Reason: said.Reason, Rule: said.Response,
		Numbers:  []ledger.Number{{Name: ledger.ModelCalls, N: cost.Calls}, {Name: ledger.ModelTokens, N: cost.Tokens}, {Name: ledger.TookMillis, N: max(0, cost.Took.Milliseconds())}},
		Subjects: []ledger.Subject{{Role: ledger.Output, Digest: sha256.Sum256(statement)}},
	})
}

// blame records that a source's text took control; scores of trust are made of such
// records.
func (t guardTrail) blame(s guard.Source) {
	e := &ledger.Event{Time: time.Now(), Kind: ledger.Counterfactual, Verdict: standing.Hijack, Server: s.Server, Tool: s.Tool,
		Rule: guardSource, Numbers: []ledger.Number{{Name: "severity", N: int64(s.Severity)}, evidence.Lowering(trust.Hijack, s.Digest)},
		Subjects: []ledger.Subject{{Role: ledger.Input, Digest: ledger.Digest(s.Digest)}}}
	if id, err := ledger.ParseID(s.Evidence); err == nil {
		e.Of = id
	}
	t.records.Note(e)
}

// blockade has gateways on the same database withhold what has taken control.
type blockade struct {
	blocks *hold.Blocks
	scope  string
}

// Withhold implements guard.Quarantine.
func (b blockade) Withhold(ctx context.Context, s guard.Source) error {
	block := hold.Block{ID: hold.NewID(), Server: s.Server, Evidence: s.Evidence, Severity: s.Severity}
	switch b.scope {
	case "server":
	case "tool":
		block.Tool = s.Tool
	default:
		block.Tool, block.Text = s.Tool, hold.Digest(s.Digest)
	}
	return b.blocks.Add(ctx, block)
}

// covers reports whether gateways withhold text of a source.
func (b blockade) covers(ctx context.Context, s guard.Source) bool {
	_, found := b.blocks.Covering(ctx, s.Server, s.Tool, []hold.Digest{hold.Digest(s.Digest)})
	return found
}
