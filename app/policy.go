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
	if !b.decides {
		return nil
	}
	scopes := strings.Fields(owner)
	return sessionPolicy{b, scopes[min(1, len(scopes)):]}
}

// Reads implements policy.Policy.
func (s sessionPolicy) Reads() policy.Reads {
	if p := s.b.rules.Load().Policy; p != nil {
		return p.Reads()
	}
	return policy.Reads{}
}

// Decide implements policy.Policy: it adds what the gateway does not know.
func (s sessionPolicy) Decide(in policy.Input) policy.Ruling {
	p := s.b.rules.Load().Policy
	if p == nil || p.Count(in.Direction) == 0 {
		return policy.Ruling{}
	}
	in.Privileged = in.Privileged || p.Privileged(in.Server, in.Tool)
	in.Scopes = s.scopes
	if book := s.b.book(); book != nil {
		server, tool := book.Scores(trust.Origin{Server: in.Server, Tool: in.Tool}, time.Now().Unix())
		in.ServerTrust, in.ToolTrust = server.Float(), tool.Float()
	}
	return p.Decide(&in)
}

// trustSink makes events of decisions where there is no ledger to make them of.
type trustSink struct{ b *boundary }

// Record implements gateway.Sink. It never fails.
func (s trustSink) Record(d gateway.Decision) error {
	book := s.b.book()
	if book == nil {
		return nil
	}
	if e, counts := standing.Of(evidence.Message(&d)); counts {
		book.Apply(e)
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
func (b *boundary) openTrust(dir *state.Dir) error {
	file := trustFile{dir}
	book, err := trust.Open(context.Background(), file, b.scored)
	if err = b.begunAnew(err); err != nil {
		return err
	}
	b.scoring.Store(&scoring{book: book, file: file})
	return nil
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
	s := b.scoring.Load()
	if s == nil || s.file.dir == nil { // the log has them
		return
	}
	if err := s.book.Save(context.Background(), s.file); err != nil {
		b.log.Warn("trust scores of servers could not be stored", "error", err)
	}
}
