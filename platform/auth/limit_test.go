// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func mustLimit(t testing.TB, l Limits, next http.Handler) http.Handler {
	t.Helper()
	limit, err := NewLimit(l)
	if err != nil {
		t.Fatal(err)
	}
	return limit(next)
}

// ask makes a request as the principal, or from the address if that is "".
func ask(h http.Handler, id, addr string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = addr
	if id != "" {
		r = r.WithContext(newContext(r.Context(), Principal{ID: id}))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestLimitRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := mustLimit(t, Limits{Rate: 0.5, Burst: 3}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		expect := func(id string, want int, retry string) {
			t.Helper()
			w := ask(h, id, "192.0.2.1:1")
			if w.Code != want || w.Header().Get("Retry-After") != retry {
				t.Errorf("%s: %d, Retry-After %q; want %d, %q", id, w.Code, w.Header().Get("Retry-After"), want, retry)
			}
		}
		for range 3 {
			expect("a", 200, "")
		}
		expect("a", 429, "2")
		expect("a", 429, "2") // a refusal costs nothing
		expect("b", 200, "")
		expect("", 200, "")
		time.Sleep(1500 * time.Millisecond)
		expect("a", 429, "1")
		time.Sleep(500 * time.Millisecond)
		expect("a", 200, "")
		expect("a", 429, "2")
		time.Sleep(time.Hour)
		for range 3 {
			expect("a", 200, "")
		}
		expect("a", 429, "2")
	})
}

func TestLimitConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := mustLimit(t, Limits{Concurrent: 2}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { ask(h, "a", "") })
		}
		synctest.Wait()
		if w := ask(h, "a", ""); w.Code != 429 || w.Header().Get("Retry-After") != "1" {
			t.Errorf("a third one: %d", w.Code)
		}
		wg.Go(func() { ask(h, "b", "") })
		close(release)
		wg.Wait()
		if w := ask(h, "a", ""); w.Code != 200 {
			t.Errorf("after the others: %d", w.Code)
		}
	})
}

// TestLimitPanic leaves a handler by a panic: its place must be free again.
func TestLimitPanic(t *testing.T) {
	h := mustLimit(t, Limits{Concurrent: 1}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for range 3 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("refused: the place is not free")
				}
			}()
			ask(h, "a", "")
		}()
	}
}

// TestLimitTable has more come than can be told apart.
func TestLimitTable(t *testing.T) {
	limits := Limits{Rate: 1, Burst: 2, Concurrent: 5, principals: 3}
	table := newTable(limits)
	now := time.Unix(1_800_000_000, 0)
	try := func(key string) bool {
		a, _ := table.enter(key, now)
		if a != nil {
			table.leave(a, now)
		}
		return a != nil
	}
	for _, key := range []string{"a", "b", "c", "a", "b", "c"} {
		if !try(key) {
			t.Fatalf("%s refused", key)
		}
	}
	// The table is full of those who have used theirs up: the rest share one.
	for i := range 100 {
		if got, want := try("new"+strconv.Itoa(i)), i < 2; got != want {
			t.Errorf("newcomer %d: %v, want %v", i, got, want)
		}
	}
	if try("a") || len(table.all) != 3 {
		t.Errorf("others have won a something, or a place: %d", len(table.all))
	}
	// Those with a request under way stay, whatever comes.
	now = now.Add(2 * time.Second)
	held, _ := table.enter("b", now)
	now = now.Add(time.Hour)
	for i := range 100 {
		if !try("later" + strconv.Itoa(i)) {
			t.Fatalf("later%d refused", i)
		}
		now = now.Add(2 * time.Second)
	}
	if table.all["b"] != held || len(table.all) != 3 || table.idle.Len() != 2 {
		t.Errorf("%d told apart, %d idle", len(table.all), table.idle.Len())
	}
	table.leave(held, now)
	if table.idle.Len() != 3 {
		t.Errorf("%d idle, want 3", table.idle.Len())
	}
}

func TestPrefix(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.77":        "192.0.2.77/32",
		"::ffff:192.0.2.77": "192.0.2.77/32",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64",
		"2001:db8:1:2:ff::": "2001:db8:1:2::/64",
		"fe80::1%eth0":      "fe80::/64",
		"127.0.0.1":         "127.0.0.1/32",
	} {
		if got := prefix(netip.MustParseAddr(addr)); got != want {
			t.Errorf("prefix(%s) = %s, want %s", addr, got, want)
		}
	}
	if got := prefix(netip.Addr{}); got != "" {
		t.Errorf("prefix of nothing = %q", got)
	}
}

// TestLimitAddress tells the unknown apart by where they come from, and a known
// principal from everybody.
func TestLimitAddress(t *testing.T) {
	limit, err := NewLimit(Limits{Rate: 1e-6, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	h, other := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), limit(http.NotFoundHandler())
	for i, tt := range []struct {
		id, addr string
		want     int
	}{
		{"", "192.0.2.1:1", 200}, {"", "192.0.2.1:2", 429}, {"", "192.0.2.2:1", 200},
		{"", "[2001:db8::1]:1", 200}, {"", "[2001:db8::2]:1", 429}, {"", "[2001:db8:0:1::1]:1", 200},
		{"", "@", 200}, {"", "", 429},
		{"a", "192.0.2.1:1", 200}, {"a", "192.0.2.9:1", 429}, {"b", "192.0.2.1:1", 200},
		{"192.0.2.3/32", "", 200}, {"", "192.0.2.3:1", 200},
	} {
		if got := ask(h, tt.id, tt.addr).Code; got != tt.want {
			t.Errorf("%d: %q from %s: %d, want %d", i, tt.id, tt.addr, got, tt.want)
		}
	}
	if got := ask(other, "a", "").Code; got != 429 {
		t.Errorf("another handler of the same limit: %d", got)
	}
}

func TestNewLimitMistakes(t *testing.T) {
	for _, l := range []Limits{{Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Burst: -1}, {Concurrent: -1}, {principals: -1}} {
		if _, err := NewLimit(l); err == nil {
			t.Errorf("NewLimit(%+v) is content", l)
		}
	}
}

func TestLimitRace(t *testing.T) {
	h := mustLimit(t, Limits{Rate: 1e6, Burst: 1e6, principals: 8}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				if w := ask(h, fmt.Sprint("p", (i*7+g)%20), ""); w.Code != 200 && w.Code != 429 {
					t.Errorf("status %d", w.Code)
				}
			}
		})
	}
	wg.Wait()
}

// TestRequireLimited: requests with bad tokens use up the limit for refusals of their address, and nothing of the limit of a
// principal may do that has the same address.
func TestRequireLimited(t *testing.T) {
	limit, err := NewLimit(Limits{Rate: 1e-9, Burst: 2, Concurrent: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{
		"require":  RequireLimited(knows("good", Principal{ID: "a", Scopes: []string{"s"}}), "", limit, http.NotFoundHandler()),
		"identify": IdentifyLimited(knows("good", Principal{ID: "a"}), limit, http.NotFoundHandler()),
	} {
		t.Run(name, func(t *testing.T) {
			send := func(token string) int {
				r := httptest.NewRequest("GET", "/", nil)
				r.RemoteAddr = "192.0.2." + strconv.Itoa(len(name)) + ":1"
				r.Header.Set("Authorization", "Bearer "+token)
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if (w.Code == http.StatusTooManyRequests) != (w.Header().Get("Retry-After") != "") {
					t.Errorf("%d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
				}
				return w.Code
			}
			for i, want := range []int{401, 401, 429, 429} {
				if got := send("bad"); got != want {
					t.Errorf("bad token %d: %d", i, got)
				}
				if got := send("good"); got != 404 {
					t.Errorf("good token beside bad token %d: %d", i, got)
				}
			}
		})
	}
	// A principal that lacks the scope has a limit of its own.
	h := RequireLimited(knows("good", Principal{ID: "a"}), "s", limit, http.NotFoundHandler())
	for i, want := range []int{403, 403, 429} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = "192.0.2.7:1"
		r.Header.Set("Authorization", "Bearer good")
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("request %d without the scope: %d", i, w.Code)
		}
	}
}

// TestIdentifiedTwice: a guard behind another one knows the principal, whose credentials are gone.
func TestIdentifiedTwice(t *testing.T) {
	a := knows("good", Principal{ID: "a", Scopes: []string{"s"}})
	for scope, want := range map[string]int{"": 404, "s": 404, "other": 403} {
		h := Identify(a, Require(a, scope, http.NotFoundHandler()))
		for token, want := range map[string]int{"Bearer good": want, "Bearer bad": 401, "": 401} {
			r := httptest.NewRequest("GET", "/", nil)
			if token != "" {
				r.Header.Set("Authorization", token)
			}
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != want {
				t.Errorf("scope %q, %q: %d", scope, token, w.Code)
			}
		}
	}
}

func BenchmarkLimit(b *testing.B) {
	table := newTable(Limits{Rate: 1e9, Burst: 1e9, Concurrent: 1e9, principals: 10_000})
	keys := make([]string, 20_000)
	for i := range keys {
		keys[i] = "p" + strconv.Itoa(i)
	}
	now := time.Now()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		now = now.Add(time.Microsecond)
		if a, _ := table.enter(keys[i%len(keys)], now); a != nil {
			table.leave(a, now)
		}
	}
}
