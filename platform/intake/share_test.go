// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// TestShare: one caller has half, two have a third each, a new caller finds something,
// and what was given back is there again.
func TestShare(t *testing.T) {
	s := NewBudget(96)
	grab := func(who string) (n int64) {
		for s.Take(who, 1) == nil {
			n++
		}
		return n
	}
	if n := grab("a"); n != 48 {
		t.Errorf("one alone has %d", n)
	}
	if n := grab("b"); n != 24 {
		t.Errorf("the second has %d", n)
	}
	if s.Take("a", 1) != ErrGreedy || s.Take("c", 13) != nil || s.Take("d", 12) != ErrFull || s.Take("d", 11) != nil || s.Take("e", 1) != ErrFull {
		t.Errorf("%+v", s)
	}
	s.Give("a", 48)
	s.Give("c", 13)
	s.Give("d", 11)
	if n := grab("b"); n != 24 {
		t.Errorf("then the second has %d more", n)
	}
	s.Give("b", 48)
	if n := grab(""); n != 96 || s.Take("", 1) != ErrFull {
		t.Errorf("the caller without a name has %d", n)
	}
	s.Give("", 96)
	if s.used != 0 || len(s.taken) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestShareOdd: what is left is never less than what one caller has.
func TestShareOdd(t *testing.T) {
	for _, total := range []int64{1, 3, 97} {
		s, n := NewBudget(total), int64(0)
		for s.Take("a", 1) == nil {
			n++
		}
		if want := max(total/2, 1); n != want {
			t.Errorf("of %d one has %d", total, n)
		}
	}
	if s := new(Budget); s.Take("a", 0) != nil || s.Take("a", 1) != ErrFull {
		t.Error("the zero Share has something")
	}
}

// TestSharePlaces: with few places each still gets the first.
func TestSharePlaces(t *testing.T) {
	s := NewBudget(2)
	if s.Take("a", 1) != nil || s.Take("a", 1) != ErrGreedy || s.Take("b", 1) != nil || s.Take("c", 1) != ErrFull {
		t.Errorf("%+v", s)
	}
}

// TestRoom: a message that grows beside others may get the whole budget, a second one of its caller no more than the
// caller's share, and a forgotten Room is given back.
func TestRoom(t *testing.T) {
	b := NewBudget(64)
	one, two, other := b.Room("a"), b.Room("a"), b.Room("b")
	soon, stop := context.WithCancel(t.Context())
	stop()
	for _, step := range []struct {
		room *Room
		n    int64
		want error
		used int64
	}{
		{one, 20, nil, 20}, {one, 20, nil, 40}, {two, 4, ErrGreedy, 40}, {other, 20, nil, 60}, {one, 5, ErrFull, 60},
		{one, 4, nil, 64}, {other, 1, ErrFull, 64},
	} {
		if err := step.room.Add(soon, step.n); err != step.want || b.used != step.used {
			t.Errorf("%+v: %v, %d are taken", step, err, b.used)
		}
	}
	other.Leave()
	if one.Add(soon, 1000) != nil || b.used != 64 {
		t.Errorf("a message that costs more than there is: %d are taken", b.used)
	}
	one.Leave()
	one.Leave()
	if two.Take(32) != nil || two.Take(1) != ErrGreedy || !two.Scarce() == (b.used > 32) {
		t.Errorf("%d are taken", b.used)
	}
	two.Give(16)
	var none *Room
	if none.Leave(); none.Growing(2, time.Second)(1<<40) != nil || (*Budget)(nil).Room("a") != nil || b.used != 16 {
		t.Errorf("%d are taken", b.used)
	}
	two = nil
	waittest.Until(t, "the collector gives back what is forgotten", func() bool { runtime.GC(); return b.Used() == 0 })
}

// TestRoomsThatWait: of a caller's messages that wait for each other the last one gives up at once, and the first one
// gets what it needs; a message that waits while another one goes on does not give up.
func TestRoomsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100)
		rooms := make([]*Room, 5) // a caller alone has 50
		for i := range rooms {
			if rooms[i] = b.Room("a"); rooms[i].Take(10) != nil {
				t.Fatal(b.used)
			}
		}
		goesOn := rooms[4]
		ended := make([]error, 4)
		var work sync.WaitGroup
		for i := range ended {
			work.Go(func() {
				ended[i] = rooms[i].Add(t.Context(), 20)
				rooms[i].Leave()
			})
			synctest.Wait()
			if ended[i] != nil {
				t.Errorf("room %d gives up while another one goes on", i)
			}
		}
		if goesOn.Add(t.Context(), 20) == nil {
			t.Error("the last one gets what it asks for")
		}
		goesOn.Leave()
		work.Wait()
		if b.used != 0 || len(b.waiting) != 0 || errors.Join(ended[:3]...) != nil || ended[3] == nil {
			t.Errorf("%d are taken, %d callers wait; %v", b.used, len(b.waiting), ended)
		}
	})
}

// TestReserve: long messages of several callers leave memory for short ones, and one alone may have all.
func TestReserve(t *testing.T) {
	const total = 64 << 20
	b := NewBudget(total)
	soon, stop := context.WithCancel(t.Context())
	stop()
	alone := b.Room("a")
	if err := alone.Add(soon, total); err != nil {
		t.Error(err)
	}
	alone.Leave()
	rooms := []*Room{b.Room("a"), b.Room("b"), b.Room("c")}
	for range 64 { // each has one message, which grows
		for _, r := range rooms {
			_ = r.Add(soon, 1<<20) // until it is refused
		}
	}
	if left := total - b.used; left < total/8 || left > total/8+1<<20 {
		t.Errorf("%d bytes are left", left)
	}
	for _, who := range []string{"honest", "", "a"} {
		r := b.Room(who)
		if err := r.Add(soon, 64<<10); (err == nil) != (who != "a") {
			t.Errorf("a short message of %q: %v", who, err)
		}
		r.Leave()
	}
}

// TestGrowing: each byte of a message that has arrived is counted once.
func TestGrowing(t *testing.T) {
	b := NewBudget(1000)
	room := b.Room("a")
	grow := room.Growing(4, time.Second)
	for _, n := range []int{10, 5, 10, 50, 400} {
		if err := grow(n); err != nil || b.used != min(4*int64(max(n, 10)), 1000) {
			t.Errorf("%d: %v, %d are taken", n, err, b.used)
		}
	}
}

// TestReaderLeaves: the body of a request that is refused has no room, although its client
// may take seconds to read the refusal.
func TestReaderLeaves(t *testing.T) {
	gone := iotest.ErrReader(errors.New("gone"))
	for name, c := range map[string]struct {
		others, own int64 // bytes of bodies that others and the caller have
		body        io.Reader
		length      int64
		want        error // nil: another one
	}{
		"full":               {60 << 10, 0, strings.NewReader(strings.Repeat("x", 8<<10)), 8 << 10, ErrFull},
		"greedy":             {30 << 10, 14 << 10, strings.NewReader(strings.Repeat("x", 8<<10)), 8 << 10, ErrGreedy},
		"too long":           {0, 0, strings.NewReader(strings.Repeat("x", 17<<10)), -1, ErrTooLong},
		"too long, declared": {0, 0, strings.NewReader(""), 17 << 10, ErrTooLong},
		"gone":               {0, 0, io.MultiReader(strings.NewReader("x"), gone), -1, nil},
	} {
		rd := &Reader{Memory: NewBudget(BodyCost * 64 << 10), Most: 16 << 10, Patience: time.Minute}
		before := BodyCost * (c.others + c.own)
		if err := errors.Join(rd.Memory.Take("others", BodyCost*c.others), rd.Memory.Take("a", BodyCost*c.own)); err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", c.body)
		r.ContentLength = c.length
		body, room, err := rd.Read(httptest.NewRecorder(), r, "a")
		if err == nil || c.want != nil && err != c.want || body != nil || rd.Memory.used != before {
			t.Errorf("%s: %v, %d bytes; %d are taken", name, err, len(body), rd.Memory.used)
		}
		if room.Leave(); rd.Memory.used != before {
			t.Errorf("%s: %d are taken", name, rd.Memory.used)
		}
	}
}

// TestTurns: as many long messages as the Budget has turns go on at a time, the oldest of a caller first; a turn that
// is not used ends; and who waits for it stops with its context.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1000)
		b.turns = NewBudget(1)
		old, one, two := b.Room("a"), b.Room("a"), b.Room("a")
		if err := one.WaitTurn(t.Context(), time.Hour); err != nil || one.HasRivals() {
			t.Fatal(err)
		}
		var order []string
		var work sync.WaitGroup
		for name, r := range map[string]*Room{"old": old, "two": two} {
			work.Go(func() {
				if err := r.Work(t.Context(), 1); err != nil {
					t.Error(err)
				}
				order = append(order, name)
				r.Leave()
			})
		}
		synctest.Wait()
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := b.Room("b").WaitTurn(soon, time.Second); err == nil || !one.HasRivals() || len(order) != 0 {
			t.Errorf("%v, %q", err, order)
		}
		if err := one.WaitTurn(t.Context(), time.Second); err != nil { // the one that it has
			t.Error(err)
		}
		began := time.Now()
		if work.Wait(); time.Since(began) != time.Second || order[0] != "old" || one.HasRivals() {
			t.Errorf("after %v: %q", time.Since(began), order)
		}
		one.Leave()
		two.EndTurn()
		if b.used != 0 || b.turns.used != 0 {
			t.Errorf("%d are taken, %d turns", b.used, b.turns.used)
		}
	})
}

// TestFirst: of long messages that wait for each other one goes on, beyond what there is. A short one still finds
// memory, what exceeds the budget is one message, and all is given back.
func TestFirst(t *testing.T) {
	const total = 64 << 20
	b := NewBudget(total)
	b.turns = NewBudget(8)
	soon, stop := context.WithCancel(t.Context())
	stop()
	var rooms []*Room
	for i := range 6 {
		r := b.Room(string(rune('a' + i)))
		if err := errors.Join(r.WaitTurn(t.Context(), time.Hour), r.Add(soon, 9<<20)); err != nil {
			t.Fatal(err)
		}
		rooms = append(rooms, r)
	}
	if err := rooms[0].Work(soon, 60<<20); err != nil || b.used > total {
		t.Fatalf("%v, %d are taken", err, b.used)
	}
	if err := rooms[1].Add(soon, 60<<20); err == nil {
		t.Error("a second message goes beyond the budget")
	}
	if r := b.Room("short"); r.Take(64<<10) != nil {
		t.Error("a short message finds no memory")
	} else {
		r.Leave()
	}
	goesOn := make(chan error)
	go func() { goesOn <- rooms[1].Add(t.Context(), 60<<20) }()
	rooms[0].Shrink(1 << 20)
	if err := <-goesOn; err != nil {
		t.Error(err)
	}
	for _, r := range rooms {
		r.Leave()
	}
	if b.used != 0 || b.turns.used != 0 || b.first != nil || len(b.taken) != 0 {
		t.Errorf("%d are taken, %d turns", b.used, b.turns.used)
	}
}
