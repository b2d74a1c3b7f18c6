// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// ErrNoLog says that there is no log of evidence.
var ErrNoLog = errors.New("ledger: there is no log yet: nothing was ever recorded")

// WithLog calls do with the log of the database as it is.
func (d Database) WithLog(do func(context.Context, *storage.Ledger, *state.Dir) error) error {
	err := d.withStore(func(ctx context.Context, dir *state.Dir, s *storage.Store) error {
		return do(ctx, s.Ledger(), dir)
	})
	switch {
	case errors.Is(err, ErrNoStore):
		return fmt.Errorf("%w: %w", ErrNoLog, err)
	case errors.Is(err, sequence.ErrNoLog):
		return ErrNoLog
	case errors.Is(err, storage.ErrUnavailable), errors.Is(err, storage.ErrBusy):
		return exit.With(exit.Unreachable, err)
	}
	return err
}

// WithIntegratedLog calls do with the log of the database, once the records that wait are
// part of it. Where the key is not here, or another process carries the log on, do gets the
// log without them.
func (d Database) WithIntegratedLog(do func(context.Context, *storage.Ledger, *state.Dir) error) error {
	return d.WithLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		seq, err := local.Carrier(l, dir, nil)
		if err != nil {
			return err
		}
		// The process that holds the lease does so otherwise, and verify says whether what
		// is stored fits together.
		_ = seq.Flush(ctx)
		return do(ctx, l, dir)
	})
}

// WithIntegrated calls do with the store, once the records that wait are part of its log, if it has
// one: this process adds them, or the one that carries the log on does, for which it waits a while.
func (d Database) WithIntegrated(do func(context.Context, *storage.Store) error) error {
	return d.withStore(func(ctx context.Context, dir *state.Dir, s *storage.Store) error {
		seq, err := local.Carrier(s.Ledger(), dir, nil)
		if err != nil {
			return err
		}
		_ = seq.Flush(ctx) // as in WithIntegratedLog
		settled(ctx, s.Ledger())
		err = do(ctx, s)
		if local.StoreAway(err) {
			return exit.With(exit.Unreachable, err)
		}
		return err
	})
}

// settled waits until the records that wait now are part of the log, at most IntegrateWait.
func settled(ctx context.Context, l *storage.Ledger) {
	n, err := l.Waiting(ctx, 1000)
	oldest, err2 := l.Pending(ctx, 1, 1)
	if err != nil || err2 != nil || n == 0 || len(oldest) == 0 {
		return // what is wrong with the store is told by what comes next
	}
	last := oldest[0].Seq + int64(n)
	for end := time.Now().Add(IntegrateWait); time.Now().Before(end); {
		if backoff.Sleep(ctx, 50*time.Millisecond) != nil {
			return
		}
		if next, err := l.Pending(ctx, 1, 1); err != nil || len(next) == 0 || next[0].Seq >= last {
			return
		}
	}
}

// IntegrateWait is how long a verb waits for another process that carries the log on: longer
// than its lease lasts where it has died.
const IntegrateWait = 5 * time.Second
