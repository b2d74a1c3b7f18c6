// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A stubIssuer is what a keySet loads from.
type stubIssuer struct {
	keys  []verifyKey
	err   error
	takes time.Duration
	loads atomic.Int32
}

func (i *stubIssuer) load(ctx context.Context) ([]verifyKey, error) {
	i.loads.Add(1)
	select {
	case <-time.After(i.takes):
		return i.keys, i.err
	case <-ctx.Done():
		return nil, errors.New("too slow")
	}
}

func newStub(kids ...string) *stubIssuer {
	i := &stubIssuer{}
	i.set(kids...)
	return i
}

// set makes the issuer publish these keys.
func (i *stubIssuer) set(kids ...string) {
	i.keys, i.err = nil, nil
	for _, kid := range kids {
		i.keys = append(i.keys, verifyKey{kid: kid, public: publicEd25519})
	}
}

var publicEd25519 = mustKeys(vectors[2].key)[0].public

func mustKeys(key string) []verifyKey {
	keys, err := parseKeys([]byte(`{"keys":[` + key + `]}`))
	if err != nil || len(keys) != 1 {
		panic("a key that is none")
	}
	return keys
}

func (i *stubIssuer) keySet() *keySet {
	return &keySet{load: i.load, now: time.Now, refresh: 15 * time.Minute, stale: 6 * time.Hour, timeout: 10 * time.Second, log: logger(nil), checking: make(chan struct{}, 1)}
}

// outcome looks the kid up: "ok", "refused", or in how long it can be known.
func outcome(s *keySet, kid string) string {
	keys, _, err := s.findKeys(context.Background(), joseHeader{alg: jose.EdDSA, kid: kid})
	var un *unavailable
	switch {
	case err == nil && len(keys) == 1:
		return "ok"
	case errors.Is(err, ErrUnauthenticated):
		return "refused"
	case errors.As(err, &un):
		return un.after.String()
	}
	return "?"
}

func TestKeySet(t *testing.T) {
	type step struct {
		sleep time.Duration
		do    func(*stubIssuer)
		kid   string
		want  string
		loads int32 // all in all, once everything has come to rest
	}
	down := func(i *stubIssuer) { i.err = errors.New("down") }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"fetched once, then again when old", []step{
			{0, nil, "a", "ok", 1},
			{14 * time.Minute, nil, "a", "ok", 1},
			{time.Minute, nil, "a", "ok", 2},
			{0, nil, "a", "ok", 2},
		}},
		{"rotation", []step{
			{0, nil, "a", "ok", 1},
			{2 * time.Minute, func(i *stubIssuer) { i.set("a", "b") }, "a", "ok", 1},
			{0, nil, "b", "ok", 2},
			{0, func(i *stubIssuer) { i.set("b") }, "a", "ok", 2},
			{15 * time.Minute, nil, "b", "ok", 3},
			{0, nil, "a", "refused", 3},
		}},
		{"an unknown key costs one load a minute", []step{
			{0, nil, "x", "refused", 1},
			{0, nil, "y", "refused", 1},
			{59 * time.Second, nil, "z", "refused", 1},
			{time.Second, nil, "z", "refused", 2},
			{0, nil, "a", "ok", 2},
		}},
		{"an outage, from the start", []step{
			{0, down, "a", "1s", 1},
			{0, nil, "a", "1s", 1},
			{time.Second, nil, "a", "2s", 2},
			{2 * time.Second, nil, "a", "4s", 3},
			{4 * time.Second, nil, "a", "8s", 4},
			{8 * time.Second, nil, "a", "16s", 5},
			{16 * time.Second, nil, "a", "32s", 6},
			{32 * time.Second, nil, "a", "1m0s", 7},
			{60 * time.Second, nil, "a", "1m0s", 8},
			{59 * time.Second, func(i *stubIssuer) { i.set("a") }, "a", "1s", 8},
			{time.Second, nil, "a", "ok", 9},
		}},
		{"an outage with keys", []step{
			{0, nil, "a", "ok", 1},
			{15 * time.Minute, down, "a", "ok", 2},
			{0, nil, "a", "ok", 2},
			{0, nil, "b", "1s", 2}, // may be a new key
			{5*time.Hour + 44*time.Minute, nil, "a", "ok", 3},
			{time.Minute, nil, "a", "4s", 4}, // six hours after they came
			{0, func(i *stubIssuer) { i.set("a") }, "a", "4s", 4},
			{4 * time.Second, nil, "a", "ok", 5},
		}},
		{"all keys withdrawn", []step{
			{0, nil, "a", "ok", 1},
			{15 * time.Minute, func(i *stubIssuer) { i.set() }, "a", "ok", 2},
			{0, nil, "a", "refused", 2},
		}},
		{"an issuer that hangs", []step{
			{0, func(i *stubIssuer) { i.takes = time.Hour }, "a", "1s", 1},
			{time.Second, func(i *stubIssuer) { i.takes = 9 * time.Second }, "a", "ok", 2},
			{15 * time.Minute, func(i *stubIssuer) { i.takes = time.Hour }, "a", "ok", 3}, // at once
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				iss := newStub("a")
				s := iss.keySet()
				for n, st := range tt.steps {
					time.Sleep(st.sleep)
					if st.do != nil {
						st.do(iss)
					}
					if got := outcome(s, st.kid); got != st.want {
						t.Errorf("step %d: %s, want %s", n, got, st.want)
					}
					synctest.Wait()
					if got := iss.loads.Load(); got != st.loads {
						t.Errorf("step %d: %d loads, want %d", n, got, st.loads)
					}
				}
				time.Sleep(s.timeout) // no load outlives it
			})
		})
	}
}

func TestKeySetSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newStub("a")
		iss.takes = 3 * time.Second
		s := iss.keySet()
		results := make(chan string)
		for n := range 100 {
			kid := "a"
			if n%2 == 1 {
				kid = "x" + strconv.Itoa(n)
			}
			go func() { results <- kid[:1] + " " + outcome(s, kid) }()
		}
		count := map[string]int{}
		for range 100 {
			count[<-results]++
		}
		if count["a ok"] != 50 || count["x refused"] != 50 || iss.loads.Load() != 1 {
			t.Errorf("%v after %d loads", count, iss.loads.Load())
		}
	})
}

// TestKeySetImpatient gives a request up while keys are being fetched: the
// others must get theirs all the same.
func TestKeySetImpatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		iss := newStub("a")
		iss.takes = 3 * time.Second
		s := iss.keySet()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err := s.findKeys(ctx, joseHeader{alg: jose.EdDSA, kid: "a"})
		if err == nil || errors.Is(err, ErrUnauthenticated) {
			t.Errorf("find = %v, want that it cannot be known", err)
		}
		if got := outcome(s, "a"); got != "ok" || iss.loads.Load() != 1 {
			t.Errorf("%s after %d loads", got, iss.loads.Load())
		}
	})
}

func TestMatch(t *testing.T) {
	now := time.Now()
	k := func(kid string) verifyKey { return verifyKey{kid: kid, public: publicEd25519} }
	for _, tt := range []struct {
		name string
		keys []verifyKey
		h    joseHeader
		want int
	}{
		{"by name", []verifyKey{k("a"), k("b")}, joseHeader{alg: jose.EdDSA, kid: "b"}, 1},
		{"no name, one key", []verifyKey{k("a")}, joseHeader{alg: jose.EdDSA}, 1},
		{"no name, one key that fits", []verifyKey{k("a"), {kid: "b", alg: "none", public: publicEd25519}}, joseHeader{alg: jose.EdDSA}, 1},
		{"no name, two keys", []verifyKey{k("a"), k("b")}, joseHeader{alg: jose.EdDSA}, 0},
		{"another algorithm", []verifyKey{k("a")}, joseHeader{alg: jose.ES256, kid: "a"}, 0},
		{"twice the name", []verifyKey{k("a"), k("a")}, joseHeader{alg: jose.EdDSA, kid: "a"}, 2},
		{"the name without end", []verifyKey{k("a"), k("a"), k("a"), k("a"), k("a")}, joseHeader{alg: jose.EdDSA, kid: "a"}, 0},
		{"a key without a name", []verifyKey{k("")}, joseHeader{alg: jose.EdDSA, kid: "a"}, 0},
	} {
		s := &keySet{keys: tt.keys, loaded: now, stale: time.Hour}
		if got := len(s.match(now, tt.h)); got != tt.want {
			t.Errorf("%s: %d keys, want %d", tt.name, got, tt.want)
		}
	}
}

// TestSignedOnce: the signature of a token that was signed is checked once for each load of keys, one that was not
// each time, and no more than so many at once.
func TestSignedOnce(t *testing.T) {
	sign := newSigner(t, "EdDSA", "a")
	token := sign.sign(t, sign.header(), object{"sub": "x"})
	keys := mustKeys(string(must(json.Marshal(sign.jwk(t)))))
	i := newStub()
	i.keys = keys
	s := i.keySet()
	found, load, err := s.findKeys(t.Context(), joseHeader{alg: jose.EdDSA, kid: "a"})
	if err != nil {
		t.Fatal(err)
	}
	busy := func(token string) bool {
		s.checking <- struct{}{} // no place for a check is left
		defer func() { <-s.checking }()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, err := s.verifySignature(ctx, token, jose.EdDSA, found, load)
		return err != nil
	}
	if !busy(token) {
		t.Error("a token that was never checked is accepted")
	}
	if ok, err := s.verifySignature(t.Context(), token, jose.EdDSA, found, load); !ok || err != nil {
		t.Fatal(ok, err)
	}
	bad := token[:len(token)-4] + "AAAA"
	if ok, err := s.verifySignature(t.Context(), bad, jose.EdDSA, found, load); ok || err != nil {
		t.Error("a bad signature", ok, err)
	}
	if busy(token) || !busy(bad) {
		t.Error("the good token is checked again, or the bad one is not")
	}
	s.finish(keys, nil)
	if load = s.loaded; !busy(token) {
		t.Error("the token is not checked after a load")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
