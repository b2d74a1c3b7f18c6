// SPDX-License-Identifier: Apache-2.0

package pinview

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Decider takes the decisions of a person about versions of items.
type Decider struct {
	Pins *surface.Pins
	By   string // who decides
	// Ask shows the person the items and asks. Its error is why nothing is decided.
	Ask func(pin *surface.Pin, items []*surface.PinnedItem, question string) error
	// Tell is told of each decision.
	Tell func(ctx context.Context, pin *surface.Pin, k surface.Key, d surface.Digest) error
}

// Approve approves the one item that name means. The person is asked, unless name is the
// digest of the version: then the person has seen it. A version that was pinned at its first use is
// approved by its digest alone.
func (d *Decider) Approve(ctx context.Context, pin *surface.Pin, name string) error {
	return d.one(ctx, pin, name, "approve", func(it *surface.PinnedItem) error {
		if it.Pending == "" && (it.State() != surface.Pinned || name != it.ApprovedDigest().String()) {
			return errors.New("pins: nothing of this item waits")
		}
		return nil
	}, d.Pins.Approve)
}

// Block blocks the version of the one item that name means. It asks as Approve does.
func (d *Decider) Block(ctx context.Context, pin *surface.Pin, name string) error {
	return d.one(ctx, pin, name, "block", func(*surface.PinnedItem) error { return nil }, d.Pins.Block)
}

// A decide is a decision of surface.Pins.
type decide func(ctx context.Context, server string, k surface.Key, d surface.Digest, by string) error

func (d *Decider) one(ctx context.Context, pin *surface.Pin, name, verb string, may func(*surface.PinnedItem) error, do decide) error {
	it, digest, err := version(pin, name)
	if err == nil {
		err = may(it)
	}
	if err == nil && name != digest.String() {
		err = d.Ask(pin, []*surface.PinnedItem{it}, fmt.Sprintf("%s %s, %s?", verb, terminal.Inline(it.Key.String()), digest))
	}
	if err != nil {
		return err
	}
	return d.take(ctx, pin, it.Key, digest, do)
}

func (d *Decider) take(ctx context.Context, pin *surface.Pin, k surface.Key, digest surface.Digest, do decide) error {
	if err := do(ctx, pin.Server, k, digest, d.By); err != nil {
		return err
	}
	return d.Tell(ctx, pin, k, digest)
}

// ApproveWaiting approves, of one kind or all, the versions that wait in pin, as Ask has shown
// them. A version that the server has replaced meanwhile is passed over and makes an error at
// the end.
func (d *Decider) ApproveWaiting(ctx context.Context, pin *surface.Pin, kind string) error {
	items := waiting(pin, kind)
	if len(items) == 0 {
		return errors.New("pins: nothing of that waits")
	}
	if err := d.Ask(pin, items, fmt.Sprintf("approve all of this, %s?", terminal.Plural(len(items), "version"))); err != nil {
		return err
	}
	moved := 0
	for _, it := range items {
		err := d.take(ctx, pin, it.Key, it.PendingDigest(), d.Pins.Approve)
		if errors.Is(err, surface.ErrMoved) || errors.Is(err, surface.ErrNotPinned) {
			moved++
		} else if err != nil {
			return err
		}
	}
	if moved > 0 {
		return fmt.Errorf("pins: %s not approved: the server says something else by now", terminal.Plural(moved, "version"))
	}
	return nil
}
