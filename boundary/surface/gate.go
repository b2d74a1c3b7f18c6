// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"errors"
	"time"
)

// A Conclusion is what a check comes to.
type Conclusion string

// The conclusions.
const (
	Clean    Conclusion = "clean"    // all of it may be seen
	Differs  Conclusion = "changed"  // some items wait for a person, or are blocked; the others may be seen
	Rejected Conclusion = "rejected" // none of it may be seen
)

// A Gate is the one check that every server passes before a word of it reaches a
// model: at the start, after list_changed, and when it was reached anew. It is safe
// for concurrent use if its parts are.
type Gate struct {
	Rules Rules
	// Pins remember what was approved. nil: every surface is as the first.
	Pins *Pins
	// Review makes pass 2 for a server. nil: no review, which a CheckResult says.
	Review func(server, transport string) *Review
	// HoldFirst lets nothing of a first surface be seen before a person has approved
	// it, item by item. It needs Pins.
	HoldFirst bool
	// Bare lists the surface as a client without capabilities sees it. It is asked where
	// a client has more capabilities than any before and sees new items, to tell what is
	// offered to such a client from what has changed. nil: what is new waits.
	Bare func(ctx context.Context) (*Surface, error)
}

// A CheckResult is what came of one check, and what it rests on.
type CheckResult struct {
	Conclusion Conclusion
	Inspection *Inspection
	Admission  *Admission // nil without Pins
	// Reviewed: pass 2 was made, now or (Cached) before.
	Reviewed, Cached bool
	// Pinned: the surface was the server's first, and is its pin now.
	Pinned bool
	// Offered are the items that were pinned now because a client with more capabilities
	// than any before is offered them.
	Offered []Key
	// Withheld are the items in which pass 1 has found hidden text that no reviewer has
	// accepted. Of the server's own introduction only the text is withheld.
	Withheld []Key
	// Unsettled are the items of a first surface, or offered for the first time, that changed while they were listed: a reviewer
	// has to look at them.
	Unsettled []Change
	// Seen is the surface without them.
	Seen *Surface
	// Why is a *HiddenTextError or a *RejectedError of what was rejected.
	Why error

	extends bool // the capabilities of the client that listed it are to be remembered
}

// Check judges a surface. The first that is clean is pinned. Of a server that has a
// pin, what differs is held and only the rest is judged, so that one changed tool
// does not take away the others. An item in which text is hidden is held in the same
// way, also of a first surface. The error is ctx's or the store's: nobody may see
// anything then. spec: surface/7
func (g *Gate) Check(ctx context.Context, server, transport string, s *Surface) (*CheckResult, error) {
	o := &CheckResult{Conclusion: Clean, Inspection: s.Inspect(g.Rules)}
	if g.Pins != nil {
		var err error
		if o.Admission, err = g.Pins.Admit(ctx, server, transport, s); err != nil {
			return nil, err
		}
	}
	first := o.first()
	if o.rejectsHidden(g.Rules, s) {
		o.Conclusion, o.Why = Rejected, o.Inspection.Err()
		return o, nil
	}
	o.withhold(g.Rules, s)
	if len(o.Withheld) > 0 || len(o.Unsettled) > 0 {
		o.Conclusion = Differs
	}
	judged := o.Seen
	if !first {
		if err := g.suspend(ctx, server, transport, s, o); err != nil {
			return nil, err
		}
		if err := g.offered(ctx, s, o); err != nil {
			return nil, err
		}
		judged = o.Admission.untouched()
		if len(o.Admission.heldOf(s)) > 0 {
			o.Conclusion = Differs
		}
	}
	if err := g.review(ctx, server, transport, judged, o); err != nil {
		return nil, err
	}
	if o.Conclusion == Rejected {
		return o, nil
	}
	if o.extends {
		if err := g.Pins.extend(ctx, server, s, o.Offered); err != nil {
			return nil, err
		}
	}
	if !first || g.Pins == nil {
		return o, nil
	}
	pin := func() error { return g.Pins.pin(ctx, server, transport, s, o.Seen) }
	if g.HoldFirst {
		pin = func() error { return g.Pins.hold(ctx, server, transport, s) }
	}
	switch err := pin(); {
	case errors.Is(err, ErrPinned): // another replica was faster: what it has pinned counts
		return g.Check(ctx, server, transport, s)
	case err != nil:
		return nil, err
	case g.HoldFirst || len(o.Withheld) > 0 || len(o.Unsettled) > 0:
		if o.Admission, err = g.Pins.Admit(ctx, server, transport, s); err != nil {
			return nil, err
		}
		o.Conclusion = Differs
	}
	o.Pinned = !g.HoldFirst
	return o, nil
}

// offered finds what the server offers to a client only because of its capabilities, and
// in which pass 1 finds nothing. It counts as seen for the first time.
func (g *Gate) offered(ctx context.Context, s *Surface, o *CheckResult) error {
	a := o.Admission
	if len(a.news) == 0 || g.Bare == nil || g.HoldFirst {
		return nil
	}
	bare, err := g.Bare(ctx)
	if err != nil {
		return ctx.Err() // what is new waits then
	}
	o.extends = true
	for _, k := range a.news {
		if _, always := bare.Item(k); !always && !o.Inspection.touches(k) && !o.noteUnsettled(s, k, g.Rules) {
			o.Offered = append(o.Offered, k)
		}
	}
	a.pin.extend(s, o.Offered, time.Time{})
	return nil
}

// review makes pass 2 over what no person has judged.
func (g *Gate) review(ctx context.Context, server, transport string, s *Surface, o *CheckResult) error {
	if g.Review == nil || len(s.items) == 0 {
		return nil
	}
	cached, err := g.Review(server, transport).Verify(ctx, s)
	var rejected *RejectedError
	switch {
	case errors.As(err, &rejected):
		o.Conclusion, o.Why = Rejected, err
		return nil
	case err != nil:
		return err
	}
	o.Reviewed, o.Cached = true, cached
	return nil
}

// first reports whether the server has no pin.
func (o *CheckResult) first() bool { return o.Admission == nil || o.Admission.First }

// state is that of an item of a server that has a pin; "" otherwise.
func (o *CheckResult) state(k Key) State {
	if o.first() {
		return ""
	}
	return o.Admission.State(k)
}

// rejectsHidden reports whether the hidden text rejects the server. What stands in no item, as
// in a cursor, cannot be held by itself.
func (o *CheckResult) rejectsHidden(r Rules, s *Surface) bool {
	if o.Inspection.apart {
		return true
	}
	for k := range o.Inspection.keys {
		it, isItem := s.Item(k)
		nameless := k.Kind > List && k.Name == "" // left out for its form
		if r.Reject && !o.holdsChange(r, it) || !isItem && !nameless {
			return true
		}
	}
	return false
}

// holdsChange reports whether an item is held as a change of what was approved, or is blocked.
func (o *CheckResult) holdsChange(r Rules, it Item) bool {
	switch o.state(it.Key) {
	case Blocked:
		return true
	case Pending:
		approved := o.Admission.pin.Item(it.Key).Approved
		return approved != "" && (it.Kind != Server || approved != string(it.withoutHidden(r).JSON))
	}
	return false
}

// withhold separates the items in which text is hidden from those that may be seen. A reviewer
// who has approved an item has seen its hidden text spelled out.
func (o *CheckResult) withhold(r Rules, s *Surface) {
	seen := *s
	seen.items = nil
	for _, it := range s.items {
		if o.Inspection.touches(it.Key) && o.state(it.Key) != Approved {
			o.Withheld = append(o.Withheld, it.Key)
			if it.Kind != Server {
				continue
			}
			it = it.withoutHidden(r)
		} else if o.first() && o.noteUnsettled(s, it.Key, r) {
			continue
		}
		seen.items = append(seen.items, it)
	}
	seen.print = fingerprintOf(seen.items)
	o.Seen = &seen
}

// noteUnsettled reports whether an item changed while the surface was listed, in more than its tolerated parts, and notes the
// change. A reviewer has to look at it: the next reader may see another version.
func (o *CheckResult) noteUnsettled(s *Surface, k Key, r Rules) bool {
	now, _ := s.Item(k)
	for _, it := range s.earlier {
		if it.Key == k && !it.sameBut(now, r.Tolerates) {
			o.Unsettled = append(o.Unsettled, compare(it, now))
			return true
		}
	}
	return false
}

// suspend holds the items in which text is hidden and which only their first use has approved,
// under other rules.
func (g *Gate) suspend(ctx context.Context, server, transport string, s *Surface, o *CheckResult) error {
	instead := map[Key]string{}
	for _, k := range o.Withheld {
		if o.state(k) == Pinned {
			it, _ := find(o.Seen.items, k) // the server's own introduction is not left out
			instead[k] = string(it.JSON)
		}
	}
	if len(instead) == 0 {
		return nil
	}
	if _, err := g.Pins.suspend(ctx, server, instead); err != nil {
		return err
	}
	a, err := g.Pins.Admit(ctx, server, transport, s)
	if err == nil {
		a.news = o.Admission.news
		o.Admission = a
	}
	return err
}

// untouched is what was pinned with the server and judged by no person since. It is
// the same whatever the server shows now, so that a change of one item does not ask
// about all the others again.
func (a *Admission) untouched() *Surface {
	var items []Item
	for i := range a.pin.Items {
		if it := &a.pin.Items[i]; it.Approved != "" && !it.byHand {
			items = append(items, it.approved())
		}
	}
	return &Surface{items: items, print: fingerprintOf(items)}
}

// heldOf are the items of s that must not be seen.
func (a *Admission) heldOf(s *Surface) (keys []Key) {
	for _, it := range s.items {
		if !a.live(it.Key) {
			keys = append(keys, it.Key)
		}
	}
	return keys
}
