// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// An Exception lets results pass until it ends although a code was found in them for which they would be held.
// A reviewer grants it; it changes no file.
type Exception struct {
	ID     string // 32 hex digits
	Server string
	Tool   string // "": every tool
	Code   finding.Code
	Digest Digest // of one result as it is received; zero: every one

	Since   time.Time
	Until   time.Time     // when it ends by itself; zero: it is proposed, and not in force
	Why     string        // the reviewer's words
	By      string        // who granted it, or proposed it where two persons are needed
	Second  string        // who confirmed it; "": no second person has
	Keep    time.Duration // for how long one that is proposed will last from its confirmation on
	Revoked time.Time     // zero: not before
	Revoker string
}

// Proposed reports whether e waits for a second person.
func (e *Exception) Proposed() bool { return e.Until.IsZero() && e.Revoked.IsZero() }

// covers reports whether e lets a result pass.
func (e *Exception) covers(server, tool string, code finding.Code, digest func() Digest) bool {
	return e.Server == server && e.Code == code && (e.Tool == "" || e.Tool == tool) && (e.Digest == Digest{} || e.Digest == digest())
}

// Filter selects the items that e would let pass.
func (e *Exception) Filter() Filter {
	return Filter{Server: e.Server, Tool: e.Tool, Code: e.Code, Digest: e.Digest}
}

// Rules of the ledger's records that reviewers, and no policy, have made of kind policy-decided.
const (
	RuleException  = "exception"   // verdict "proposed", "granted" or "revoked"
	RuleTwoPersons = "two-persons" // verdict "proposed"
)

// An ExceptionStore keeps Exceptions.
type ExceptionStore interface {
	TimedStore[Exception]
	// Confirm notes that by confirms one: a proposed one is in force from now on until its Keep has passed. ErrNotFound,
	// ErrDecided where it was confirmed or has ended, ErrSecond where by is the person who proposed it.
	Confirm(ctx context.Context, id, by string, now time.Time, evidence []byte) error
}

// ExceptionOptions are the bounds of Exceptions; a zero member is its default.
type ExceptionOptions struct {
	remember time.Duration // how long one that has ended is still listed; 30 days
	Most     int           // in force; 1,000
	recheck  time.Duration // how long what is in force is believed; 1 s
	wait     time.Duration // for the store, while a result waits for it; 1 s
	Now      func() time.Time

	// TwoPersons reports whether exceptions need two persons now: one that only one person has granted does not count then. nil:
	// they do not.
	TwoPersons func() bool
	// Evidence returns the ledger's record of an Exception that is proposed, granted or revoked. What cannot be
	// recorded does not happen. nil: nothing is recorded.
	Evidence func(Exception) ([]byte, error)
}

// Exceptions are the Exceptions of an ExceptionStore. They are safe for concurrent use.
type Exceptions struct {
	timed[Exception]
	confirms ExceptionStore
	o        ExceptionOptions

	mu   sync.Mutex // held while the store is read
	list atomic.Pointer[knownExceptions]
}

type knownExceptions struct {
	list []Exception
	read time.Time
}

// NewExceptions makes Exceptions.
func NewExceptions(s ExceptionStore, o ExceptionOptions) *Exceptions {
	setDefault(&o.remember, Remembered)
	setDefault(&o.recheck, time.Second)
	setDefault(&o.wait, time.Second)
	setDefault(&o.Most, 1000)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Exceptions{timed: timed[Exception]{s, o.Most, o.remember, o.Now, o.Evidence}, confirms: s, o: o}
}

// Bounds of an exception.
const (
	MaxException = 365 * 24 * time.Hour
	MaxWhy       = 200 // bytes
)

var errException = errors.New("hold: an exception is for a server and a code for which results are held, lasts from a minute to 365 days, and has at most 200 bytes of reason")

// Exceptable reports whether an exception can be granted for a code: what was found in a text, or what a
// classifier says of it. What the policy has decided and what has the wrong form is not.
func Exceptable(code finding.Code) bool {
	switch code {
	case finding.Denied, finding.Held, finding.ShapeInvalid, finding.SchemaInvalid, finding.SchemaBroken, finding.SchemaUnverifiable, finding.NotStructured, finding.NoRoom, finding.QueueFull, finding.Unapproved, finding.Violation:
		return false
	}
	return code.Known()
}

// two reports whether exceptions need two persons now.
func (es *Exceptions) two() bool { return es.o.TwoPersons != nil && es.o.TwoPersons() }

// Counts reports whether e lets results pass at a time, as far as this process knows how many persons are needed.
func (es *Exceptions) Counts(e *Exception, now time.Time) bool {
	return e.Revoked.IsZero() && now.Before(e.Until) && (e.Second != "" || !es.two())
}

// Grant puts e in force for a time; its id and times are set here. Where exceptions need two persons, or the caller knows that
// this one does, it is only proposed: another person has to Confirm it.
func (es *Exceptions) Grant(ctx context.Context, e Exception, keep time.Duration, two bool) (Exception, error) {
	if e.Server == "" || !Exceptable(e.Code) || keep < time.Minute || keep > MaxException || len(e.Why) > MaxWhy {
		return e, errException
	}
	e.ID, e.Since = NewID(), es.o.Now().UTC()
	if e.Until, e.Keep = e.Since.Add(keep), 0; two || es.two() {
		e.Until, e.Keep = time.Time{}, keep
	}
	if err := es.Sweep(ctx); err != nil {
		return e, err
	}
	defer es.Forget()
	return e, es.add(ctx, e)
}

// Confirm is the second person's word for an exception that another one has proposed or granted. by names the person.
func (es *Exceptions) Confirm(ctx context.Context, id, by string) (e Exception, err error) {
	if e, err = es.store.Get(ctx, id); err != nil {
		return e, err
	}
	now := es.o.Now().UTC()
	if e.Second = by; e.Proposed() {
		e.Until, e.Keep = now.Add(e.Keep), 0
	}
	evidence, err := recordOf(es.o.Evidence, e)
	if err == nil {
		err = es.confirms.Confirm(ctx, id, by, now, evidence)
	}
	es.Forget()
	return e, err
}

// Revoke ends an Exception. by names the person.
func (es *Exceptions) Revoke(ctx context.Context, id, by string) error {
	defer es.Forget()
	return es.end(ctx, id, by, func(e *Exception, now time.Time) { e.Revoked, e.Revoker = now, by })
}

// Forget has the next Covers look into the store: another process may have changed it. What is known stays, for a store
// that does not answer.
func (es *Exceptions) Forget() {
	for k := es.list.Load(); k != nil && !es.list.CompareAndSwap(k, &knownExceptions{list: k.list}); k = es.list.Load() {
	}
}

// Covers reports whether a result passes although the code was found in it. digest is called where an exception
// is for one result. The store is read once in a while, by one caller; the others use what is known. A store
// that does not answer grants nothing and revokes nothing: what was in force stays so until its time.
func (es *Exceptions) Covers(ctx context.Context, server, tool string, code finding.Code, digest func() Digest) bool {
	now := es.o.Now()
	for _, e := range es.current(ctx, now) {
		if es.Counts(&e, now) && e.covers(server, tool, code, digest) {
			return true
		}
	}
	return false
}

func (es *Exceptions) current(ctx context.Context, now time.Time) []Exception {
	k := es.list.Load()
	if k != nil && now.Sub(k.read).Abs() < es.o.recheck {
		return k.list
	}
	if k == nil || k.read.IsZero() {
		es.mu.Lock()
	} else if !es.mu.TryLock() {
		return k.list
	}
	defer es.mu.Unlock()
	if again := es.list.Load(); again != k && again != nil && !again.read.IsZero() {
		return again.list
	}
	within, stop := context.WithTimeout(ctx, es.o.wait)
	defer stop()
	list, err := es.store.List(within, now, false)
	if err != nil && k != nil {
		list = k.list
	}
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) { // the next reader asks for itself where this one has gone
		es.list.Store(&knownExceptions{list, now})
	}
	return list
}

// Foreseen is what an exception would have let through, made of what was held in the last seven days.
type Foreseen struct {
	Selection          // of the items, whatever became of them
	Waiting       int  // of them that wait for a reviewer now; an exception does not release them
	Looked, Mixed int  // of the newest of them, those that were looked at, and those with findings of other codes as well
	Two           bool // the release of one of these needed two persons
}

// foreseeTime is how far back it is looked.
const foreseeTime = 7 * 24 * time.Hour

// Foresee says what e would have let through.
func (q *Queue) Foresee(ctx context.Context, e Exception) (out Foreseen, err error) {
	f := e.Filter()
	f.Since = q.o.Now().Add(-foreseeTime)
	if out.Selection, err = q.Select(ctx, &f); err != nil {
		return out, err
	}
	waits := f
	waits.State = Held
	w, err := q.Select(ctx, &waits)
	if err != nil {
		return out, err
	}
	out.Waiting = w.N
	f.Limit = MaxPage
	items, err := q.List(ctx, f)
	out.Looked = len(items)
	for i := range items {
		out.Two = out.Two || items[i].People > 1
		for _, c := range items[i].Found.Counts() {
			if c.Code != e.Code {
				out.Mixed++
				break
			}
		}
	}
	return out, err
}
