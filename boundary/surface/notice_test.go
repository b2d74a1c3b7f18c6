// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestNotice: what a session was shown waits, and nothing that was known before is lost.
func TestNotice(t *testing.T) {
	ctx, m := context.Background(), newMemory()
	p := NewPins(m, func() time.Time { return epoch })
	first := surfaceOf(t, tool("a", "A."), tool("b", "B."))
	b2, _ := surfaceOf(t, tool("b", "B2")).Item(Key{Tool, "b"})
	a2, _ := surfaceOf(t, tool("a", "A2")).Item(Key{Tool, "a"})
	if _, err := p.Notice(ctx, "s", []Item{a2}); !errors.Is(err, ErrNotPinned) {
		t.Errorf("%v", err)
	}
	if err := p.Pin(ctx, "s", "t", first); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false} {
		if news, err := p.Notice(ctx, "s", []Item{b2, first.items[1]}); err != nil || news != want {
			t.Errorf("%d: %v, %v", i, news, err)
		}
	}
	if _, err := p.Notice(ctx, "s", []Item{a2}); err != nil {
		t.Fatal(err)
	}
	pin, err := p.Get(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": string(a2.JSON), "b": string(b2.JSON)} {
		if it := pin.Item(Key{Tool, name}); it.Pending != want || it.Approved == "" || it.State() != Pending {
			t.Errorf("%+v", it)
		}
	}
	if err := p.Approve(ctx, "s", b2.Key, b2.Digest, "me"); err != nil {
		t.Error(err)
	}
	many := make([]Item, 2*maxNoticed)
	for i := range many {
		many[i] = newItem(Key{Tool, fmt.Sprint("n", i)}, []byte("{}"))
	}
	if _, err := p.Notice(ctx, "s", many); err != nil {
		t.Fatal(err)
	}
	if pin, err = p.Get(ctx, "s"); err != nil || len(pin.Items) != len(first.items)+maxNoticed {
		t.Errorf("%d items, %v", len(pin.Items), err)
	}
}

// TestRejectionIsNoPin: why a server was refused is remembered, and nothing is believed
// of it for that.
func TestRejectionIsNoPin(t *testing.T) {
	ctx, m := context.Background(), newMemory()
	p := NewPins(m, func() time.Time { return epoch })
	for _, why := range []string{"hidden", "hidden", "other"} {
		if err := p.Reject(ctx, "s", "t", why); err != nil {
			t.Fatal(err)
		}
	}
	if pin, err := p.Get(ctx, "s"); err != nil || pin.Rejected != "other" || !pin.RejectedAt.Equal(epoch) || !pin.unborn() {
		t.Errorf("%+v, %v", pin, err)
	}
	s := surfaceOf(t, tool("a", "A."))
	if a, err := p.Admit(ctx, "s", "t", s); err != nil || !a.First || a.live(Key{Tool, "a"}) {
		t.Errorf("%+v, %v", a, err)
	}
	if err := p.Pin(ctx, "s", "t", s); err != nil {
		t.Fatal(err)
	}
	if err := p.Pin(ctx, "s", "t", s); !errors.Is(err, ErrPinned) {
		t.Errorf("%v", err)
	}
	if err := p.Reject(ctx, "s", "t", "later"); err != nil {
		t.Fatal(err)
	}
	if a, err := p.Admit(ctx, "s", "t", s); err != nil || a.First || !a.live(Key{Tool, "a"}) {
		t.Errorf("%+v, %v", a, err)
	}
	for _, server := range []string{"s", "never seen"} {
		if err := p.Reject(ctx, server, "t", ""); err != nil {
			t.Fatal(err)
		}
	}
	if pin, err := p.Get(ctx, "s"); err != nil || pin.Rejected != "" || len(pin.Items) == 0 {
		t.Errorf("%+v, %v", pin, err)
	}
	if _, err := p.Get(ctx, "never seen"); !errors.Is(err, ErrNotPinned) {
		t.Errorf("%v", err)
	}
}

// TestHoldFirst: with HoldFirst a clean first surface is pinned and none of it is live,
// until a person approves it; Suspend takes back only what nobody has judged.
func TestHoldFirst(t *testing.T) {
	ctx, m := context.Background(), newMemory()
	g := Gate{Pins: NewPins(m, func() time.Time { return epoch }), HoldFirst: true}
	s := surfaceOf(t, tool("a", "A."), tool("b", "B."))
	a, _ := s.Item(Key{Tool, "a"})
	check := func(live bool) {
		t.Helper()
		o, err := g.Check(ctx, "s", "t", s)
		if err != nil || o.Conclusion != Differs || o.Pinned || o.live(a.Key) != live || o.live(Key{Tool, "b"}) || o.live(Key{Kind: Server}) {
			t.Errorf("%+v, %v", o, err)
		}
	}
	check(false)
	check(false)
	if err := g.Pins.Approve(ctx, "s", a.Key, a.Digest, "me"); err != nil {
		t.Fatal(err)
	}
	check(true)
	if n, err := g.Pins.Suspend(ctx, "s", a.Key); n > 0 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
	check(true)

	g = Gate{Pins: NewPins(newMemory(), func() time.Time { return epoch })}
	if o, err := g.Check(ctx, "s", "t", s); err != nil || !o.Pinned {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if n, err := g.Pins.Suspend(ctx, "s", a.Key, Key{Tool, "no such"}); (n == 1) != want || err != nil {
			t.Errorf("%v, %v", n, err)
		}
	}
	o, err := g.Check(ctx, "s", "t", s)
	if err != nil || o.live(a.Key) || !o.live(Key{Tool, "b"}) {
		t.Errorf("%+v, %v", o, err)
	}
	hidden := surfaceOf(t, tool("a", "A\u200b."))
	if o, err := (&Gate{Pins: NewPins(newMemory(), nil), HoldFirst: true, Rules: Rules{Reject: true}}).Check(ctx, "s", "t", hidden); err != nil || o.Conclusion != Rejected {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestItemsOneByOne: single answers make the items that the whole surface has.
func TestItemsOneByOne(t *testing.T) {
	s := surfaceOf(t, tool("a", "A\u202e."))
	for _, a := range s.answers {
		for e := range a.doc.Root().Get(Entries(a.method)).Elements() {
			it, ok := EntryItem(a.method, e)
			if whole, there := s.Item(it.Key); !ok || !there || whole.Digest != it.Digest {
				t.Errorf("%v, %v", it.Key, ok)
			}
			in := it.Inspect(Rules{})
			if len(in.Hits) != 1 || in.Hits[0].Pointer != "/description" {
				t.Errorf("%+v", in)
			}
			if in := it.Inspect(Rules{DangerouslyAllow: []Digest{it.Digest}}); in.Err() != nil {
				t.Errorf("%+v", in)
			}
		}
		if Entries(a.method) == "" {
			if it, _ := s.Item(Key{Kind: Server}); HelloItem(a.doc.Root()).Digest != it.Digest {
				t.Error("another introduction")
			}
		}
	}
}
