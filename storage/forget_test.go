// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// about makes a record whose subjects include a name in one of the roles that names have.
func about(t *testing.T, role ledger.Role, name string) []byte {
	e := ledger.Event{Time: time.Now(), Kind: ledger.Message, Verdict: "passed", Subjects: []ledger.Subject{
		{Role: ledger.Received, Digest: sha256.Sum256([]byte("an answer"))}, {Role: role, Digest: sha256.Sum256([]byte(name))}}}
	rand.Read(e.ID[:])
	return seal(t, &e)
}

// TestForget erases one person of two, and nothing of the other's.
func TestForget(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s, now, keys := open(t, where, storage.Options{}), day, keyring(t)
		q := hold.New(s, hold.Options{Now: func() time.Time { return now }})
		for n, who := range []string{"ann", "ann", "bob", "bob"} {
			if err := q.Hold(ctx, held(n, func(it *hold.Item) { it.Principal = who })); err != nil {
				t.Fatal(err)
			}
		}
		// ann reviews what answered bob, and bob what answered ann.
		for n, by := range map[int]string{0: "bob", 2: "ann"} {
			if err := q.Deny(ctx, heldID(n), by); err != nil {
				t.Fatal(err)
			}
		}
		l := s.Ledger()
		const records = 1000 // more than one query reads
		for i := range records {
			add(t, l, about(t, []ledger.Role{ledger.Principal, ledger.By}[i%2], []string{"ann", "bob", "cyd", "dee"}[i/2%4]))
		}
		flush(t, sequencer(l, keys))
		want := storage.Forgotten{Held: 2, Names: 1, Openings: records / 4}
		got, err := s.Forget(ctx, "ann", nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for n, there := range []bool{false, false, true, true} {
			if it, err := q.Get(ctx, heldID(n)); (err == nil) != there || there && it.By != "" {
				t.Errorf("item %d: %q, %v", n, it.By, err)
			} else if !there && !errors.Is(err, hold.ErrNotFound) {
				t.Error(err)
			}
		}
		r := verified(t, l, keys)
		if r.Records != records+1 || r.Erased != records/4 {
			t.Errorf("%d records verify, %d openings are erased; want %d and %d", r.Records, r.Erased, records+1, records/4)
		}
		if err := s.Compact(ctx); err != nil {
			t.Error(err)
		}
		if again, err := s.Forget(ctx, "ann", nil); err != nil || again != (storage.Forgotten{}) {
			t.Errorf("a second time: %+v, %v", again, err)
		}
	})
}
