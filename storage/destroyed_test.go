// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestDestroyed: content that was denied, has expired, was delivered or was forgotten stands in no file of an
// SQLite store, while the store stays open: neither in the database with its free pages nor in the
// write-ahead file.
func TestDestroyed(t *testing.T) {
	t.Parallel()
	where := filepath.Join(t.TempDir(), "p.db")
	now := day
	s := open(t, where, storage.Options{})
	q := hold.New(s, hold.Options{Now: func() time.Time { return now }, Keep: time.Hour})
	const kinds = 6
	text := func(i int) string { return fmt.Sprintf("SECRET-%d-", i) }
	for i := range kinds {
		for j, size := range []int{1, 4000} { // in the page of its row, and in pages of its own
			must(t, q.Hold(ctx, held(2*i+j, func(it *hold.Item) {
				it.Principal, it.Body = fmt.Sprint("p", i), []byte(strings.Repeat(text(i), size))
			})))
		}
	}
	found := func(i int) (in []string) {
		t.Helper()
		names, err := filepath.Glob(where + "*")
		must(t, err)
		for _, name := range names {
			b, err := os.ReadFile(name)
			must(t, err)
			if bytes.Contains(b, []byte(text(i))) {
				in = append(in, filepath.Base(name))
			}
		}
		return in
	}
	for i := range kinds {
		if len(found(i)) == 0 {
			t.Fatalf("%s is in no file, so that this test shows nothing", text(i))
		}
	}
	both := func(i int, do func(id string) error) { must(t, do(heldID(2*i))); must(t, do(heldID(2*i+1))) }
	check := func(i int, how string) {
		t.Helper()
		if in := found(i); len(in) > 0 {
			t.Errorf("%s: still in %q", how, in)
		}
	}
	both(0, func(id string) error { return q.Deny(ctx, id, "ann") })
	check(0, "denied")
	all := hold.Filter{Principal: "p1", AsOf: now}
	_, shown, err := q.Show(ctx, all)
	must(t, err)
	d, err := q.DecideAll(ctx, shown, hold.Denied, "ann", all)
	must(t, err)
	if check(1, "denied in a selection"); d.Done != 2 {
		t.Errorf("%+v", d)
	}
	both(2, func(id string) error { return q.Release(ctx, id, "ann") })
	for j := range 2 {
		if _, ok := q.Take(ctx, held(4+j).Call); !ok {
			t.Error("not delivered")
		}
	}
	// held makes the digest of a call of "lab" whatever the principal.
	check(2, "delivered")
	if f, err := s.Forget(ctx, "p3", nil); err != nil || f.Held != 2 {
		t.Errorf("%+v, %v", f, err)
	}
	must(t, s.Compact(ctx))
	check(3, "forgotten")
	if len(found(4)) == 0 {
		t.Error("what is still held is gone")
	}
	now = now.Add(2 * time.Hour)
	_, err = q.Sweep(ctx)
	must(t, err)
	check(4, "expired")
	check(5, "expired")
}
