// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A PinStore keeps one record for each server. Its methods may be called at the
// same time, also from several processes on one store; what they have done is
// durable when they return nil. The record of a change goes into the ledger with
// the change, or neither does; nil: absent.
type PinStore interface {
	// LoadPin returns the server's record and its version, which is above 0; nil and 0
	// if not found.
	LoadPin(ctx context.Context, server string) (record []byte, version int64, err error)
	// SavePin stores a record if the version is still what LoadPin returned, and
	// ErrConflict otherwise.
	SavePin(ctx context.Context, server string, record []byte, version int64, evidence []byte) error
	// ListPins returns the names of the servers that have a record, in order.
	ListPins(ctx context.Context) ([]string, error)
	// DropPin removes a server's record, if there is one.
	DropPin(ctx context.Context, server string, evidence []byte) error
}

// ErrConflict is a PinStore's answer to a record that somebody else has changed.
var ErrConflict = errors.New("surface: the pin was changed meanwhile")

// maxTries bounds how often a change is tried against those of other replicas.
const maxTries = 16

// Pins compare what servers say with what was approved. It is safe for concurrent
// use as far as its store is.
type Pins struct {
	store    PinStore
	now      func() time.Time
	evidence func(PinChange) ([]byte, error)
	name     string // what the operator calls the server that is looked at; "": not known
	// tolerates are the tolerated parts by the configuration. Where it is nil, those of the pin count.
	tolerates Tolerated
}

// A PinChange is a change of a pin, as the record keeps it.
type PinChange struct {
	Server string // the name that people know it by
	Time   time.Time
	Act    PinAct
	By     string // the person, of ActApprove, ActBlock and ActDrop
	// Digest is that of the item's version, of ActApprove and ActBlock, and the
	// surface's fingerprint, of ActPin and ActDiffer; zero: none is known.
	Digest  Digest
	Waiting int      // items that are not live afterwards
	Pin     [16]byte // the pin, as PinID names it
	Decided Digest   // Pin.Decided afterwards; zero of ActDrop
}

// A PinAct says what a PinChange did. The zero value is not an act.
type PinAct uint8

// What becomes of pins.
const (
	ActPin     PinAct = iota + 1 // the first surface was approved as a whole
	ActDiffer                    // the server says something else than before
	ActApprove                   // a person let a version through
	ActBlock                     // a person held a version
	ActDrop                      // the pin was forgotten
	ActReject                    // the surface was refused as a whole
	ActSuspend                   // an approval of the first use was taken back
)

// WithEvidence has every change recorded in the ledger, with the change or not at
// all: evidence returns the record. What cannot be recorded does not happen.
func (p *Pins) WithEvidence(evidence func(PinChange) ([]byte, error)) *Pins {
	return &Pins{p.store, p.now, evidence, p.name, p.tolerates}
}

// Named returns Pins that know what the operator calls the one server which they are
// asked about. The name is kept in the pin, for people.
func (p *Pins) Named(name string) *Pins { return &Pins{p.store, p.now, p.evidence, name, p.tolerates} }

// Tolerating returns Pins for a server of which these parts may change.
func (p *Pins) Tolerating(parts Tolerated) *Pins {
	return &Pins{p.store, p.now, p.evidence, p.name, append(Tolerated{}, parts...)}
}

// record returns the ledger's record of e; pin, if it is known, is how it will be.
func (p *Pins) record(e PinChange, pin *Pin) ([]byte, error) {
	if p.evidence == nil {
		return nil, nil
	}
	e.Time = p.now()
	if e.Pin = PinID(e.Server); pin != nil {
		e.Decided = pin.Decided()
	}
	if p.name != "" {
		e.Server = p.name
	} else if pin != nil {
		e.Server = pin.Name()
	}
	if pin != nil {
		for i := range pin.Items {
			if !pin.Items[i].State().Live() {
				e.Waiting++
			}
		}
	}
	return p.evidence(e)
}

// NewPins returns Pins over a store. now is the clock; nil stands for time.Now.
func NewPins(store PinStore, now func() time.Time) *Pins {
	if now == nil {
		now = time.Now
	}
	return &Pins{store: store, now: now}
}

// An Admission says which items of a surface may be seen.
type Admission struct {
	// First: the server has no pin. Nothing is live; review the surface, then Pin it.
	First bool
	// Moved: the server was pinned under another transport descriptor.
	Moved   bool
	Changes []Change // against what is approved, for every item

	// news are the items of which nothing was known, where the client that listed them
	// has more capabilities than any before.
	news []Key
	pin  Pin
	gone map[Key]bool
}

func admission(pin Pin, transport string, changes []Change) *Admission {
	a := &Admission{Moved: pin.transport != transport, Changes: changes, pin: pin, gone: map[Key]bool{}}
	for i := range changes {
		switch c := &changes[i]; {
		case c.Difference == Removed:
			a.gone[c.Key] = true
		case c.Was != "":
			a.gone[Key{c.Kind, c.Was}] = true
		}
	}
	return a
}

// State returns the state of an item; "" for one that the server does not show.
func (a *Admission) State(k Key) State {
	if a.gone[k] {
		return ""
	}
	if it := a.pin.Item(k); it != nil {
		return it.State()
	}
	return ""
}

// Held are the items of the surface that must not be seen, with their state.
func (a *Admission) Held() map[Key]State {
	held := map[Key]State{}
	for i := range a.pin.Items {
		if it := &a.pin.Items[i]; !it.State().Live() {
			held[it.Key] = it.State()
		}
	}
	return held
}

// live reports whether a model may see the item as the surface has it.
func (a *Admission) live(k Key) bool { return a.State(k).Live() }

// Admit compares a surface with the server's pin and persists what differs as
// pending. It must be called after every listing: at the start, after list_changed,
// and when the server was reached anew. Without an Admission nothing is live.
func (p *Pins) Admit(ctx context.Context, server, transport string, s *Surface) (*Admission, error) {
	var a *Admission
	e := PinChange{Server: server, Act: ActDiffer, Digest: s.Fingerprint()}
	err := p.change(ctx, e, func(pin *Pin) (bool, error) {
		if pin == nil || pin.unborn() {
			a = &Admission{First: true}
			return false, nil
		}
		news := pin.news(s)
		other := p.tolerates != nil && !slices.Equal(pin.Tolerates, p.tolerates)
		if other {
			pin.Tolerates = p.tolerates
		}
		changes, dirty := pin.observe(s)
		dirty = dirty || other
		if len(news) == 0 && pin.see(s.able) {
			dirty = true
		}
		a = admission(*pin, transport, changes)
		a.news = news
		return dirty, nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Pin approves everything that a server says, the first time. ErrPinned: it has a
// pin, so that only Approve may let more through.
func (p *Pins) Pin(ctx context.Context, server, transport string, s *Surface) error {
	return p.pin(ctx, server, transport, s, s)
}

// pin is Pin of a surface of which only seen is approved; the rest waits for a reviewer.
func (p *Pins) pin(ctx context.Context, server, transport string, s, seen *Surface) error {
	pin := newPin(server, transport, s, p.now())
	for i := range pin.Items {
		it := &pin.Items[i]
		if approved, _ := seen.Item(it.Key); string(approved.JSON) != it.Approved {
			it.Pending, it.Approved = it.Approved, string(approved.JSON)
		}
	}
	return p.first(ctx, server, pin, s.Fingerprint())
}

// hold pins a server of which nothing is approved: every item waits for a person. It
// is what Pin is where a first surface is not trusted. ErrPinned: as Pin.
func (p *Pins) hold(ctx context.Context, server, transport string, s *Surface) error {
	pin := newPin(server, transport, s, p.now())
	for i := range pin.Items {
		it := &pin.Items[i]
		it.Pending, it.Approved, it.At = it.Approved, "", time.Time{}
	}
	return p.first(ctx, server, pin, s.Fingerprint())
}

func (p *Pins) first(ctx context.Context, server string, pin Pin, print Digest) error {
	pin.call(p.name)
	pin.Tolerates = p.tolerates
	record, err := pin.record()
	if err != nil {
		return fmt.Errorf("surface: pin: %w", err)
	}
	old, version, err := p.store.LoadPin(ctx, server)
	if err != nil {
		return fmt.Errorf("surface: load pin: %w", err)
	}
	if version > 0 {
		if is, err := ParsePin(server, old); err != nil {
			return err
		} else if !is.unborn() {
			return ErrPinned
		}
	}
	e := PinChange{Server: server, Act: ActPin, Digest: print}
	if len(pin.approved()) == 0 {
		e.Act = ActDiffer
	}
	evidence, err := p.record(e, &pin)
	if err != nil {
		return fmt.Errorf("surface: pin: %w", err)
	}
	if err := p.store.SavePin(ctx, server, record, version, evidence); errors.Is(err, ErrConflict) {
		return ErrPinned
	} else if err != nil {
		return fmt.Errorf("surface: pin: %w", err)
	}
	return nil
}

// extend pins items that the server offers to a client with more capabilities than any
// before, as the first surface is pinned. An item that a person has decided on, or that
// is another version by now, stays as it is.
func (p *Pins) extend(ctx context.Context, server string, s *Surface, offered []Key) error {
	e := PinChange{Server: server, Act: ActPin, Digest: s.Fingerprint()}
	return p.change(ctx, e, func(pin *Pin) (bool, error) {
		if pin == nil {
			return false, ErrNotPinned
		}
		pin.extend(s, offered, p.now())
		pin.see(s.able)
		return true, nil
	})
}

// Approve lets the version of an item through that waits and has this digest: the
// one that a person was shown. by names the person. ErrMoved: the server shows
// another one by now.
func (p *Pins) Approve(ctx context.Context, server string, k Key, d Digest, by string) error {
	e := PinChange{Server: server, Act: ActApprove, By: by, Digest: d}
	return p.decide(ctx, e, func(pin *Pin) error { return pin.approve(k, d, by, p.now()) })
}

// Block holds the version of an item that has this digest, pending or approved.
// Another version of it will be pending.
func (p *Pins) Block(ctx context.Context, server string, k Key, d Digest, by string) error {
	e := PinChange{Server: server, Act: ActBlock, By: by, Digest: d}
	return p.decide(ctx, e, func(pin *Pin) error { return pin.block(k, d, by, p.now()) })
}

func (p *Pins) decide(ctx context.Context, e PinChange, do func(*Pin) error) error {
	return p.change(ctx, e, func(pin *Pin) (bool, error) {
		if pin == nil {
			return false, ErrNotPinned
		}
		return true, do(pin)
	})
}

// List names the servers that have a pin, in order.
func (p *Pins) List(ctx context.Context) ([]string, error) { return p.store.ListPins(ctx) }

// Find returns the servers that a person may mean by a name: the one that has it for its
// identity, else those that were seen under it. A pin that cannot be read is found by
// its identity only.
func (p *Pins) Find(ctx context.Context, name string) (servers []string, err error) {
	all, err := p.store.ListPins(ctx)
	if err != nil {
		return nil, err
	}
	if slices.Contains(all, name) {
		return []string{name}, nil
	}
	for _, server := range all {
		if pin, err := p.Get(ctx, server); err == nil && slices.Contains(pin.Names, name) {
			servers = append(servers, server)
		}
	}
	return servers, nil
}

// Get returns a server's pin, or ErrNotPinned.
func (p *Pins) Get(ctx context.Context, server string) (Pin, error) {
	record, version, err := p.store.LoadPin(ctx, server)
	if err == nil && version == 0 {
		err = ErrNotPinned
	}
	if err != nil {
		return Pin{}, err
	}
	return ParsePin(server, record)
}

// Drop forgets a server: it will be reviewed and pinned as if it were new. by names the
// person; "": none did it.
func (p *Pins) Drop(ctx context.Context, server, by string) error {
	e := PinChange{Server: server, Act: ActDrop, By: by}
	if pin, err := p.Get(ctx, server); err == nil && p.name == "" { // one that cannot be read can be forgotten
		p = p.Named(pin.Name())
	}
	evidence, err := p.record(e, nil)
	if err != nil {
		return fmt.Errorf("surface: drop pin: %w", err)
	}
	return p.store.DropPin(ctx, server, evidence)
}

// Unname removes the name of a reviewer from every pin, and returns how many decisions
// named it. The decisions stay, and no record is made of it: a record would name the reviewer
// again.
func (p *Pins) Unname(ctx context.Context, by string) (n int, err error) {
	servers, err := p.List(ctx)
	silent := p.WithEvidence(nil)
	for _, server := range servers {
		here := 0
		err := silent.change(ctx, PinChange{Server: server}, func(pin *Pin) (bool, error) {
			here = 0
			if pin == nil { // dropped meanwhile
				return false, nil
			}
			for i := range pin.Items {
				if pin.Items[i].By == by {
					pin.Items[i].By = ""
					here++
				}
			}
			return here > 0, nil
		})
		if err != nil {
			return n, err
		}
		n += here
	}
	return n, err
}

// change loads a pin, nil if not found, lets do change it, and stores it where
// do says that it has, again if somebody else was faster. e says what do does.
func (p *Pins) change(ctx context.Context, e PinChange, do func(*Pin) (dirty bool, err error)) error {
	for range maxTries {
		record, version, err := p.store.LoadPin(ctx, e.Server)
		if err != nil {
			return fmt.Errorf("surface: load pin: %w", err)
		}
		var pin *Pin
		if version > 0 {
			loaded, err := ParsePin(e.Server, record)
			if err != nil {
				return err
			}
			pin = &loaded
		}
		dirty, err := do(pin)
		named := pin != nil && !pin.unborn() && pin.call(p.name)
		if err != nil || !dirty && !named {
			return err
		}
		if record, err = pin.record(); err != nil {
			return fmt.Errorf("surface: save pin: %w", err)
		}
		var evidence []byte
		if dirty { // a name alone is not a decision
			if evidence, err = p.record(e, pin); err != nil {
				return fmt.Errorf("surface: save pin: %w", err)
			}
		}
		err = p.store.SavePin(ctx, e.Server, record, version, evidence)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("surface: save pin: %w", err)
		}
	}
	return ErrConflict
}
