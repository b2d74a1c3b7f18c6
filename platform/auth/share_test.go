// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// limited is a process with a limit.
type limited struct {
	share *Share
	h     http.Handler
}

func newLimited(t *testing.T, key string) *limited {
	t.Helper()
	l := &limited{share: NewShare([]byte(key))}
	limit, err := NewLimit(Limits{Rate: 30, Burst: 30, Share: l.share})
	if err != nil {
		t.Fatal(err)
	}
	l.h = limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return l
}

// ask reports whether a request of a principal passes.
func (l *limited) ask(id string) bool {
	r, w := httptest.NewRequest("POST", "/", nil), httptest.NewRecorder()
	l.h.ServeHTTP(w, r.WithContext(newContext(r.Context(), Principal{ID: id})))
	return w.Code == 200
}

// TestShare: three processes let a principal pass about as often as one does, and others are not affected.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []*limited{newLimited(t, "k"), newLimited(t, "k"), newLimited(t, "k")}
		told := map[string][]byte{}
		passed, other := 0, 0
		for second := range 60 {
			for i := range 300 { // 100 at each process
				if all[i%3].ask("alice") && second >= 10 {
					passed++
				}
				time.Sleep(time.Second / 300)
			}
			if all[second%3].ask("bob") {
				other++
			}
			for i, l := range all {
				name := string(rune('a' + i))
				rest := map[string][]byte{}
				for k, v := range told {
					if k != name {
						rest[k] = v
					}
				}
				told[name] = l.share.Exchange(rest)
				l.share.Exchange(rest) // again: it counts once, and what was spent meanwhile is told later
			}
		}
		if passed < 50*24 || passed > 50*36 {
			t.Errorf("%d requests in 50 seconds, want about 1,500", passed)
		}
		if other != 60 {
			t.Errorf("another principal was let pass %d of 60 times", other)
		}
	})
}

// TestShareOdd: what is not spelled as Exchange spells it, or is of another key, changes nothing.
func TestShareOdd(t *testing.T) {
	l, strange := newLimited(t, "k"), newLimited(t, "other")
	l.ask("alice")
	for range 30 {
		strange.ask("alice")
	}
	l.share.Exchange(map[string][]byte{"a": nil, "b": {1}, "c": bytes.Repeat([]byte{0xff}, 19), "d": strange.share.Exchange(nil)})
	if !l.ask("alice") {
		t.Error("a principal pays for what another key has named")
	}
}

// FuzzExchange: what another process tells may be anything. No principal pays more than the bound, and what
// this process tells has its form.
func FuzzExchange(f *testing.F) {
	f.Add([]byte{}, "alice")
	f.Add(bytes.Repeat([]byte{0xff}, 32), "alice")
	f.Fuzz(func(t *testing.T, told []byte, id string) {
		l := newLimited(t, "k")
		l.ask(id)
		mark := l.share.mark(id)
		out := l.share.Exchange(map[string][]byte{"a": told, "b": append(append(told, mark[:]...), 0xff, 0xff, 0xff, 0xff)})
		if (len(out)-8)%12 != 0 {
			t.Errorf("told %d bytes", len(out))
		}
		for _, a := range l.share.table.all {
			if a.rate.Tokens() < -(maxDebt+1)*30 {
				t.Errorf("a debt of %f", a.rate.Tokens())
			}
		}
	})
}
