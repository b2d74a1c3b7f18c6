// SPDX-License-Identifier: Apache-2.0

// Package hold keeps what a person must look at: one queue of withheld items for the whole product.
//
// The code that withholds a result or call puts it here, and answers with a constant text
// that names the item. A reviewer lists the items, looks at one, and releases it once or
// denies it. An item without a decision expires. No session and no other call waits for any of it.
package hold

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// An Item is one withheld thing. Everything but Body is safe to show: labels,
// codes, digests and times.
type Item struct {
	ID        string // 32 hex digits: the evidence id that the placeholder names
	Server    string // label
	Tool      string // label, or ""
	Principal string // whose call it answered, or ""
	Rule      string // what held it: "schema", "finding", "classifier:NAME", "policy:RULE", "pin", or a rule of [Item.IsCall]
	Code      finding.Code
	Call      Digest // of what was asked: a release answers the same question
	Digest    Digest // of Body
	Body      []byte // as it was received: third-party text, or Sealed; nil in a list
	Bytes     int    // of Body

	Found    Found
	Question []byte // Question.Document as it was sealed; nil: it is not kept. Given to Queue.Hold it is not sealed yet
	Hidden   string // messages that the hidden characters of Body spell: third-party text; "" where Body is Sealed

	Held    time.Time
	Until   time.Time // when it expires
	State   State
	Decided time.Time // zero: not yet
	By      string    // reviewer who decided; "" before a decision

	People   int       // persons whom a release needs: 1, or 2
	Proposed time.Time // when the first of two has proposed the release; zero: not yet
	Proposer string
}

// The rules that hold a call. A call of another rule has been answered already: what is held is its result.
const (
	// PolicyCall begins the rule of a call that the policy held before the server got it. The
	// name of the policy's rule follows.
	PolicyCall = "policy-call:"
	// GuardCall is the rule of a call that a model has proposed, and that pellucid guard held.
	GuardCall = "counterfactual"
)

// IsCall reports whether the item is a call that was held before it was carried out, and not a
// result.
func (it *Item) IsCall() bool { return it.Rule == GuardCall || strings.HasPrefix(it.Rule, PolicyCall) }

// A Digest is a SHA-256.
type Digest [sha256.Size]byte

// String is "sha256:" and 64 hex digits.
func (d Digest) String() string { return "sha256:" + hex.EncodeToString(d[:]) }

// CallOf is the digest of a question: who asked which tool of which server what.
// Arguments count byte for byte, as the client spelled them.
func CallOf(principal, server, tool string, arguments []byte) Digest {
	h := sha256.New()
	for _, s := range []string{principal, server, tool} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	h.Write(arguments)
	return Digest(h.Sum(nil))
}

// OwnerLen is how many bytes of a digest by Owned say whose it is.
const OwnerLen = 12

// Owned is the digest of what a server calls by a name, for one principal. All of them for the same server and principal
// begin with the same bytes, so that a store can count them.
func Owned(principal, server, name string) Digest {
	owner, of := CallOf(principal, server, "", nil), CallOf(principal, server, "", []byte(name))
	owner = sha256.Sum256(append([]byte("pellucid owner\n"), owner[:]...))
	of = sha256.Sum256(append([]byte("pellucid task\n"), of[:]...))
	copy(of[:], owner[:OwnerLen])
	return of
}

// A State says how far an item has come.
type State string

// The states. An item begins as Held; Taken, Denied and Expired are ends.
const (
	Held     State = "held"
	Released State = "released" // to be delivered once
	Taken    State = "taken"    // was delivered
	Denied   State = "denied"
	Proposed State = "proposed" // only in the record of the first of two persons: the item stays Held
	Expired  State = "expired"  // shown of an item that is past its time and not yet swept
)

// Known reports whether s is one of the states.
func (s State) Known() bool {
	switch s {
	case Held, Released, Taken, Denied, Expired:
		return true
	}
	return false
}

// The errors of a Store and of a Queue, to be compared with errors.Is.
var (
	ErrNotFound = errors.New("hold: no such item")
	ErrDecided  = errors.New("hold: no decision is open")
	ErrFull     = errors.New("hold: the queue is full")
	ErrExists   = errors.New("hold: an item has that id already")
	ErrSealed   = errors.New("hold: the item is encrypted to its reviewers: one of their keys has to open it")
	ErrOpened   = errors.New("hold: what was opened is not what was held")
)

// A DecidedError is ErrDecided with the state that is known.
type DecidedError struct {
	What  string // "item" or "block"
	State string // as in State: "denied"; "lifted" of a block
	At    time.Time
	By    string // "" where it has expired
}

func (e *DecidedError) Error() string {
	s, end := "hold: the "+e.What+" was "+e.State, ""
	switch e.State {
	case string(Expired):
		s = "hold: the " + e.What + " expired"
	case string(Taken):
		s, end = "hold: the "+e.What+" was released", ", and was delivered"
	}
	s += " on " + e.At.UTC().Format("2006-01-02 15:04Z")
	if e.By != "" {
		s += " by " + finding.Quote(e.By)
	}
	return s + end
}

// Is makes it an ErrDecided.
func (e *DecidedError) Is(target error) bool { return target == ErrDecided }

// SamePerson reports whether two names of reviewers mean one person. The case of a name varies between providers: a
// reviewer under a second spelling could confirm what they have proposed themselves. A name with any other ambiguity
// is not a label, and is refused at the sign-in.
func SamePerson(a, b string) bool {
	return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b))
}

// sealed is how an age file begins; nothing that MCP carries does.
const sealed = "age-encryption.org/v1\n"

// Sealed reports whether the Body of an item is encrypted: Options.Seal.
func (it *Item) Sealed() bool { return bytes.HasPrefix(it.Body, []byte(sealed)) }

// Opened reports whether body is what was held.
func (it *Item) Opened(body []byte) bool { return sha256.Sum256(body) == it.Digest }

// A Store keeps items. Its methods may be called at the same time, also from
// several processes on one store; what they have done is durable when they return
// nil. The record of a change goes into the ledger with the change, or neither does;
// nil: absent.
type Store interface {
	// AddHeld stores a new item, unless there is no room for it (a FullError).
	AddHeld(ctx context.Context, it Item, room Room, evidence []byte) error
	// HeldUsage returns what is used of each share, that of the whole queue first.
	HeldUsage(ctx context.Context, now time.Time) ([]Usage, error)
	Searcher
	// GetHeld returns an item with its Body and its Question. Both, and Hidden, end together.
	GetHeld(ctx context.Context, id string, now time.Time) (Item, error)
	// DecideHeld takes an item from Held to Released or Denied; ErrDecided if it is
	// no longer held, ErrSecond if another person has to release it or to propose it first. A denied item loses its Body, its Question and Hidden; the Body of a released one becomes
	// body, unless that is nil.
	DecideHeld(ctx context.Context, id string, to State, by string, now time.Time, body, evidence []byte) error
	// DecideManyHeld decides those of the items that are still held, as DecideHeld does, in one transaction.
	DecideManyHeld(ctx context.Context, ids []string, d Choice) (Decided, error)
	// ProposeHeld notes that by proposes to release an item that needs two persons; ErrSecond where the same
	// person has proposed it, ErrDecided if it is no longer held.
	ProposeHeld(ctx context.Context, id, by string, now time.Time, evidence []byte) error
	// TakeHeld takes the oldest released item for the call to Taken and returns it
	// with its Body, which it then loses; ErrNotFound if not found. The record
	// of its delivery, which names it, is that of the message.
	TakeHeld(ctx context.Context, call Digest, now time.Time) (Item, error)
	// IsReleased reports whether an item waits to be taken for the call. It changes
	// nothing, and is asked about every call.
	IsReleased(ctx context.Context, call Digest, now time.Time) (bool, error)
	// SweepHeld removes the Body of what has expired, and what was decided or has
	// expired before old altogether. It returns how many items it removed. evidence, if
	// not nil, gives the record of each item that expires, as it will be.
	SweepHeld(ctx context.Context, now, old time.Time, evidence func(Item) ([]byte, error)) (int, error)
}

// Options are the bounds of a Queue; a zero member is its default.
type Options struct {
	Keep     time.Duration // until an item expires; 24 h
	remember time.Duration // how long a decided or expired item is still listed; 30 days
	Room
	Now func() time.Time // nil: time.Now

	// Evidence returns the ledger's record of an item that comes to be as it is given:
	// held, released, denied or expired. What cannot be recorded does not happen. nil: nothing
	// is recorded.
	Evidence func(Item) ([]byte, error)

	// Seal encrypts a Body as an age file before it is stored, so that only a reviewer's
	// key reads it until it is released; what cannot be sealed is not kept. nil, or what
	// it returns is: a Body is stored as it is.
	Seal func(body []byte) ([]byte, error)

	// SealQuestion encrypts the Question of the item that id names. nil, or an error of it: the
	// question is not kept.
	SealQuestion func(document []byte, id string) ([]byte, error)

	// TwoPersons reports whether the release of an item that is held now needs two persons; nil: it does not.
	TwoPersons func() bool
}

// A Queue holds items in a Store. It is safe for concurrent use.
type Queue struct {
	store Store
	o     Options
}

// Remembered is how long a row is still listed after its decision or its end.
const Remembered = 30 * 24 * time.Hour

// New makes a Queue.
func New(s Store, o Options) *Queue {
	setDefault(&o.Keep, 24*time.Hour)
	setDefault(&o.remember, Remembered)
	setDefault(&o.PerServer, 1000)
	setDefault(&o.Bytes, 2<<30)
	setDefault(&o.maxBody, int(o.Bytes/64))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Queue{store: s, o: o}
}

// setDefault sets a member to v where it is not set.
func setDefault[T int | int64 | time.Duration](member *T, v T) {
	if *member <= 0 {
		*member = v
	}
}

// recordOf is the ledger's record of a change, where records are kept.
func recordOf[T any](evidence func(T) ([]byte, error), changed T) ([]byte, error) {
	if evidence == nil {
		return nil, nil
	}
	return evidence(changed)
}

// Hold puts an item into the queue; Held, Until, State, Digest and Bytes are set
// here. A queue that is full loses nothing that it has: the new item is refused
// with ErrFull, and stays withheld.
func (q *Queue) Hold(ctx context.Context, it Item) error {
	if len(it.Body) > q.o.maxBody {
		return ErrFull
	}
	now := q.o.Now().UTC()
	it.Held, it.Until, it.State = now, now.Add(q.o.Keep), Held
	it.Digest, it.Bytes = sha256.Sum256(it.Body), len(it.Body)
	it.People = 1
	if q.o.TwoPersons != nil && q.o.TwoPersons() {
		it.People = 2
	}
	evidence, err := recordOf(q.o.Evidence, it)
	if err != nil {
		return err
	}
	if q.o.Seal != nil {
		sealed, err := q.o.Seal(it.Body)
		if err != nil {
			return err
		}
		if sealed != nil {
			it.Body = sealed
		}
	}
	it.Question = q.sealQuestion(&it)
	if it.Hidden = ""; !it.Sealed() {
		it.Hidden = hiddenIn(it.Body)
	}
	return q.store.AddHeld(ctx, it, q.o.Room, evidence)
}

// sealQuestion encrypts the question. An item is held without it rather than not at all.
func (q *Queue) sealQuestion(it *Item) []byte {
	if q.o.SealQuestion == nil || it.Question == nil {
		return nil
	}
	sealed, err := q.o.SealQuestion(it.Question, it.ID)
	if err != nil {
		return nil
	}
	return sealed
}

// Waits returns the id of the item that is held for the call with the same body; "" if there is none, or
// where that cannot be told. A client that asks for one task again and again so has one item.
func (q *Queue) Waits(ctx context.Context, it *Item) string {
	p, err := q.Page(ctx, Filter{State: Held, Server: it.Server, Tool: it.Tool, NoTool: it.Tool == "",
		Principal: it.Principal, NoPrincipal: it.Principal == "", Digest: sha256.Sum256(it.Body)})
	for i := range p.Items {
		if err == nil && p.Items[i].Call == it.Call {
			return p.Items[i].ID
		}
	}
	return ""
}

// Take returns what a person has released for the call, which is delivered this
// once; false if there is nothing. The store is asked about every call: what was true
// a moment ago may have been changed by another process, and a result that is missed
// makes the server do again what it has done.
func (q *Queue) Take(ctx context.Context, call Digest) (Item, bool) {
	now := q.o.Now()
	if released, err := q.store.IsReleased(ctx, call, now); err != nil || !released {
		return Item{}, false
	}
	it, err := q.store.TakeHeld(ctx, call, now)
	if err != nil || Digest(sha256.Sum256(it.Body)) != it.Digest {
		return Item{}, false
	}
	return it, true
}

// Get returns an item with its Body, which is nil once it was taken or denied or
// has expired.
func (q *Queue) Get(ctx context.Context, id string) (Item, error) {
	return q.store.GetHeld(ctx, id, q.o.Now())
}

// Release lets an item be delivered once: to the next call that is the same, before the
// item expires. by names the person. An item that is sealed is not released: ErrSealed. Where an item
// needs two persons, the first Release proposes it, and the item stays Held with its Proposer; that
// of another person releases it; ErrSecond from the same one.
func (q *Queue) Release(ctx context.Context, id, by string) error {
	return q.ReleaseOpened(ctx, id, by, nil)
}

// ReleaseOpened is Release of an item whose Body a reviewer has decrypted. body is nil for
// an item that is not sealed.
func (q *Queue) ReleaseOpened(ctx context.Context, id, by string, body []byte) error {
	return q.decide(ctx, id, Released, by, body)
}

// Deny withholds an item for good.
func (q *Queue) Deny(ctx context.Context, id, by string) error {
	return q.decide(ctx, id, Denied, by, nil)
}

func (q *Queue) decide(ctx context.Context, id string, to State, by string, body []byte) error {
	now := q.o.Now()
	var evidence []byte
	propose := false
	if q.o.Evidence != nil || to == Released {
		it, err := q.store.GetHeld(ctx, id, now)
		switch {
		case err != nil:
			return err
		case to == Released && body == nil && it.Sealed():
			return ErrSealed
		case body != nil && !it.Opened(body):
			return ErrOpened
		}
		it.State, it.By, it.Decided = to, by, now.UTC() // as it will be, unless the store refuses
		if propose = to == Released && it.People > 1 && it.Proposer == ""; propose {
			it.State = Proposed
		}
		if evidence, err = recordOf(q.o.Evidence, it); err != nil {
			return err
		}
	}
	if propose {
		return q.store.ProposeHeld(ctx, id, by, now, evidence)
	}
	return q.store.DecideHeld(ctx, id, to, by, now, body, evidence)
}

// Sweep removes what is no longer needed. It is to be called now and then.
func (q *Queue) Sweep(ctx context.Context) (int, error) {
	now := q.o.Now()
	return q.store.SweepHeld(ctx, now, now.Add(-q.o.remember), q.o.Evidence)
}

// KeepSwept sweeps at once and then at every interval, until ctx ends, and does what else is to be swept then. failed,
// if not nil, is told of a sweep that did not succeed. Sweeping saves room: an item that has expired is never
// given out.
func (q *Queue) KeepSwept(ctx context.Context, every time.Duration, failed func(error), also ...func(context.Context) error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		_, err := q.Sweep(ctx)
		for _, sweep := range also {
			err = errors.Join(err, sweep(ctx))
		}
		if err != nil && failed != nil && ctx.Err() == nil {
			failed(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// SweepEvery is how often a process that serves calls sweeps.
const SweepEvery = time.Hour

// NewID returns the ID of a new item, decision or Block: 128 random bits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// ValidID reports whether s may be the ID of an item.
func ValidID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
