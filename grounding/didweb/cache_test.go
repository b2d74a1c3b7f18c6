// SPDX-License-Identifier: Apache-2.0

package didweb

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// A site serves a document that can be exchanged.
type site struct {
	body  atomic.Value // string; "": 404
	asked atomic.Int32
}

func (s *site) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.asked.Add(1)
	body, _ := s.body.Load().(string)
	if body == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, body)
}

func TestCache(t *testing.T) {
	s := new(site)
	k1, k2 := key(t, 1), key(t, 2)
	var changes []change
	w := newWorld(t, s, func(_ *world, o *Options) { o.changed = func(c change) { changes = append(changes, c) } })
	step := func(what, method string, after time.Duration, wantReason Reason, wantAsked int32) {
		t.Helper()
		w.advance(after)
		_, err := w.ResolveKey(t.Context(), method)
		if got := reason(err); got != wantReason {
			t.Errorf("%s: %q, want %q", what, got, wantReason)
		}
		if got := s.asked.Load(); got != wantAsked {
			t.Errorf("%s: asked %d times, want %d", what, got, wantAsked)
		}
	}
	step("absent", method, 0, absent, 1)
	step("absent, remembered", method, 29*time.Second, absent, 1)
	s.body.Store(documentOf(did, 1, k1))
	step("there", method, time.Second, "", 2)
	step("remembered", method, 9*time.Minute, "", 2)
	if len(changes) != 0 {
		t.Errorf("changes %v", changes)
	}
	step("an unknown key of an older document asks again", did+"#key-2", 0, notAuthorised, 3)
	step("but not at once", did+"#key-2", time.Second, recent, 3)
	step("which does not hurt the known one", method, 0, "", 3)
	s.body.Store(documentOf(did, 2, k2))
	step("rotated", did+"#key-2", 30*time.Second, "", 4)
	if len(changes) != 1 || changes[0].did != did || changes[0].before == changes[0].after {
		t.Errorf("changes %v", changes)
	}
	step("the old key is gone", method, time.Minute, notAuthorised, 5)
	s.body.Store("")
	step("a failed look at a newer one", did+"#key-3", time.Minute, absent, 6)
	step("leaves what is known", did+"#key-2", 0, "", 6)
	step("until it is too old", did+"#key-2", 10*time.Minute, absent, 7)
	s.body.Store(documentOf(did, 2, k2))
	step("back again", did+"#key-2", time.Minute, "", 8)
	if len(changes) != 1 {
		t.Errorf("the same document is no change: %v", changes)
	}
}

func TestCacheBound(t *testing.T) {
	c := newCache(3)
	for i := range 10 {
		c.put(memory{did: fmt.Sprint(i), body: []byte{byte(i)}})
		c.get("0") // stays
	}
	if len(c.at) != 3 || c.order.Len() != 3 {
		t.Errorf("%d, %d entries, want 3", len(c.at), c.order.Len())
	}
	for did, want := range map[string]bool{"0": true, "9": true, "8": true, "7": false} {
		if got := c.get(did).body != nil; got != want {
			t.Errorf("%s is there: %v, want %v", did, got, want)
		}
	}
}

func TestSingleFlight(t *testing.T) {
	release := make(chan struct{})
	s := new(site)
	s.body.Store(documentOf(did, 1, key(t, 1)))
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-release
		s.ServeHTTP(w, r)
	}))
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := w.ResolveKey(t.Context(), method); err != nil {
				t.Error(err)
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.ResolveKey(gone, method); err == nil {
		t.Error("an asker that is gone got an answer")
	}
	close(release)
	wg.Wait()
	if n := s.asked.Load(); n != 1 {
		t.Errorf("asked %d times, want 1", n)
	}
}

func TestPerHost(t *testing.T) {
	var at, most, asked atomic.Int32
	release := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := at.Add(1)
		defer at.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		asked.Add(1)
		<-release
		w.WriteHeader(http.StatusNotFound)
	}))
	reasons := make(chan Reason, 2*maxInLine)
	for i := range cap(reasons) {
		go func() {
			_, err := w.ResolveKey(t.Context(), fmt.Sprintf("%s:%d#k", did, i))
			reasons <- reason(err)
		}()
	}
	counts := map[Reason]int{}
	for range cap(reasons) - maxInLine { // these get no place in the line
		counts[<-reasons]++
	}
	waittest.Until(t, "as many are asked as may be", func() bool { return asked.Load() >= maxPerHost })
	time.Sleep(100 * time.Millisecond) // for one too many to come
	close(release)
	for range maxInLine {
		counts[<-reasons]++
	}
	if most.Load() > maxPerHost || asked.Load() != maxInLine || counts[Busy] != maxInLine || counts[absent] != maxInLine {
		t.Errorf("%d at a time, %d asked, %v", most.Load(), asked.Load(), counts)
	}
	if len(w.slots.hosts) != 0 || len(w.slots.total) != 0 || len(w.flights) != 0 {
		t.Errorf("left over: %d hosts, %d slots, %d flights", len(w.slots.hosts), len(w.slots.total), len(w.flights))
	}
}

func TestSlotsInAll(t *testing.T) {
	s := newSlots()
	ctx, cancel := context.WithCancel(t.Context())
	var leave []func()
	for i := range maxTotal {
		l, e := s.enter(ctx, fmt.Sprint(i))
		if e != nil {
			t.Fatal(e)
		}
		leave = append(leave, l)
	}
	cancel()
	if _, e := s.enter(ctx, "one more"); e == nil {
		t.Error("one more than there are")
	}
	for _, l := range leave {
		l()
	}
	if len(s.hosts) != 0 || len(s.total) != 0 {
		t.Errorf("left over: %d hosts, %d slots", len(s.hosts), len(s.total))
	}
}

func TestFlightsBound(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }),
		func(_ *world, o *Options) { o.timeout = time.Minute })
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(release)
	busy := make(chan struct{}, 2*maxFlights)
	for i := range 2 * maxFlights {
		wg.Go(func() {
			// A host of its own each: the line of one is shorter.
			m := "did:web:h" + strings.Repeat("0", i%5) + fmt.Sprint(i) + ".example.com#k"
			if _, err := w.ResolveKey(t.Context(), m); reason(err) == Busy {
				busy <- struct{}{}
			}
		})
	}
	enough := time.After(20 * time.Second)
	for range maxFlights {
		select {
		case <-busy:
		case <-enough:
			t.Fatal("more fetches are under way than there may be")
		}
	}
}
