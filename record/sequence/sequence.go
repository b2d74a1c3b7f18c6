// SPDX-License-Identifier: Apache-2.0

// Package sequence appends waiting records to a log: the process that holds the lease of the log numbers, adds and signs them.
//
// Any number of processes may run a [Sequencer] on one store. One of them holds the lease.
//
//   - A holder raises the beat of the lease (package lease) with everything that it does. Another process
//     takes the lease over when it has seen no new beat for [Options].TTL by its own clock.
//   - A process that has lost the lease without noticing it cannot change the log: every
//     integration checks the number of the lease and the size of the log in its own transaction.
//   - The holder gives the lease back when nothing waits, so that an idle log costs no write.
package sequence

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// Options are what a Sequencer is made of. The zero value of each member but Store,
// Origin and Keys is its default.
type Options struct {
	Store  Store
	Origin string // name of the log, if this process may begin it; "": another process begins it
	Keys   Keys
	Chain  *ChainKey // authenticates the records that wait; nil: they are not checked

	Gather time.Duration // pause after a record, in which others may join its batch; 0 = 200 ms
	Poll   time.Duration // pause between looks for records that other processes have stored; 0 = 500 ms
	TTL    time.Duration // time without a beat after which the lease is taken over; 0 = 3 s
	batch  int           // records in one integration; 0 = 2,048

	// Seen remembers the largest checkpoint that was seen of the log; nil: this process does, in memory.
	Seen *Seen
	// Ask asks witnesses what they have seen, before this process first adds to a copy of
	// the log that it does not know; nil is the answer where nothing contradicts the log. It may be nil.
	Ask func(ctx context.Context, head Head) *Stop
	// Window is how long a process waits before it first adds to a copy of the log that it does not
	// know, so that any other process can stop the log; 0 = 2 s. A store with one copy needs no window.
	Window time.Duration

	// Published gets every new checkpoint that this process has signed. It must not block. It may be nil.
	Published func(checkpoint []byte)

	// Integrated gets the records that were added to the log, in order, each with its Statement.
	// It must not keep any of it. It may be nil.
	Integrated func([]Entry)

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // of the sequencer's own records and for waiting; nil: time.Now
}

// Keys finds the private keys of a log.
type Keys interface {
	// First returns the key that a new log begins with.
	First(origin string) (*ledger.Signer, error)
	// Find returns the key of that keyid; ErrNoKey if it is not here.
	Find(origin, keyid string) (*ledger.Signer, error)
}

// ErrNoKey means that this process cannot sign for the log: another one has to.
var ErrNoKey = errors.New("sequence: the log's key is not here")

// ErrStopped means that a checkpoint was seen which the stored log contradicts: the database has lost
// records of the log, after a failover or a restore. No record is added to it.
var ErrStopped = errors.New("sequence: the log is stopped: the database does not have a part of the log that was published")

// ErrStill means that records wait, and no process adds them to the log.
var ErrStill = errors.New("sequence: the log stands still: records wait, and no process that has its key adds them")

// StillAfter is how long a log may stand still before it is reported: longer than a takeover takes.
const StillAfter = 10 * time.Second

// ErrStored means that the stored log does not fit its checkpoint. No record is added to
// it. pellucid ledger verify says what is wrong.
var ErrStored = errors.New("sequence: the stored log does not fit its checkpoint")

// maxBytes bounds the bytes of a batch that are read at once.
const maxBytes = 16 << 20

// A Sequencer adds records to a log. Its methods are safe for concurrent use.
type Sequencer struct {
	o      Options
	holder string
	wake   chan struct{}

	turn  chan struct{} // a lock of the members below, which a context can end
	held  *Head         // nil: this process does not hold the lease
	tree  *ledger.Tree  // of held
	key   *ledger.Signer
	idle  time.Time   // since when nothing waits
	seen  Head        // the last time that something waited here
	watch lease.Watch // of the lease of another process
	slow  bool        // an integration has failed: look first for records that the log has already

	epoch  string    // of the copy of the log that was looked at last
	after  time.Time // before then this process does not add to that copy
	asked  bool      // witnesses were asked about it
	looked time.Time // when the log was looked at last

	size, integrated atomic.Int64
	last             atomic.Int64 // when nothing waited last, Unix nanoseconds
	moved            atomic.Int64 // when nothing waited, or the log grew, last, Unix nanoseconds
	waits            atomic.Bool  // records waited at the last look
	keyless          atomic.Bool  // the key of the log was not found at the last look
	stop             atomic.Pointer[Stop]
}

// New makes a Sequencer.
func New(o Options) *Sequencer {
	o.Gather = cmp.Or(max(o.Gather, 0), 200*time.Millisecond)
	o.Poll = cmp.Or(max(o.Poll, 0), 500*time.Millisecond)
	o.TTL = cmp.Or(max(o.TTL, 0), 3*time.Second)
	o.batch = cmp.Or(max(o.batch, 0), 2048)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Window = cmp.Or(max(o.Window, 0), 2*time.Second)
	if o.Seen == nil {
		o.Seen = &Seen{}
	}
	s := &Sequencer{o: o, holder: lease.NewHolder(), watch: lease.Watch{Gone: o.TTL}, wake: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	s.last.Store(o.Now().UnixNano())
	s.moved.Store(o.Now().UnixNano())
	return s
}

// Wake tells the Sequencer that a record waits. It does not block.
func (s *Sequencer) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Figures are what a Sequencer has seen of its log.
type Figures struct {
	Size       int64         // of the log
	Integrated int64         // records that this process has added
	Lag        time.Duration // for how long something has been waiting
	Still      time.Duration // for how long records have been waiting while the log did not grow
	Key        bool          // this process has the key of the log, as far as it has looked
	Stop       *Stop         // why the log is stopped; nil: it is not
}

// Figures returns them as they are now.
func (s *Sequencer) Figures() Figures {
	lag := s.o.Now().Sub(time.Unix(0, s.last.Load()))
	if lag <= s.o.Poll+s.o.Gather { // within what is looked for
		lag = 0
	}
	still := time.Duration(0)
	if s.waits.Load() {
		still = max(0, s.o.Now().Sub(time.Unix(0, s.moved.Load())))
	}
	return Figures{s.size.Load(), s.integrated.Load(), lag, still, !s.keyless.Load(), s.stop.Load()}
}

// Run carries the log on until ctx ends, and then a last time, so that what this
// process has stored does not have to wait for another.
func (s *Sequencer) Run(ctx context.Context) {
	quiet := quiet{log: s.o.Log, now: s.o.Now}
	for {
		more, err := s.Once(ctx)
		if ctx.Err() != nil {
			break
		}
		quiet.note(s.told(err))
		wait, wake := s.o.Poll, s.wake
		switch {
		case err == nil && more:
			continue
		case err != nil:
			wake = nil // a busy caller must not make a broken store busier
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
			continue
		case <-wake:
			_ = backoff.Sleep(ctx, s.o.Gather) // more comes meanwhile
		}
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), lastWait)
	defer stop()
	if err := s.Flush(last); err != nil {
		s.o.Log.Warn("records wait in the store: the process that holds the lease of the log adds them", "error", err)
	}
}

// told is what is logged of the outcome of one look. That the key is not here is no fault while
// another process adds the records.
func (s *Sequencer) told(err error) error {
	still := s.Figures().Still
	switch {
	case errors.Is(err, ErrNoKey) && still < StillAfter:
		return nil
	case err == nil && still >= StillAfter:
		return ErrStill
	}
	return err
}

// lastWait bounds what a process that ends still does for the log.
const lastWait = 2 * time.Second

// Flush integrates all that waits and gives the lease back. Where another process
// holds it, nothing is done: it will see to it.
func (s *Sequencer) Flush(ctx context.Context) error {
	for {
		more, err := s.Once(ctx)
		if err != nil {
			return err
		}
		if more {
			continue
		}
		if wait := s.window(ctx); wait <= 0 {
			break
		} else if err := backoff.Sleep(ctx, wait); err != nil {
			return err
		}
	}
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	return errors.Join(s.release(ctx), s.o.Seen.flush())
}

// window is how long this process must not yet add the records that wait; 0 where nothing waits or
// another process adds them.
func (s *Sequencer) window(ctx context.Context) time.Duration {
	if s.lock(ctx) != nil {
		return 0
	}
	defer s.unlock()
	if !s.waits.Load() || s.held != nil || s.seen.Lease.Holder != "" && s.seen.Lease.Holder != s.holder {
		return 0
	}
	return s.after.Sub(s.o.Now())
}

func (s *Sequencer) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *Sequencer) unlock() { <-s.turn }

// Once integrates at most one batch, if the lease is or becomes ours. more says that
// something still waits which we could integrate.
func (s *Sequencer) Once(ctx context.Context) (more bool, err error) {
	if err := s.lock(ctx); err != nil {
		return false, err
	}
	defer s.unlock()
	waiting, err := s.o.Store.Pending(ctx, s.o.batch, maxBytes)
	if err != nil {
		return false, err
	}
	now := s.o.Now()
	s.waits.Store(len(waiting) > 0)
	if len(waiting) == 0 {
		s.last.Store(now.UnixNano())
		s.moved.Store(now.UnixNano())
		if s.held == nil && now.Sub(s.looked).Abs() >= lookEvery {
			if _, err := s.look(ctx); err != nil && !errors.Is(err, ErrNoLog) {
				return false, err
			}
		}
		if s.held != nil && now.Sub(s.idle).Abs() > s.o.Poll {
			return false, s.release(ctx)
		}
		return false, nil
	}
	s.idle = now
	if s.held == nil {
		if ours, err := s.claim(ctx, false); err != nil || !ours {
			return false, err
		}
		// What was read before the lease was ours may be in the log by now.
		if waiting, err = s.o.Store.Pending(ctx, s.o.batch, maxBytes); err != nil || len(waiting) == 0 {
			return false, err
		}
	}
	err = s.integrateWaiting(ctx, waiting)
	if err != nil {
		s.drop()
		s.slow = true
		if errors.Is(err, ErrLost) {
			return false, nil
		}
		return false, err
	}
	s.slow = false
	if len(waiting) < s.o.batch {
		s.last.Store(now.UnixNano())
		s.waits.Store(false)
		return false, nil
	}
	return true, nil
}

// Carry puts records that no other change goes with into the log at once, while the
// lease is ours: that saves writing each of them three times, and reading it again.
// Where it returns false they are for Store.Add; should the log have them all the same,
// they come into it once. It takes longer than Store.Add, so it is for records that no
// caller waits for.
func (s *Sequencer) Carry(ctx context.Context, records []ledger.Sealed) bool {
	if s.lock(ctx) != nil {
		return false
	}
	defer s.unlock()
	if s.held == nil || s.slow {
		return false
	}
	s.idle = s.o.Now()
	if s.integrate(ctx, nil, nil, len(records), func(i int) (ledger.Sealed, error) { return records[i], nil }) != nil {
		s.drop()
		return false
	}
	return true
}

// drop forgets what was known of the log.
func (s *Sequencer) drop() { s.held, s.tree, s.key = nil, nil, nil }

func (s *Sequencer) release(ctx context.Context) error {
	if s.held == nil {
		return nil
	}
	held := *s.held
	s.drop()
	if err := s.o.Store.Release(ctx, held); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	return nil
}

// quiet logs an error once, until it is another one or some time has passed.
type quiet struct {
	log  *slog.Logger
	now  func() time.Time
	last string
	at   time.Time
}

// remedy says what the operator can do.
func remedy(err error) string {
	switch {
	case errors.Is(err, ErrStopped):
		return "bring back the database that has the whole log, or run pellucid ledger restore; docs/evidence.md explains both"
	case errors.Is(err, ErrNoKey), errors.Is(err, ErrStill):
		return "set evidence.key at every replica, or start a replica that has the key"
	case errors.Is(err, ErrStored):
		return "run pellucid ledger verify"
	}
	return "check the database"
}

func (q *quiet) note(err error) {
	if err == nil {
		if q.last != "" {
			q.log.Info("records are added to the ledger again")
		}
		q.last = ""
		return
	}
	if text := err.Error(); text != q.last || q.now().Sub(q.at).Abs() > time.Minute {
		q.last, q.at = text, q.now()
		q.log.Error("records cannot be added to the ledger: they wait in the store", "error", err, "do", remedy(err))
	}
}
