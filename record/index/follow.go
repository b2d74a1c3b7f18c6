// SPDX-License-Identifier: Apache-2.0

package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// How a Follower works.
const (
	often     = 500 * time.Millisecond // between transactions, so that the log's own have the store
	grace     = 3 * time.Second        // for the process that has added records to index them too
	largest   = 1024                   // rows of a transaction beside a serving process
	wholesale = 4096                   // rows of a transaction of Catch
	keep      = 16 << 10               // rows that wait in memory; what is more is read from the log
)

// A Follower keeps the index of a store up to its log.
type Follower struct {
	store Store
	log   *slog.Logger

	mu      sync.Mutex
	waiting []pending // consecutive rows that this process has added to the log
}

type pending struct {
	row     Row
	opening []byte
}

// NewFollower makes one. It begins where the index stands.
func NewFollower(s Store, log *slog.Logger) *Follower { return &Follower{store: s, log: log} }

// Integrated is told what this process has added to the log: sequence.Options.Integrated.
// It does not wait; what is too much is read from the log.
func (f *Follower) Integrated(entries []sequence.Entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range entries {
		e := &entries[i]
		if n := len(f.waiting); n >= keep || n > 0 && f.waiting[n-1].row.Index+1 != e.Index {
			f.waiting = f.waiting[:0]
		}
		f.waiting = append(f.waiting, pending{RowOf(e.Index, e.Statement, nil), bytes.Clone(e.Opening)})
	}
}

// take returns the rows that wait from an index on, at most n, with their openings read; nil where
// they begin later.
func (f *Follower) take(at int64, n int) []Row {
	f.mu.Lock()
	defer f.mu.Unlock()
	skip := 0
	for skip < len(f.waiting) && f.waiting[skip].row.Index < at {
		skip++
	}
	f.waiting = append(f.waiting[:0], f.waiting[skip:]...)
	if len(f.waiting) == 0 || f.waiting[0].row.Index != at {
		return nil
	}
	rows := make([]Row, min(n, len(f.waiting)))
	for i := range rows {
		rows[i] = f.waiting[i].row
		rows[i].open(f.waiting[i].opening)
	}
	return rows
}

func (f *Follower) idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.waiting) == 0
}

// Follow keeps the index up to the log until ctx ends, and indexes then what this process has added.
func (f *Follower) Follow(ctx context.Context) {
	tick := time.NewTicker(often)
	defer tick.Stop()
	var behind time.Time // since when the log is longer and the rows are not here
	looked := time.Now()
	failed := false
	for {
		select {
		case <-ctx.Done():
			last, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer stop()
			for more := true; more; {
				var err error
				if more, err = f.own(last); err != nil || last.Err() != nil { // what is left, another process reads from the log
					return
				}
			}
			return
		case <-tick.C:
		}
		more, err := f.own(ctx)
		if !more && err == nil && time.Since(looked) >= grace {
			looked = time.Now()
			behind, err = f.others(ctx, behind)
		}
		if err != nil && !failed && ctx.Err() == nil {
			f.log.Error("records cannot be added to the index: searches do not show the latest ones", "error", err)
		}
		failed = err != nil
	}
}

// own indexes rows that this process has added to the log, and reports whether there may be more.
func (f *Follower) own(ctx context.Context) (more bool, err error) {
	if f.idle() {
		return false, nil
	}
	at, err := f.store.Indexed(ctx)
	if err != nil {
		return false, err
	}
	rows := f.take(at, largest)
	if len(rows) == 0 {
		return false, nil // indexed by another process, or what lies between is read from the log
	}
	err = f.store.Index(ctx, at, rows)
	if errors.Is(err, ErrMoved) {
		return true, nil
	}
	return len(rows) == largest, err
}

// others reads from the log what stays out of the index for longer than grace. behind is since when.
func (f *Follower) others(ctx context.Context, behind time.Time) (time.Time, error) {
	st, err := Look(ctx, f.store)
	switch {
	case err != nil:
		return behind, err
	case st.Behind() == 0:
		return time.Time{}, nil
	case behind.IsZero():
		return time.Now(), nil
	case time.Since(behind) < grace:
		return behind, nil
	}
	for st.Behind() > 0 {
		began := time.Now()
		n, err := f.read(ctx, st.Indexed, int(min(largest, st.Behind())))
		if err != nil {
			return behind, err
		}
		if st.Indexed += n; n == 0 { // another process does the same
			return time.Now(), nil
		}
		if err := backoff.Sleep(ctx, time.Since(began)); err != nil { // the log's own transactions come first
			return behind, nil
		}
	}
	return time.Time{}, nil
}

// read indexes n records of the log from at on, and returns how many; 0: another process has.
func (f *Follower) read(ctx context.Context, at int64, n int) (int64, error) {
	entries, err := f.store.Span(ctx, at, n)
	if err != nil {
		return 0, err
	}
	if len(entries) == 0 || entries[0].Index != at {
		return 0, fmt.Errorf("index: read record %d: %w", at, ledger.ErrNotFound)
	}
	rows := make([]Row, 0, len(entries))
	for i := range entries {
		if entries[i].Index != at+int64(i) {
			break
		}
		rows = append(rows, RowOfEntry(&entries[i]))
	}
	err = f.store.Index(ctx, at, rows)
	if errors.Is(err, ErrMoved) {
		return 0, nil
	}
	return int64(len(rows)), err
}

// Look says how far the index of a store is.
func Look(ctx context.Context, s Store) (st Status, err error) {
	if st.Indexed, err = s.Indexed(ctx); err != nil {
		return st, err
	}
	head, err := s.Head(ctx)
	if errors.Is(err, sequence.ErrNoLog) {
		return st, nil
	}
	st.Log = head.Size
	return st, err
}

// Catch indexes what the log has now, however much it is. tell, if not nil, is called after each step.
func (f *Follower) Catch(ctx context.Context, tell func(Status)) error {
	for {
		st, err := Look(ctx, f.store)
		if err != nil || st.Behind() == 0 {
			return err
		}
		if tell != nil {
			tell(st)
		}
		n, err := f.read(ctx, st.Indexed, int(min(wholesale, st.Behind())))
		if err == nil && n == 0 { // another process is at it
			err = backoff.Sleep(ctx, often/10)
		}
		if err != nil {
			return err
		}
	}
}
