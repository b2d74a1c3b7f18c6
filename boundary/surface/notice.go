// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"slices"
	"time"
)

// maxNoticed bounds the items of a pin that no person has decided on and that were
// shown to some session only.
const maxNoticed = 1000

// Notice takes note of items that a server has shown to somebody and that are not what
// is approved: they wait for a person. What else is known stays as it is, since this
// is no listing of everything. It reports whether anything was not known before.
// ErrNotPinned: the server has no pin.
func (p *Pins) Notice(ctx context.Context, server string, items []Item) (news bool, err error) {
	err = p.change(ctx, PinChange{Server: server, Act: ActDiffer}, func(pin *Pin) (bool, error) {
		news = false
		if pin == nil || pin.unborn() {
			return false, ErrNotPinned
		}
		for _, it := range items {
			news = pin.notice(it) || news
		}
		return news, nil
	})
	return news, err
}

func (p *Pin) notice(it Item) (dirty bool) {
	i, known := p.index(it.Key)
	if !known {
		waiting := 0
		for k := range p.Items {
			if p.Items[k].Approved == "" {
				waiting++
			}
		}
		if waiting >= maxNoticed {
			return false
		}
		p.Items = slices.Insert(p.Items, i, PinnedItem{Key: it.Key, Pending: string(it.JSON)})
		return true
	}
	old := &p.Items[i]
	if old.Approved != "" && it.sameBut(old.approved(), p.Tolerates) || old.Pending != "" && it.Digest == old.PendingDigest() {
		return false
	}
	old.Pending = string(it.JSON)
	return true
}

// Suspend takes back what only the first use has approved: the items wait for a
// person. It returns how many there were to take back.
func (p *Pins) Suspend(ctx context.Context, server string, keys ...Key) (taken int, err error) {
	instead := map[Key]string{}
	for _, k := range keys {
		instead[k] = ""
	}
	return p.suspend(ctx, server, instead)
}

// suspend is Suspend; instead has by key the version that may be seen meanwhile, "" for none.
func (p *Pins) suspend(ctx context.Context, server string, instead map[Key]string) (taken int, err error) {
	err = p.change(ctx, PinChange{Server: server, Act: ActSuspend}, func(pin *Pin) (bool, error) {
		taken = 0
		if pin == nil {
			return false, ErrNotPinned
		}
		for k, version := range instead {
			it := pin.Item(k)
			if it == nil || it.Approved == "" || it.byHand {
				continue
			}
			if it.Pending == "" {
				it.Pending = it.Approved
			}
			it.Approved = version
			taken++
		}
		return taken > 0, nil
	})
	return taken, err
}

// Reject remembers, for people, that a server's surface was refused as a whole and why,
// which must be escaped; "" that it no longer is. Nothing goes by it.
func (p *Pins) Reject(ctx context.Context, server, transport, why string) error {
	for range maxTries {
		err := p.reject(ctx, server, transport, why)
		if err != ErrConflict {
			return err
		}
	}
	return ErrConflict
}

func (p *Pins) reject(ctx context.Context, server, transport, why string) error {
	record, version, err := p.store.LoadPin(ctx, server)
	if err != nil {
		return err
	}
	pin := Pin{Server: server, transport: transport}
	if version > 0 {
		if pin, err = ParsePin(server, record); err != nil {
			return err
		}
	}
	if why == pin.Rejected {
		return nil
	}
	pin.call(p.name)
	pin.Rejected, pin.RejectedAt = why, time.Time{}
	if why != "" {
		pin.RejectedAt = p.now().UTC()
	} else if pin.unborn() {
		return p.Drop(ctx, server, "")
	}
	if record, err = pin.record(); err != nil {
		return err
	}
	e := PinChange{Server: server, Act: ActReject}
	if why == "" {
		e.Act = ActDiffer
	}
	evidence, err := p.record(e, &pin)
	if err != nil {
		return err
	}
	return p.store.SavePin(ctx, server, record, version, evidence)
}
