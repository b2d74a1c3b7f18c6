// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/meter"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
)

// record opens the ledger.
func (b *boundary) record(dir *state.Dir, r *rules.Rules, n needs) error {
	b.requires = r.Evidence.Mode == rules.Required
	b.records = install.OpenFollowed(b.store, dir, &r.Evidence, n.poll, b.log, func(entries []sequence.Entry) {
		if s := b.scoring.Load(); s != nil {
			s.follower.Integrated(entries)
		}
	})
	return b.isReplica(n)
}

// A scoring is the trust scores of servers and tools that a policy reads, and what keeps them.
type scoring struct {
	book     *trust.Book
	follower *standing.Follower // of the ledger, where there is one
	stop     func()             // of follower
}

// keepScores begins to keep trust scores if the policy of r reads them, and none are kept yet. Without a ledger they
// start at rest with the process.
func (b *boundary) keepScores(r *rules.Rules) error {
	switch {
	case b.scoring.Load() != nil, !b.decides, r.Policy == nil, !r.Policy.Reads().Trust:
		return nil
	case b.records == nil:
		b.scoring.Store(&scoring{book: trust.NewBook(trust.New(b.scored))})
		return nil
	}
	f, err := standing.Open(context.Background(), b.store.Ledger(), b.scored, b.log)
	if err != nil {
		return local.OpenError(err)
	}
	b.scoring.Store(&scoring{book: f.Book(), follower: f, stop: followScores(f)})
	return nil
}

// book has the trust scores; nil while no policy has read them.
func (b *boundary) book() *trust.Book {
	if s := b.scoring.Load(); s != nil {
		return s.book
	}
	return nil
}

// isReplica refuses a gateway on a shared database that could not carry the log on.
func (b *boundary) isReplica(n needs) error {
	if !n.replica || !storage.IsPostgres(string(n.database)) {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), install.CloseWait)
	defer stop()
	return b.records.Replica(ctx)
}

// openJournal opens the journal, in which decisions are lines where there is no ledger.
func (b *boundary) openJournal(dir *state.Dir) (err error) {
	b.journal, err = dir.Journal("decisions.jsonl", func(err error) {
		b.log.Warn("the journal is full and cannot be put aside: it grows until that succeeds", "error", err)
	})
	if err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

// seal encrypts what is held for the reviewers that the rules in force name, if they name any.
func (b *boundary) seal(body []byte) ([]byte, error) {
	r := b.rules.Load()
	if r == nil || r.Reviewers == nil {
		return nil, nil
	}
	return r.Reviewers.Seal(body)
}

// questions seals what else is kept for reviewers: to those that the rules in force name, else with the keys of
// the installation.
func (b *boundary) questions() *capture.Sealer {
	return &capture.Sealer{Keys: b.ring, Reviewers: func() *capture.Recipients {
		if r := b.rules.Load(); r != nil {
			return r.Reviewers
		}
		return nil
	}}
}

// twoPersons reports whether the release of what is held now needs two persons.
func (b *boundary) twoPersons() bool {
	r := b.rules.Load()
	return r != nil && r.TwoPersons
}

// captureLimits are those of the rules in force.
func (b *boundary) captureLimits() captures.Limits {
	if r := b.rules.Load(); r != nil {
		return r.Captures
	}
	return captures.Limits{}
}

// sweep keeps the queue swept until ctx ends.
func (b *boundary) sweep(ctx context.Context, failed func(error)) {
	b.queue.KeepSwept(ctx, hold.SweepEvery, failed, b.excepts.Sweep, b.blocks.Sweep, hold.NewApprovals(b.store.Approvals(), hold.ApprovalOptions{}).Sweep,
		func(ctx context.Context) error { return b.store.SweepSignIns(ctx, time.Now()) },
		func(ctx context.Context) error { return b.store.SweepTasks(ctx, time.Now()) })
}

// catchWait bounds how long the first request waits for a log that is far ahead of the
// scores; they follow it from then on.
const catchWait = 5 * time.Second

// followScores has f follow its log until stop is called.
func followScores(f *standing.Follower) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	first, enough := context.WithTimeout(ctx, catchWait)
	_ = f.Catch(first) // what it has not read, or why it cannot, is for Follow
	enough()
	done := make(chan struct{})
	go func() { defer close(done); f.Follow(ctx) }()
	return func() { cancel(); <-done }
}

// capturesLost is how many captures were not kept since the start.
func (b *boundary) capturesLost() int64 {
	if b.captures == nil {
		return 0
	}
	return b.captures.Lost()
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
		Still:      func() int64 { return int64(b.records.Seq.Figures().Still / time.Second) },
		Key:        func() int64 { return number(b.records.Seq.Figures().Key) },
		Cosigned:   func() int64 { return b.cosigned() },
		Alone:      func() int64 { return number(b.records.StandbyMissing()) },
		Stopped:    func() int64 { return number(b.records.Seq.Figures().Stop != nil) },
	}
}

// cosigned is the size of the log up to which witnesses have cosigned it, as far as this process has asked.
func (b *Gateway) cosigned() int64 {
	if b.records.Witnesses == nil {
		return 0
	}
	return b.records.Witnesses.Enough()
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// The states of a log that does not go on. A replica stays ready: its calls are answered, and their
// records are durable and wait. To leave the load balancer would help no client, and since the log is
// the same for all replicas, all of them would leave at once.
const (
	logStopped meter.State = "stopped"
	logStill   meter.State = "standing-still"
	logNoKey   meter.State = "no-key"
)

// logState says whether the log goes on.
func logState(f sequence.Figures) error {
	switch {
	case f.Stop != nil:
		return logStopped
	case f.Still >= sequence.StillAfter:
		return logStill
	case !f.Key:
		return logNoKey
	}
	return nil
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
	// A full queue withholds only the answers that it should have held.
	b.health.Warn("queue", func(ctx context.Context) error {
		if full, err := b.queue.FullShares(ctx); err == nil && len(full) > 0 {
			return meter.State("full")
		}
		return nil
	})
	if b.records != nil {
		b.health.Add("evidence", func(context.Context) error { return unready(b.records.Failing()) })
		b.health.Warn("standby", func(context.Context) error {
			if b.records.StandbyMissing() {
				return meter.State("missing")
			}
			return nil
		})
		b.health.Warn("log", func(context.Context) error { return logState(b.records.Seq.Figures()) })
	}
}

// unready is an error that says in one word why the store cannot be used.
func unready(err error) error {
	if err == nil {
		return nil
	}
	return meter.State(storage.Reason(err))
}
