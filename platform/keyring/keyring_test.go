// SPDX-License-Identifier: Apache-2.0

package keyring

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func key(t testing.TB, fill byte) Key {
	t.Helper()
	k, err := NewKey(bytes.Repeat([]byte{fill}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ring(t testing.TB, fills ...byte) *Ring {
	t.Helper()
	var keys []Key
	for _, f := range fills {
		keys = append(keys, key(t, f))
	}
	r, err := New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBox: a seal opens while its key is in the ring, with the same data and purpose, unchanged.
func TestBox(t *testing.T) {
	r := ring(t, 1)
	sealed := r.Box("a").Seal([]byte("plain"), []byte("data"))
	if bytes.Contains(sealed, []byte("plain")) || len(sealed) != len("plain")+Overhead {
		t.Fatalf("%x", sealed)
	}
	open := func(r *Ring, purpose string, sealed []byte, data string) error {
		plain, err := r.Box(purpose).Open(sealed, []byte(data))
		if err == nil && string(plain) != "plain" {
			t.Errorf("opened %q", plain)
		}
		return err
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	for name, tt := range map[string]struct {
		err  error
		want error
	}{
		"as it was":      {open(r, "a", sealed, "data"), nil},
		"a new key":      {open(ring(t, 2, 1), "a", sealed, "data"), nil},
		"retired":        {open(ring(t, 2), "a", sealed, "data"), ErrUnknownKey},
		"other data":     {open(r, "a", sealed, "date"), ErrForged},
		"other purpose":  {open(r, "b", sealed, "data"), ErrForged},
		"changed":        {open(r, "a", changed, "data"), ErrForged},
		"nothing":        {open(r, "a", nil, "data"), ErrForged},
		"only an id":     {open(r, "a", sealed[:idSize], "data"), ErrForged},
		"without a body": {open(r, "a", sealed[:Overhead], "data"), ErrForged},
	} {
		if !errors.Is(tt.err, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.err, tt.want)
		}
	}
}

// TestRingChanges: seals that are made while the keys change open all the time.
func TestRingChanges(t *testing.T) {
	r := ring(t, 1)
	box := r.Box("a")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 500 {
				if _, err := box.Open(box.Seal([]byte("x"), nil), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 100 {
		if err := r.Set([]Key{key(t, byte(i%2)), key(t, byte(1-i%2))}); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

func TestRing(t *testing.T) {
	if _, err := NewKey(make([]byte, 31)); err == nil {
		t.Error("a short key")
	}
	r := ring(t, 1, 2, 1)
	if len(r.Keys()) != 2 || r.Current() != key(t, 1) || !r.Equal([]Key{key(t, 1), key(t, 2)}) || r.Equal([]Key{key(t, 2), key(t, 1)}) {
		t.Errorf("%v", r.Keys())
	}
	many := make([]Key, MaxKeys+1)
	for i := range many {
		many[i] = key(t, byte(i))
	}
	same := key(t, 3)
	same.id = key(t, 1).id
	for _, bad := range [][]Key{nil, many, {key(t, 1), same}} {
		if err := r.Set(bad); err == nil || len(r.Keys()) != 2 {
			t.Errorf("%d keys: %v", len(bad), err)
		}
	}
	k := key(t, 7)
	for _, shown := range []string{fmt.Sprint(k), fmt.Sprintf("%#v", k), fmt.Sprintf("%+v", k)} {
		if !strings.Contains(shown, k.ID()) || strings.Contains(shown, "7") && strings.Contains(shown, "7 7") {
			t.Errorf("%s", shown)
		}
	}
	if bytes.Equal(k.Derive("a"), k.Derive("b")) || bytes.Equal(k.Derive("a"), k.Secret()) || len(k.Derive("a")) != KeySize {
		t.Error("derived keys")
	}
}
