// SPDX-License-Identifier: Apache-2.0

// Package lease lets one process at a time do what only one may do, among processes that share a database.
//
//   - A lease is a row of the database: its name, its holder, a fence that grows with every holder, and a
//     beat, which the holder raises once a second.
//   - Another process takes a lease over when it has looked at it again and again for [gone], and has seen
//     the same beat each time by its own clock. Clocks of different machines are never compared, and no
//     clock is used that a person or a time server can set.
//   - A holder that could not raise its beat for [lapse], which is shorter, knows that another process may
//     have taken the lease over. It does nothing under the lease until it has raised its beat again, or
//     learns that the lease is lost. A store refuses whatever a former holder changes under its holder's name.
package lease

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// Times of a lease.
const (
	every = time.Second     // between two beats
	lapse = 4 * time.Second // without a beat, after which the holder stops
	gone  = 6 * time.Second // without a new beat, after which others take the lease over
	blind = 3 * time.Second // without a look, after which an observation begins anew
)

// A Row is what the database says of one lease. A lease that was never held has no row, and is free.
type Row struct {
	Name    string
	Holder  string // random; "": the lease is free
	Fence   int64  // grows with every holder
	Beat    int64  // grows with every sign of life of the holder
	Address string // HOST:PORT at which other processes reach the holder; "": they need not
}

// A Store keeps the rows.
type Store interface {
	// Leases returns the rows whose names begin with a prefix.
	Leases(ctx context.Context, prefix string) ([]Row, error)
	// ClaimLease makes holder the holder of a lease whose row is still as the caller has seen it, and
	// returns the new row. It returns ErrLost where it is another one.
	ClaimLease(ctx context.Context, seen Row, holder, address string) (Row, error)
	// BeatLease raises the beat of a lease, if held.Holder holds it; otherwise it returns ErrLost.
	BeatLease(ctx context.Context, held Row) error
	// FreeLease frees a lease that seen.Holder holds. With still it does so only while the lease has the beat of
	// seen. It returns ErrLost where it did nothing. A lease with an address leaves no row: its name may never come back.
	FreeLease(ctx context.Context, seen Row, still bool) error
}

// ErrLost means that another process holds the lease, or that none does.
var ErrLost = errors.New("lease: this process does not hold the lease")

// ErrTaken means that another process holds the lease.
var ErrTaken = errors.New("lease: another process holds the lease")

// ErrLapsed means that the database has not taken the beat of this process in time.
var ErrLapsed = errors.New("lease: the lease of this process has lapsed: the database has not answered in time")

// NewHolder returns a name that no other holder has.
func NewHolder() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// A Watch observes one lease. The zero value has seen nothing.
type Watch struct {
	Gone time.Duration // instead of 6 s; 0 stands for that

	clock        func() time.Duration // nil: sinceBoot
	row          Row
	since, looks time.Duration // when this beat was first seen, and when it was last looked at
}

// Stopped is told the row as it was just read. It reports whether the holder's beat has stood still for so long
// that the holder has ended. An observation begins anew where it was interrupted: the database may have been
// away for the holder too.
func (w *Watch) Stopped(row Row) bool {
	now := clockOr(w.clock)()
	limit := cmp.Or(w.Gone, gone)
	if row != w.row || now-w.looks > min(blind, limit) {
		w.row, w.since = row, now
	}
	w.looks = now
	return now-w.since >= limit
}

func clockOr(clock func() time.Duration) func() time.Duration {
	if clock == nil {
		return sinceBoot
	}
	return clock
}

// Options are what a Lease is made of.
type Options struct {
	Store Store
	Kind  string // leases whose names begin with it are observed too: their holders are known by Others
	Name  string // follows Kind
	// Address is where other processes reach this one. The process before it at the same address has ended.
	Address string
	// Lost is called after another process may have begun to do what this one did under the lease. It must not wait for
	// the Lease. nil: it is not called.
	Lost func()
	Log  *slog.Logger // nil: nothing is logged

	every, lapse, gone time.Duration
	clock              func() time.Duration // since any moment; nil: sinceBoot
}

// A Lease is one that this process holds, or wants. Its methods are safe for concurrent use.
type Lease struct {
	o    Options
	wake chan struct{}

	turn  sync.Mutex // held while the store is asked
	first bool       // nothing was claimed yet
	seen  map[string]*Watch

	mu      sync.Mutex
	row     Row
	held    bool          // the row names this process, as far as it knows
	ok      time.Duration // when the last beat began that succeeded
	others  []Row
	change  chan struct{} // closed when held or ok changes
	failing bool          // the last look failed, and the log says so
}

// New returns a Lease that is not held yet.
func New(o Options) *Lease {
	o.every, o.lapse, o.gone = cmp.Or(o.every, every), cmp.Or(o.lapse, lapse), cmp.Or(o.gone, gone)
	o.clock = clockOr(o.clock)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Lost == nil {
		o.Lost = func() {}
	}
	return &Lease{o: o, wake: make(chan struct{}, 1), first: true, seen: map[string]*Watch{}, change: make(chan struct{}),
		row: Row{Name: o.Kind + o.Name, Holder: NewHolder()}}
}

// Look reads the lease, and raises its beat where this process holds it, or claims it where it is free or its
// holder has ended.
func (l *Lease) Look(ctx context.Context) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	began := l.o.clock()
	rows, err := l.o.Store.Leases(ctx, l.o.Kind+l.only())
	if err != nil {
		return err
	}
	own := Row{Name: l.row.Name}
	var others []Row
	for _, r := range rows {
		switch {
		case r.Name == own.Name:
			own = r
		case r.Holder == "" || l.o.Kind == "":
		case !l.stopped(r):
			others = append(others, r)
		default:
			l.free(ctx, r)
		}
	}
	next, err := l.renew(ctx, own)
	lost := errors.Is(err, ErrLost)
	l.mu.Lock()
	l.others = others
	switch {
	case err == nil:
		l.row, l.held, l.ok, l.first = next, true, began, false
		close(l.change)
		l.change = make(chan struct{})
	case lost:
		lost = l.held
		l.row, l.held = Row{Name: own.Name, Holder: NewHolder()}, false
		err = nil
	}
	l.mu.Unlock()
	if lost {
		l.o.Log.Warn("a lease of this process is lost: another process took it for gone, and may have taken over what it did", "lease", l.row.Name)
		l.o.Lost()
	}
	return err
}

// Join claims the lease, and waits no longer than ctx for a process that holds it. It returns ErrTaken where one
// still does.
func (l *Lease) Join(ctx context.Context) error {
	for {
		err := l.Look(ctx)
		if err != nil || l.Held() {
			return err
		}
		if backoff.Sleep(ctx, l.o.every) != nil {
			return ErrTaken
		}
	}
}

// only is what the names begin with that are read beside Kind.
func (l *Lease) only() string {
	if l.o.Kind != "" {
		return ""
	}
	return l.o.Name
}

// renew raises the beat of the own lease, or claims it. It returns ErrLost where another process holds it.
func (l *Lease) renew(ctx context.Context, own Row) (Row, error) {
	stopped := l.stopped(own)
	switch {
	case own.Holder == l.row.Holder:
		own.Beat++
		return own, l.o.Store.BeatLease(ctx, own)
	case l.held:
		return own, ErrLost
	case own.Holder == "", stopped, l.first && own.Address != "" && own.Address == l.o.Address:
		return l.o.Store.ClaimLease(ctx, own, l.row.Holder, l.o.Address)
	}
	return own, ErrLost
}

// stopped reports whether the holder of a lease has ended.
func (l *Lease) stopped(r Row) bool {
	w := l.seen[r.Name]
	if w == nil {
		w = &Watch{Gone: l.o.gone, clock: l.o.clock}
		l.seen[r.Name] = w
	}
	return w.Stopped(r)
}

// free frees the lease of a process that has ended, unless it has raised its beat meanwhile.
func (l *Lease) free(ctx context.Context, r Row) {
	if l.o.Store.FreeLease(ctx, r, true) != nil {
		return // the next look finds out
	}
	delete(l.seen, r.Name)
	l.o.Log.Warn("a process has stopped: others take over what it had", "lease", shown(r.Name), "address", shown(r.Address))
}

// shown is a value of another process's row, for the log.
func shown(s string) string { return fmt.Sprintf("%+q", s[:min(len(s), 64)]) }

// Run looks until ctx ends, once a second.
func (l *Lease) Run(ctx context.Context) {
	tick := time.NewTicker(l.o.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.wake:
		}
		wait, stop := context.WithTimeout(ctx, l.o.lapse/2)
		err := l.Look(wait)
		stop()
		if ctx.Err() == nil {
			l.note(err)
		}
	}
}

// note logs the first failure of a series, and its end.
func (l *Lease) note(err error) {
	l.mu.Lock()
	before := l.failing
	l.failing = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !before:
		l.o.Log.Error("the database does not take the sign of life of this process: after a few seconds others take over what it has", "lease", l.o.Kind+l.o.Name, "error", err)
	case err == nil && before:
		l.o.Log.Info("the database takes the sign of life of this process again", "lease", l.o.Kind+l.o.Name)
	}
}

// Held reports whether this process holds the lease.
func (l *Lease) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isHeld()
}

// isHeld is Held while l.mu is held.
func (l *Lease) isHeld() bool { return l.held && l.o.clock()-l.ok < l.o.lapse }

// Holder is the name under which this process holds the lease, or held it last.
func (l *Lease) Holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.row.Holder
}

// Await returns the holder's name once this process holds the lease. Run must be under way. It waits no longer
// than ctx.
func (l *Lease) Await(ctx context.Context) (holder string, err error) {
	for {
		l.mu.Lock()
		holder, held, change := l.row.Holder, l.isHeld(), l.change
		l.mu.Unlock()
		if held {
			return holder, nil
		}
		select {
		case l.wake <- struct{}{}:
		default:
		}
		select {
		case <-change:
		case <-ctx.Done():
			return "", ErrLapsed
		}
	}
}

// Others are the leases of the same kind that other processes hold, as of the last look.
func (l *Lease) Others() []Row {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.others
}

// Find returns the row of the lease of the same kind that has the name. Where no process holds it, the row names
// no holder.
func (l *Lease) Find(ctx context.Context, name string) (Row, error) {
	rows, err := l.o.Store.Leases(ctx, l.o.Kind+name)
	for _, r := range rows {
		if r.Name == l.o.Kind+name {
			return r, err
		}
	}
	return Row{}, err
}

// Release frees the lease. Nothing must run under it any more, and Run must have ended.
func (l *Lease) Release(ctx context.Context) error {
	l.turn.Lock()
	defer l.turn.Unlock()
	l.mu.Lock()
	row, held := l.row, l.held
	l.row, l.held = Row{Name: row.Name, Holder: NewHolder()}, false
	l.mu.Unlock()
	if !held {
		return nil
	}
	if err := l.o.Store.FreeLease(ctx, row, false); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// Hold looks at the lease, runs f if this process holds it, and frees it again. It returns at once where another
// process holds it. The context of f ends where the lease is lost, or has lapsed.
func (l *Lease) Hold(ctx context.Context, f func(ctx context.Context)) error {
	look, stop := context.WithTimeout(ctx, l.o.lapse/2)
	err := l.Look(look)
	stop()
	if err != nil || !l.Held() {
		return err
	}
	run, end := context.WithCancel(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { l.Run(run) })
	beats.Go(func() { // ends f where Run cannot keep the lease
		for run.Err() == nil && l.Held() {
			select {
			case <-run.Done():
			case <-time.After(l.o.every / 4):
			}
		}
		end()
	})
	f(run)
	end()
	beats.Wait()
	free, stop := context.WithTimeout(context.WithoutCancel(ctx), l.o.lapse/2)
	defer stop()
	return l.Release(free)
}
