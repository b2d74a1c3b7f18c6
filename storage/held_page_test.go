// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestHeldPages: pages of every filter together have each item once, in the order of one list.
func TestHeldPages(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		fillHeld(t, raw(t, where), where[0] == 'p', 3000)
		q := hold.New(s, hold.Options{Now: func() time.Time { return day }})
		for _, f := range []hold.Filter{{}, {State: hold.Held}, {State: hold.Expired}, {State: hold.Denied}, {Server: "s7"}, {Tool: "t3"}, {State: hold.Expired, Server: "s5"}} {
			var all, pages []string
			for _, page := range []struct {
				into  *[]string
				limit int
			}{{&all, 1000}, {&pages, 7}} {
				f.After, f.Limit = "", page.limit
				for {
					items, err := q.List(ctx, f)
					if err != nil {
						t.Fatal(err)
					}
					for _, it := range items {
						*page.into = append(*page.into, it.ID)
					}
					if len(items) < f.Limit {
						break
					}
					f.After = items[len(items)-1].ID
				}
			}
			once := slices.Compact(slices.Sorted(slices.Values(all)))
			if len(all) == 0 || len(once) != len(all) || !slices.Equal(all, pages) {
				t.Errorf("%+v: %d items, %d of them once, %d in pages", f, len(all), len(once), len(pages))
			}
		}
		if _, err := q.List(ctx, hold.Filter{After: heldID(9999)}); !errors.Is(err, hold.ErrNotFound) {
			t.Errorf("behind an item that is gone: %v", err)
		}
	})
}

// TestSweepInBatches: more than one transaction's worth expires and goes, each with its record.
func TestSweepInBatches(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		fillHeld(t, raw(t, where), where[0] == 'p', 3000)
		records := 0
		evidence := func(hold.Item) ([]byte, error) { records++; return nil, nil }
		later := day.Add(48 * time.Hour)
		n, err := s.SweepHeld(ctx, later, day, evidence)
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		q := hold.New(s, hold.Options{Now: func() time.Time { return later }})
		if waiting, err := q.List(ctx, hold.Filter{State: hold.Held}); err != nil || len(waiting) != 0 || records != 303 {
			t.Errorf("%v: %d wait, %d records", err, len(waiting), records)
		}
		m, err := s.SweepHeld(ctx, later, later.Add(48*time.Hour), evidence)
		if rest, failed := q.List(ctx, hold.Filter{}); failed != nil || err != nil || n+m != 3000 || len(rest) != 0 || records != 303 {
			t.Errorf("%v, %v: %d and %d removed, %d left, %d records", err, failed, n, m, len(rest), records)
		}
	})
}
