// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// kept are the pins and the queue of the store, with their evidence unless it is off,
// and opens the scores of servers, which are the log's then.
func (b *Gateway) kept(dir *state.Dir, r *rules.Rules) (*surface.Pins, *hold.Queue, error) {
	pins := surface.NewPins(b.store, nil)
	if r.Trust != nil {
		b.scored = *r.Trust
	}
	b.scored = b.scored.OrDefault()
	if r.Evidence.Mode == rules.NoEvidence {
		return pins, hold.New(b.store, hold.Options{Seal: b.seal}), b.openTrust(dir)
	}
	f, err := standing.Open(context.Background(), b.store.Ledger(), b.scored, b.log)
	if err != nil {
		return nil, nil, install.OpenError(err)
	}
	b.trust = f.Book()
	b.records = install.OpenFollowed(b.store, dir, &r.Evidence, install.PollOften, b.log, f.Integrated)
	b.requires = r.Evidence.Mode == rules.Required
	b.follows = FollowScores(f)
	return pins.WithEvidence(b.records.Pin), hold.New(b.store, hold.Options{Evidence: b.records.Held, Seal: b.seal}), nil
}

// seal encrypts what is held to those whom the rules in force name, if they do.
func (b *Gateway) seal(body []byte) ([]byte, error) {
	r := b.rules.Load()
	if r == nil || r.Reviewers == nil {
		return nil, nil
	}
	return r.Reviewers.Seal(body)
}

// catchWait bounds how long the first request waits for a log that is far ahead of the
// scores; they follow it from then on.
const catchWait = 5 * time.Second

// FollowScores has f follow its log until stop is called.
func FollowScores(f *standing.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	first, enough := context.WithTimeout(ctx, catchWait)
	_ = f.Catch(first) // what it has not read, or why it cannot, is for Follow
	enough()
	done := make(chan struct{})
	go func() { defer close(done); f.Follow(ctx) }()
	return func() { cancel(); <-done }
}

// scoresChanged reports whether rules want scores that are made otherwise than those
// of this process.
func (b *Gateway) scoresChanged(r *rules.Rules) bool {
	var o trust.Options
	if r.Trust != nil {
		o = *r.Trust
	}
	return o.OrDefault() != b.scored
}

// begunAnew: a snapshot that does not fit is no reason not to start: everything is at rest then.
func (b *Gateway) begunAnew(err error) error {
	if errors.Is(err, trust.ErrSnapshot) {
		b.log.Warn("the scores of servers begin anew: those that were kept are of another version, or other options")
		return nil
	}
	return err
}

func (b *Gateway) ledgerGauges() meter.Ledger {
	if b.records == nil {
		return meter.Ledger{}
	}
	return meter.Ledger{
		Pending:    b.records.Waiting,
		Size:       func() int64 { return b.records.Seq.Figures().Size },
		Integrated: func() int64 { return b.records.Seq.Figures().Integrated },
		Lost:       func() int64 { return b.records.Figures().Lost },
		Lag:        func() int64 { return b.records.Seq.Figures().Lag.Milliseconds() },
	}
}

// watchStore has /readyz say whether the store can be read and written, and whether
// decisions are recorded.
func (b *Gateway) watchStore() {
	b.health.Add("store", func(ctx context.Context) error {
		if _, err := b.queue.List(ctx, hold.Filter{Limit: 1}); err != nil {
			return unready(err)
		}
		return unready(b.store.Ledger().Probe(ctx))
	})
	if b.records != nil {
		b.health.Add("evidence", func(context.Context) error { return unready(b.records.Failing()) })
	}
}

// unready is an error that says in one word why the store cannot be used.
func unready(err error) error {
	if err == nil {
		return nil
	}
	return meter.State(storage.Reason(err))
}
