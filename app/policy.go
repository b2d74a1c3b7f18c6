// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/evidence"
	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// sessionPolicy joins the policy in force and the scores for the calls of one owner.
type sessionPolicy struct {
	b      *boundary
	scopes []string
}

// policyOf is the policy for a session's owner; nil where no policy can be in force.
func (b *boundary) policyOf(owner string) policy.Policy {
	if b.trust == nil {
		return nil
	}
	scopes := strings.Fields(owner)
	return sessionPolicy{b, scopes[min(1, len(scopes)):]}
}

// Decide implements policy.Policy: it adds what the gateway does not know.
func (s sessionPolicy) Decide(in policy.Input) policy.Ruling {
	p := s.b.rules.Load().Policy
	if p == nil || p.Count(in.Direction) == 0 {
		return policy.Ruling{}
	}
	in.Privileged = in.Privileged || p.Privileged(in.Server, in.Tool)
	in.Scopes = s.scopes
	server, tool := s.b.trust.Scores(trust.Origin{Server: in.Server, Tool: in.Tool}, time.Now().Unix())
	in.ServerTrust, in.ToolTrust = server.Float(), tool.Float()
	return p.Decide(&in)
}

// trustSink makes events of decisions where there is no ledger to make them of.
type trustSink struct{ book *trust.Book }

// Record implements gateway.Sink. It never fails.
func (s trustSink) Record(d gateway.Decision) error {
	if e, counts := standing.Of(evidence.Message(&d)); counts {
		s.book.Apply(e)
	}
	return nil
}

// trustFile keeps the snapshot of the scores in the state directory.
type trustFile struct{ dir *state.Dir }

const (
	trustName   = "trust"
	maxSnapshot = 256 << 20 // bytes
)

// LoadTrust implements trust.Store.
func (f trustFile) LoadTrust(context.Context) ([]byte, error) {
	b, err := f.dir.Read(trustName, maxSnapshot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

// SaveTrust implements trust.Store.
func (f trustFile) SaveTrust(_ context.Context, snapshot []byte) error {
	return f.dir.Write(trustName, snapshot)
}

// openTrust reads the scores where there is no ledger. A snapshot that does not fit is
// put aside: everything is at rest then.
func (b *boundary) openTrust(dir *state.Dir) (err error) {
	b.scores = trustFile{dir}
	b.trust, err = trust.Open(context.Background(), b.scores, b.scored)
	return b.begunAnew(err)
}

// saveWait is how often scores are kept.
const saveWait = time.Minute

func (b *boundary) keepTrust(ctx context.Context) {
	tick := time.NewTicker(saveWait)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.saveTrust()
		case <-ctx.Done():
			return
		}
	}
}

func (b *boundary) saveTrust() {
	if b.trust == nil || b.scores.dir == nil { // the log has them
		return
	}
	if err := b.trust.Save(context.Background(), b.scores); err != nil {
		b.log.Warn("trust scores of servers could not be stored", "error", err)
	}
}
