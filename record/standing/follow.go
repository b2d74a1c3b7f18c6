// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// A Store has a log, and keeps snapshots of the scores that it gives: one for each
// trust.Options.Name.
type Store interface {
	Reader
	Head(ctx context.Context) (sequence.Head, error)
	// LoadScores returns the snapshot and at which size of the log it stands; nil if
	// no snapshot is stored.
	LoadScores(ctx context.Context, options string) (snapshot []byte, size int64, err error)
	// SaveScores replaces it by one of a greater size, else does nothing.
	SaveScores(ctx context.Context, options string, snapshot []byte, size int64) error
}

// How long a Follower waits.
const (
	look  = 500 * time.Millisecond // between looks at the log
	grace = 2 * time.Second        // for the process that holds the lease to report what it has added
	often = time.Second            // between snapshots
	far   = 20_000                 // records that are read again rather than saved
)

// A Follower keeps the scores of a gateway where the log is. Its methods may be called
// at the same time.
type Follower struct {
	store Store
	o     trust.Options
	log   *slog.Logger
	book  *trust.Book
	feed  chan batch

	mu     sync.Mutex
	size   int64     // of the log, up to which the scores stand
	saved  int64     // the size of the last snapshot
	moved  bool      // a score has changed since
	when   time.Time // of the last snapshot
	behind time.Time // since when the log is longer
}

// Open makes a Follower with the latest snapshot. A log whose snapshot is lost, or of
// other options, is replayed by Follow.
func Open(ctx context.Context, s Store, o trust.Options, log *slog.Logger) (*Follower, error) {
	f := &Follower{store: s, o: o.OrDefault(), log: log, book: trust.NewBook(trust.New(o)), feed: make(chan batch, 64)}
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// Book has the scores. Only the Follower may apply events to it.
func (f *Follower) Book() *trust.Book { return f.book }

// load takes over a snapshot of more of the log than is known. f.mu is held, or f new.
func (f *Follower) load(ctx context.Context) error {
	snapshot, size, err := f.store.LoadScores(ctx, f.o.Name())
	if err != nil || snapshot == nil || size <= f.size {
		return err
	}
	state, err := trust.Restore(snapshot, f.o)
	if errors.Is(err, trust.ErrSnapshot) {
		f.log.Warn("the stored trust scores are damaged: they are computed again from the log")
		return nil
	} else if err != nil {
		return err
	}
	f.book.Replace(state)
	f.size, f.saved, f.moved = size, size, false
	return nil
}

// A batch is what one integration has added.
type batch struct {
	first, size int64 // indices: size is not part of it
	events      []trust.Observation
}

// Integrated is told what this process has added to the log: sequence.Options.Integrated.
// It does not wait; what is too much for Follow is read from the log.
func (f *Follower) Integrated(entries []sequence.Entry) {
	if len(entries) == 0 {
		return
	}
	b := batch{first: entries[0].Index, size: entries[0].Index + int64(len(entries))}
	for i := range entries {
		if e, counts := Of(&entries[i].Statement.Event); counts {
			b.events = append(b.events, e)
		}
	}
	select {
	case f.feed <- b:
	default:
	}
}

// take applies a batch that goes on where the scores stand.
func (f *Follower) take(b batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.first != f.size {
		return // known already, or step reads what lies between
	}
	for _, e := range b.events {
		f.apply(e)
	}
	f.size = b.size
}

func (f *Follower) apply(e trust.Observation) {
	for _, c := range f.book.Apply(e) {
		f.moved = f.moved || c.From != c.To
	}
}

// Follow keeps up with the log until ctx ends, and saves the scores then.
func (f *Follower) Follow(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer stop()
			for len(f.feed) > 0 {
				f.take(<-f.feed)
			}
			if err := f.save(last, true); err != nil {
				f.log.Warn("trust scores of servers could not be saved: they are computed again from the log", "error", err)
			}
			return
		case b := <-f.feed:
			f.take(b)
			continue
		case <-tick.C:
		}
		err := f.step(ctx, time.Now())
		if err != nil && !failed && ctx.Err() == nil {
			f.log.Error("trust scores of servers cannot be updated from the ledger", "error", err)
		}
		failed = err != nil
	}
}

// Catch reads what the log has beyond the scores, however much it is.
func (f *Follower) Catch(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	size, err := f.end(ctx)
	if err != nil {
		return err
	}
	return f.catch(ctx, size)
}

func (f *Follower) end(ctx context.Context) (int64, error) {
	head, err := f.store.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		return 0, nil
	}
	return head.Size, err
}

func (f *Follower) catch(ctx context.Context, size int64) error {
	err := read(ctx, f.store, f.size, size, func(st *ledger.Statement) {
		if e, counts := Of(&st.Event); counts {
			f.apply(e)
		}
		f.size++
	})
	if err != nil {
		return err
	}
	f.behind = time.Time{}
	return nil
}

// step looks at the log once.
func (f *Follower) step(ctx context.Context, now time.Time) error {
	size, err := f.end(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	switch {
	case size <= f.size:
		f.behind = time.Time{}
	case f.behind.IsZero():
		f.behind = now
		err = f.load(ctx)
	default:
		if err = f.load(ctx); err == nil && size > f.size && now.Sub(f.behind).Abs() >= grace {
			err = f.catch(ctx, size)
		}
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.save(ctx, false)
}

// save writes a snapshot, if it is of any use.
func (f *Follower) save(ctx context.Context, last bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	due := f.moved && (last || time.Since(f.when).Abs() >= often) || f.size >= f.saved+far
	if !due || f.size <= f.saved {
		return nil
	}
	if err := f.store.SaveScores(ctx, f.o.Name(), f.book.Snapshot(), f.size); err != nil {
		return fmt.Errorf("standing: save: %w", err)
	}
	f.saved, f.moved, f.when = f.size, false, time.Now()
	return nil
}
