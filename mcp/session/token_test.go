// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

func testRing(t testing.TB, fills ...byte) *keyring.Ring {
	t.Helper()
	var keys []keyring.Key
	for _, f := range fills {
		k, err := keyring.NewKey(bytes.Repeat([]byte{f}, keyring.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	r, err := keyring.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func testTokens(t testing.TB, fills ...byte) *Tokens {
	tok := NewTokens(testRing(t, fills...), 0, "")
	tok.now = func() time.Time { return time.Unix(1_800_000_000, 5) }
	return tok
}

func seal(t testing.TB, tok *Tokens, s *Session) string {
	t.Helper()
	token, ok, err := tok.Seal(s)
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	return token
}

func TestToken(t *testing.T) {
	tok := testTokens(t, 1)
	for _, params := range []string{"", `{"protocolVersion":"2025-11-25"}`, strings.Repeat("x", 1300)} {
		s := tok.New("files", "ann tools:call")
		s.Version, s.Params, s.Stored = "2025-11-25", []byte(params), params == ""
		if params == "" {
			s.Params = nil
		}
		token := seal(t, tok, s)
		if len(token) > MaxToken || strings.ContainsFunc(token, func(c rune) bool { return c < '!' || c > '~' }) || strings.Contains(token, "ann") {
			t.Errorf("%d bytes: %s", len(token), token)
		}
		got, err := tok.Open(token)
		if err != nil || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v, want %+v", got, err, s)
		}
		if !got.Belongs("ann tools:call") || got.Belongs("ann") || got.Belongs("") {
			t.Error("owner")
		}
		if got, err = testTokens(t, 2, 1).Open(token); err != nil || got.ID() != s.ID() {
			t.Errorf("after a rotation: %v", err)
		}
		if seal(t, tok, s) == token {
			t.Error("two tokens have one nonce")
		}
	}
	s := tok.New("files", "ann")
	s.Params = make([]byte, 1600)
	if _, ok, err := tok.Seal(s); ok || err != nil {
		t.Errorf("too long: %v, %v", ok, err)
	}
	s.Server = strings.Repeat("x", 256)
	if _, _, err := tok.Seal(s); err == nil {
		t.Error("a long name")
	}
	if a, b := tok.New("", ""), tok.New("", ""); a.ID() == b.ID() {
		t.Error("two sessions have one number")
	}
}

func TestTokenRefused(t *testing.T) {
	tok := testTokens(t, 1)
	s := tok.New("files", "ann")
	s.Version, s.Stored = "2025-11-25", true
	good := seal(t, tok, s)
	later := testTokens(t, 1)
	later.now = func() time.Time { return s.Until }
	sealed := func(plain []byte) string {
		return base64.RawURLEncoding.EncodeToString(tok.box.Seal(plain, nil))
	}
	plain := func(change func([]byte) []byte) string {
		b, _ := base64.RawURLEncoding.DecodeString(good)
		b, err := tok.box.Open(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sealed(change(b))
	}
	otherUse := testRing(t, 1).Box("another use").Seal([]byte("x"), nil)
	for name, tt := range map[string]struct {
		tok   *Tokens
		token string
		want  error
	}{
		"expired":             {later, good, ErrExpired},
		"another key":         {testTokens(t, 2), good, ErrToken},
		"empty":               {tok, "", ErrToken},
		"text of before":      {tok, "MZXW6YTBOI3DGMRYGQ2TCNZVGY", ErrToken},
		"100 KB":              {tok, strings.Repeat("A", 100<<10), ErrToken},
		"padded":              {tok, good + "=", ErrToken},
		"a line end":          {tok, good[:8] + "\n" + good[8:], ErrToken},
		"cut":                 {tok, good[:len(good)-4], ErrToken},
		"changed":             {tok, good[:20] + swap(good[20]) + good[21:], ErrToken},
		"another key id":      {tok, swap(good[0]) + good[1:], ErrToken},
		"of another purpose":  {tok, base64.RawURLEncoding.EncodeToString(otherUse), ErrToken},
		"no fields":           {tok, sealed([]byte{layout, 0}), ErrToken},
		"another layout":      {tok, plain(func(b []byte) []byte { b[0]++; return b }), ErrToken},
		"an unknown flag":     {tok, plain(func(b []byte) []byte { b[1] |= 4; return b }), ErrToken},
		"parameters twice":    {tok, plain(func(b []byte) []byte { return append(b, '{') }), ErrToken},
		"no parameters":       {tok, plain(func(b []byte) []byte { b[1] = 0; return b }), ErrToken},
		"a name that is long": {tok, plain(func(b []byte) []byte { b[fixed] = 200; return b }), ErrToken},
		"no version":          {tok, plain(func(b []byte) []byte { return b[:fixed+6] }), ErrToken},
	} {
		if _, err := tt.tok.Open(tt.token); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

func swap(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// FuzzToken: no token makes the parser panic, and what is opened seals to a token that opens alike.
func FuzzToken(f *testing.F) {
	tok := testTokens(f, 1)
	s := tok.New("files", "ann")
	s.Version, s.Params = "2025-11-25", []byte(`{}`)
	f.Add(seal(f, tok, s), []byte{})
	b, _ := base64.RawURLEncoding.DecodeString(seal(f, tok, s))
	plain, err := tok.box.Open(b, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("", plain)
	f.Add("MZXW6YTBOI3DGMRYGQ2TCNZVGY", []byte{layout, flagStored})
	f.Fuzz(func(t *testing.T, token string, plain []byte) {
		_, _ = tok.Open(token)
		s, ok := parse(plain)
		if !ok {
			return
		}
		again, fits, err := tok.Seal(s)
		if err != nil || !fits {
			return
		}
		got, err := tok.Open(again)
		if err != nil && !errors.Is(err, ErrExpired) || !reflect.DeepEqual(got, s) {
			t.Errorf("%+v, %v, want %+v", got, err, s)
		}
	})
}

// TestTokenLabel: a token begins with the label of the replica that has made it, opens at every replica, and has that one
// spelling: a client cannot have a session under two ids.
func TestTokenLabel(t *testing.T) {
	first, other := testTokens(t, 1), testTokens(t, 1)
	first.label, other.label = "r1.", "r2."
	s := first.New("files", "ann")
	s.Params = []byte(strings.Repeat("x", 1300))
	token := seal(t, first, s)
	if !strings.HasPrefix(token, "r1.") || len(token) > MaxToken {
		t.Fatalf("%d bytes: %s", len(token), token)
	}
	for _, tok := range []*Tokens{first, other, testTokens(t, 1)} {
		if got, err := tok.Open(token); err != nil || got.ID() != s.ID() {
			t.Errorf("at %q: %v", tok.label, err)
		}
	}
	sealed := strings.TrimPrefix(token, "r1.")
	for _, odd := range []string{sealed, "." + sealed, "r2." + sealed, "r1.." + sealed, "r1.r1." + sealed, "R1." + sealed, token + ".", "r1.", "r1"} {
		if _, err := first.Open(odd); err != ErrToken {
			t.Errorf("%.10q: %v", odd, err)
		}
	}
	if bare := seal(t, testTokens(t, 1), s); strings.Contains(bare, ".") {
		t.Errorf("a gateway that is the only one: %s", bare)
	} else if _, err := first.Open("r1." + bare); err != ErrToken {
		t.Errorf("with a label that it never had: %v", err)
	}
}
