// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// sourceTrust are the scores that the ledger gives to servers and their tools, for the segments
// of a context.
type sourceTrust struct {
	ledger *storage.Ledger
	log    *slog.Logger
	known  atomic.Pointer[standing.Follower] // nil: the log could not be read yet
}

// of is the score of the tool, in thousandths. Only what a verified fence names has a score:
// anything else would let one server speak for another.
func (t *sourceTrust) of(s counterfactual.Source) int {
	f := t.known.Load()
	if f == nil || !s.Verified {
		return 0
	}
	score := f.Book().Score(trust.Origin{Server: s.Origin.Server, Tool: s.Origin.Tool}, time.Now().Unix())
	return int(score * 1000 / trust.One)
}

// follow reads the log now, and again until ctx ends.
func (t *sourceTrust) follow(ctx context.Context) {
	t.load(ctx)
	go func() {
		tick := time.NewTicker(hintsEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				t.load(ctx)
			}
		}
	}()
}

// load reads what the log has beyond the scores. Where that fails, the scores until then count
// on.
func (t *sourceTrust) load(ctx context.Context) {
	f, err := t.known.Load(), error(nil)
	if f == nil {
		f, err = t.open(ctx)
	}
	if err == nil {
		err = f.Catch(ctx)
	}
	if err != nil {
		if ctx.Err() == nil {
			t.log.Warn("the ledger cannot be read: the trust scores of servers are not up to date")
		}
		return
	}
	t.known.Store(f)
}

// open begins with the options that the log names last, as `pellucid trust` does.
func (t *sourceTrust) open(ctx context.Context) (*standing.Follower, error) {
	var o trust.Options
	switch head, err := t.ledger.Head(ctx); {
	case errors.Is(err, sequence.ErrNoLog): // nothing is recorded yet
	case err != nil:
		return nil, err
	default:
		if o, err = standing.Latest(ctx, t.ledger, head.Size); err != nil {
			return nil, err
		}
	}
	return standing.Open(ctx, t.ledger, o, t.log)
}
