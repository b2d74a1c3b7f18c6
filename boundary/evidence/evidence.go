// SPDX-License-Identifier: Apache-2.0

// Package evidence turns what the boundary decides into records of the ledger.
//
// A decision about a message goes through a [Recorder]: best effort, so that nobody
// waits for it, or required, so that nothing is delivered before it is durable. What
// changes the state of a store (a held result, a pin) is recorded by
// the store itself, in the transaction of the change; the Recorder only words it.
package evidence

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Store takes records that are to go into the ledger: those of one call all or none.
// They are durable when it returns nil.
type Store interface {
	Add(ctx context.Context, records [][]byte) error
}

// A Direct carries records into the ledger at once, all or none, or says that it has
// not: then they are for the Store, even if they are in the ledger all the same.
type Direct interface {
	Carry(ctx context.Context, records []ledger.Sealed) bool
}

// Options are what a Recorder is made of. The zero value of each member but Store is
// its default.
type Options struct {
	Store Store
	// Direct may take the records of BestEffort before Store is asked; nil: it does not.
	Direct Direct

	// BestEffort: Record returns at once, and what cannot be written is counted and
	// told in the ledger once that can be written again. Otherwise Record returns when
	// the record is durable, or an error.
	BestEffort bool

	// Unwritten is called under BestEffort, by one goroutine, when records begin to wait that would be lost if the
	// process were killed, and when none waits any more. It may be nil.
	Unwritten func(some bool)

	// MarkKey is the secret for the marks of contents that lower a score of trust. All processes that write one log
	// have the same, so that a content counts once.
	MarkKey []byte

	queue  int           // records that wait to be written; 8,192
	group  int           // records of one transaction; 1,024
	gather time.Duration // how long a record of BestEffort waits for more before it is written; 15 ms
	wait   time.Duration // how long Record waits, and one attempt to write; 5 s
	brief  time.Duration // the same while the store fails; 900 ms
	retry  time.Duration // between attempts of BestEffort; 500 ms

	Wake func()           // called when something was written; it must not block
	Log  *slog.Logger     // nil: nothing is logged
	now  func() time.Time // nil: time.Now
}

// errNotRecorded is wrapped by the error of Record: nobody can say whether the record
// is there. A further one that says that nothing was delivered follows, once it can.
var errNotRecorded = errors.New("evidence: decision not recorded")

// A Recorder is a gateway.Sink. It is safe for concurrent use.
type Recorder struct {
	o     Options
	rules atomic.Pointer[string]

	queue  chan job
	done   chan struct{} // closed once all that was in queue is written, or given up
	giveUp chan struct{} // closed once Close waits no longer

	mu     sync.RWMutex // of closed, against sending on queue
	closed bool

	recorded, failed atomic.Int64
	lost             atomic.Int64 // not yet told in the ledger
	lostAll          atomic.Int64
	away             atomic.Pointer[error] // why the last attempt to write failed; nil: it did not

	late sync.Mutex
	open map[ledger.ID]*ledger.Event // messages whose records wait, and may yet say more
}

type job struct {
	record ledger.Sealed
	event  *ledger.Event // yet to be sealed; nil: record
	done   chan error    // nil: nobody waits
	at     time.Time     // since when it waits
}

// New starts a Recorder.
func New(o Options) *Recorder {
	o.gather = cmp.Or(max(o.gather, 0), 15*time.Millisecond)
	o.wait = cmp.Or(max(o.wait, 0), 5*time.Second)
	o.brief = cmp.Or(max(o.brief, 0), 900*time.Millisecond)
	o.retry = cmp.Or(max(o.retry, 0), 500*time.Millisecond)
	o.queue = cmp.Or(max(o.queue, 0), 8192)
	o.group = cmp.Or(max(o.group, 0), 1024)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.Unwritten == nil || !o.BestEffort {
		o.Unwritten = func(bool) {}
	}
	if o.Wake == nil {
		o.Wake = func() {}
	}
	r := &Recorder{o: o, queue: make(chan job, o.queue), done: make(chan struct{}), giveUp: make(chan struct{}), open: map[ledger.ID]*ledger.Event{}}
	r.rules.Store(new(string))
	go r.write()
	return r
}

// Rules names the rules in force, which every record from now on names.
func (r *Recorder) Rules(version string) { r.rules.Store(&version) }

// Figures are what a Recorder has done.
type Figures struct {
	Queued   int   // records that wait to be written
	recorded int64 // records that were written
	Lost     int64 // records that never will be
}

// Figures returns them as they are now.
func (r *Recorder) Figures() Figures {
	return Figures{len(r.queue), r.recorded.Load(), r.lostAll.Load()}
}

// Record implements gateway.Sink.
func (r *Recorder) Record(d gateway.Decision) error {
	e := Message(&d)
	if w := would(&d); w != nil {
		r.Note(w)
	}
	if r.o.BestEffort {
		r.leaveOpen(e)
		r.Note(e)
		return nil
	}
	err := r.require(e, d.Wait)
	if err != nil {
		// Should the record be there all the same, this one corrects it.
		r.Note(&ledger.Event{Kind: ledger.Message, Of: e.ID, Server: e.Server, Tool: e.Tool, Method: e.Method, Shape: e.Shape,
			Verdict: string(gateway.Withheld), Reason: "not-recorded"})
	}
	return err
}

// Note records an event without waiting. What does not fit into the queue is lost, and
// its loss is told.
func (r *Recorder) Note(e *ledger.Event) {
	if !r.send(job{event: e}, nil) {
		r.shut(e)
		r.lose(1)
	}
}

// Require records an event and returns when it is durable.
func (r *Recorder) Require(e *ledger.Event) error { return r.require(e, 0) }

// require is Require with a shorter time to wait; 0: Patience.
func (r *Recorder) require(e *ledger.Event, most time.Duration) error {
	if p := r.Patience(); most <= 0 || most > p {
		most = p
	}
	sealed, err := r.seal(e)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotRecorded, err)
	}
	wait := time.NewTimer(most)
	defer wait.Stop()
	j := job{record: sealed, done: make(chan error, 1)}
	if !r.send(j, wait.C) {
		return r.tooLate("too many records wait")
	}
	select {
	case err := <-j.done:
		return err
	case <-wait.C:
		return r.tooLate("the store did not answer in time")
	}
}

// Patience is how long a call may wait for the store. One that works may just be busy, and a record that is given
// up costs its call the answer; one that fails must not hold up every call.
func (r *Recorder) Patience() time.Duration {
	if r.Failing() != nil {
		return r.o.brief
	}
	return r.o.wait
}

// tooLate is the error of a record that was not written in time. Where the store has just
// failed, that is the reason.
func (r *Recorder) tooLate(reason string) error {
	if err := r.Failing(); err != nil {
		return fmt.Errorf("%w: %s: %w", errNotRecorded, reason, err)
	}
	return fmt.Errorf("%w: %s", errNotRecorded, reason)
}

// Failing is the error of the last attempt to write, nil if that went well.
func (r *Recorder) Failing() error {
	if err := r.away.Load(); err != nil {
		return *err
	}
	return nil
}

// send puts j into the queue; where it is full it waits until late, if that is given.
func (r *Recorder) send(j job, late <-chan time.Time) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return false
	}
	j.at = time.Now()
	select {
	case r.queue <- j:
		return true
	default:
	}
	if late == nil {
		return false
	}
	select {
	case r.queue <- j:
		return true
	case <-late:
		return false
	}
}

// Seal writes an event down, for a store to keep with the change that it is about. An
// event without ID or Time gets them here, and the version of the rules.
func (r *Recorder) Seal(e *ledger.Event) ([]byte, error) {
	sealed, err := r.seal(e)
	if err != nil {
		return nil, err
	}
	return sealed.Bytes(), nil
}

func (r *Recorder) seal(e *ledger.Event) (ledger.Sealed, error) {
	var salt ledger.Salt
	rand.Read(salt[:]) // never fails
	if e.ID == (ledger.ID{}) {
		rand.Read(e.ID[:])
	}
	if e.Time.IsZero() {
		e.Time = r.o.now()
	}
	if v := *r.rules.Load(); v != "" && e.Kind != ledger.RulesLoaded {
		e.Versions = append(e.Versions[:len(e.Versions):len(e.Versions)], ledger.Version{Of: "rules", Version: v})
	}
	e.Numbers = r.withKeyedMarks(e.Numbers)
	return e.Seal(salt)
}

// lose counts events that will not be recorded.
func (r *Recorder) lose(n int64) {
	if r.lostAll.Add(n) == n {
		r.o.Log.Error("decisions are lost: they come faster than the store can take their records")
	}
	r.lost.Add(n)
}

// Close writes what waits, and tries again until ctx ends where the store fails. It
// returns how many records were lost by it. A second call waits for nothing.
func (r *Recorder) Close(ctx context.Context) int64 {
	r.mu.Lock()
	first := !r.closed
	if r.closed = true; first {
		close(r.queue)
	}
	r.mu.Unlock()
	if first {
		select {
		case <-r.done:
		case <-ctx.Done():
		}
		close(r.giveUp)
		select { // an attempt may be under way
		case <-r.done:
		case <-time.After(r.o.wait):
		}
	}
	return int64(len(r.queue)) + r.lost.Load()
}
