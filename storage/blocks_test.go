// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestBlocks walks blocks through all that can become of them, on each engine.
func TestBlocks(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		s := open(t, where, storage.Options{})
		recorded, fail := []hold.Block(nil), error(nil)
		bs := hold.NewBlocks(s.Blocks(), hold.BlockOptions{Keep: time.Hour, Most: 3, Now: func() time.Time { return now },
			Evidence: func(b hold.Block) ([]byte, error) { recorded = append(recorded, b); return nil, fail }})
		other := hold.NewBlocks(s.Blocks(), hold.BlockOptions{Now: func() time.Time { return now }}) // another process
		text, elsewhere := hold.Digest{1}, hold.Digest{2}
		covers := func(want string, server, tool string, texts ...hold.Digest) {
			t.Helper()
			now = now.Add(time.Second)
			b, found := other.Covering(ctx, server, tool, texts)
			if found != (want != "") || b.ID != want {
				t.Errorf("%s/%s %v: %q, %v", server, tool, texts, b.ID, found)
			}
		}
		covers("", "mail", "read", text)
		add := func(n int, b hold.Block) error { b.ID = heldID(n); return bs.Add(ctx, b) }
		if err := errors.Join(add(1, hold.Block{Server: "mail", Tool: "read", Text: text, Evidence: heldID(9), Severity: 700}), add(2, hold.Block{Server: "web", Tool: "get"}), add(3, hold.Block{Server: "gone"})); err != nil {
			t.Fatal(err)
		}
		covers(heldID(1), "mail", "read", elsewhere, text)
		covers("", "mail", "read", elsewhere)
		covers("", "mail", "list", text)
		covers("", "mail2", "read", text)
		covers(heldID(2), "web", "get", elsewhere)
		covers("", "web", "put")
		covers(heldID(3), "gone", "any")
		if err := add(4, hold.Block{Server: "gone"}); err != nil {
			t.Errorf("the same source again: %v", err)
		}
		if err := add(5, hold.Block{Server: "more"}); !errors.Is(err, hold.ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		n := len(recorded)
		if err := bs.Lift(ctx, heldID(3), "ann"); err != nil || len(recorded) != n+1 || recorded[n].By != "ann" {
			t.Errorf("lift: %v, %+v", err, recorded[n:])
		}
		if err := bs.Lift(ctx, heldID(3), "ann"); !errors.Is(err, hold.ErrDecided) {
			t.Errorf("lift again: %v", err)
		}
		if err := bs.Lift(ctx, heldID(8), "ann"); !errors.Is(err, hold.ErrNotFound) {
			t.Errorf("lift another: %v", err)
		}
		covers("", "gone", "any")
		fail = errors.New("no ledger")
		if err := add(6, hold.Block{Server: "more"}); err == nil {
			t.Error("put in force without a record")
		}
		if err := bs.Lift(ctx, heldID(2), "ann"); err == nil {
			t.Error("lifted without a record")
		}
		fail = nil
		if list, err := other.List(ctx, false); err != nil || len(list) != 2 {
			t.Errorf("%v, %+v", err, list)
		}
		now = now.Add(time.Hour)
		covers("", "mail", "read", text)
		if list, err := other.List(ctx, true); err != nil || len(list) != 3 {
			t.Errorf("%v, %+v", err, list)
		}
		if got, err := other.Get(ctx, heldID(1)); err != nil || got.Text != text || got.Evidence != heldID(9) || got.Severity != 700 || !got.Until.Equal(got.Since.Add(time.Hour)) {
			t.Errorf("%v, %+v", err, got)
		}
		now = now.Add(31 * 24 * time.Hour)
		if err := add(7, hold.Block{Server: "more"}); err != nil {
			t.Fatal(err)
		}
		if list, err := other.List(ctx, true); err != nil || len(list) != 1 {
			t.Errorf("not swept: %v, %+v", err, list)
		}
	})
}

// TestBlocksUnreachable: what is in force stays so while the store does not answer.
func TestBlocksUnreachable(t *testing.T) {
	t.Parallel()
	now := day
	s := open(t, t.TempDir()+"/b.db", storage.Options{})
	bs := hold.NewBlocks(s.Blocks(), hold.BlockOptions{Keep: time.Hour, Now: func() time.Time { return now }})
	if err := bs.Add(ctx, hold.Block{ID: heldID(1), Server: "mail"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, true, false} {
		if _, found := bs.Covering(ctx, "mail", "read", nil); found != want {
			t.Errorf("%v: found %v", now, found)
		}
		s.Close()
		now = now.Add(31 * time.Minute)
	}
}
