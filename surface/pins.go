package surface

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A PinStore keeps one record for each server. Its methods may be called at the
// same time, also from several processes on one store; what they have done is
// durable when they return nil.
type PinStore interface {
	// LoadPin returns the server's record and its version, which is above 0; nil and 0
	// if there is none.
	LoadPin(ctx context.Context, server string) (record []byte, version int64, err error)
	// SavePin stores a record if the version is still what LoadPin returned, and
	// ErrConflict otherwise.
	SavePin(ctx context.Context, server string, record []byte, version int64) error
	// ListPins returns the names of the servers that have a record, in order.
	ListPins(ctx context.Context) ([]string, error)
	// DropPin removes a server's record, if there is one.
	DropPin(ctx context.Context, server string) error
}

// ErrConflict is a PinStore's answer to a record that somebody else has changed.
var ErrConflict = errors.New("surface: the pin was changed meanwhile")

// maxTries bounds how often a change is tried against those of other replicas.
const maxTries = 16

// Pins compare what servers say with what was approved. It is safe for concurrent
// use as far as its store is.
type Pins struct {
	store PinStore
	now   func() time.Time
}

// NewPins returns Pins over a store. now is the clock; nil stands for time.Now.
func NewPins(store PinStore, now func() time.Time) *Pins {
	if now == nil {
		now = time.Now
	}
	return &Pins{store, now}
}

// An Admission says which items of a surface may be seen.
type Admission struct {
	// First: the server has no pin. Nothing is live; review the surface, then Pin it.
	First bool
	// Moved: the server was pinned under another transport descriptor.
	Moved   bool
	Changes []Change // against what is approved, for every item

	pin  Pin
	gone map[Key]bool
}

func admission(pin Pin, transport string, changes []Change) *Admission {
	a := &Admission{Moved: pin.Transport != transport, Changes: changes, pin: pin, gone: map[Key]bool{}}
	for i := range changes {
		switch c := &changes[i]; {
		case c.Verdict == Removed:
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

// Live reports whether a model may see the item as the surface has it.
func (a *Admission) Live(k Key) bool { return a.State(k).Live() }

// ApprovedJSON is the version of the item that may be seen instead of one that is
// held: canonical JSON; nil if there is none.
func (a *Admission) ApprovedJSON(k Key) []byte {
	if it := a.pin.Item(k); it != nil && it.Approved != "" {
		return []byte(it.Approved)
	}
	return nil
}

// Admit compares a surface with the server's pin and persists what differs as
// pending. It must be called after every listing: at the start, after list_changed,
// and when the server was reached anew. Without an Admission nothing is live.
func (p *Pins) Admit(ctx context.Context, server, transport string, s *Surface) (*Admission, error) {
	var a *Admission
	err := p.change(ctx, server, func(pin *Pin) (bool, error) {
		if pin == nil {
			a = &Admission{First: true}
			return false, nil
		}
		changes, dirty := pin.observe(s)
		a = admission(*pin, transport, changes)
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
	pin := newPin(server, transport, s, p.now())
	record, err := pin.record()
	if err != nil {
		return fmt.Errorf("surface: pin: %w", err)
	}
	if err := p.store.SavePin(ctx, server, record, 0); errors.Is(err, ErrConflict) {
		return ErrPinned
	} else if err != nil {
		return fmt.Errorf("surface: pin: %w", err)
	}
	return nil
}

// Approve lets the version of an item through that waits and has this digest: the
// one that a person was shown. by names the person. ErrMoved: the server shows
// another one by now.
func (p *Pins) Approve(ctx context.Context, server string, k Key, d Digest, by string) error {
	return p.decide(ctx, server, func(pin *Pin) error { return pin.approve(k, d, by, p.now()) })
}

// Block holds the version of an item that has this digest, pending or approved.
// Another version of it will be pending.
func (p *Pins) Block(ctx context.Context, server string, k Key, d Digest, by string) error {
	return p.decide(ctx, server, func(pin *Pin) error { return pin.block(k, d, by, p.now()) })
}

func (p *Pins) decide(ctx context.Context, server string, do func(*Pin) error) error {
	return p.change(ctx, server, func(pin *Pin) (bool, error) {
		if pin == nil {
			return false, ErrNotPinned
		}
		return true, do(pin)
	})
}

// List names the servers that have a pin, in order.
func (p *Pins) List(ctx context.Context) ([]string, error) { return p.store.ListPins(ctx) }

// Get returns a server's pin, or ErrNotPinned.
func (p *Pins) Get(ctx context.Context, server string) (Pin, error) {
	record, version, err := p.store.LoadPin(ctx, server)
	if err == nil && version == 0 {
		err = ErrNotPinned
	}
	if err != nil {
		return Pin{}, err
	}
	return parsePin(server, record)
}

// Drop forgets a server: it will be reviewed and pinned as if it were new.
func (p *Pins) Drop(ctx context.Context, server string) error { return p.store.DropPin(ctx, server) }

// change loads a pin, nil if there is none, lets do change it, and stores it where
// do says that it has, again if somebody else was faster.
func (p *Pins) change(ctx context.Context, server string, do func(*Pin) (dirty bool, err error)) error {
	for range maxTries {
		record, version, err := p.store.LoadPin(ctx, server)
		if err != nil {
			return fmt.Errorf("surface: load pin: %w", err)
		}
		var pin *Pin
		if version > 0 {
			loaded, err := parsePin(server, record)
			if err != nil {
				return err
			}
			pin = &loaded
		}
		dirty, err := do(pin)
		if err != nil || !dirty {
			return err
		}
		if record, err = pin.record(); err != nil {
			return fmt.Errorf("surface: save pin: %w", err)
		}
		err = p.store.SavePin(ctx, server, record, version)
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("surface: save pin: %w", err)
		}
	}
	return ErrConflict
}
