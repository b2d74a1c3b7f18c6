// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestReplicas: every beat returns all rows; a process that has taken an address removes the row of the
// one before; the versions of rules are numbered in the order of their first use.
func TestReplicas(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		a := replica.Row{ID: "a", Address: "h:1", Key: "k", Release: "1", Rules: "old", Started: "then", Spent: []byte{1}, Beat: 1}
		b := replica.Row{ID: "b", Address: "h:2", Rules: "new", Beat: 1}
		c := replica.Row{ID: "c", Address: "h:1", Rules: "old", Beat: 1}
		beat := func(r replica.Row, first bool, want ...replica.Row) {
			t.Helper()
			got, err := s.BeatReplica(ctx, r, first)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				if len(got[i].Spent) == 0 {
					got[i].Spent = nil
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after %s (-want +got):\n%s", r.ID, diff)
			}
		}
		numbered := func(r replica.Row, n int64) replica.Row { r.Generation = n; return r }
		beat(a, true, numbered(a, 1))
		beat(b, true, numbered(a, 1), numbered(b, 2))
		a.Beat, a.Rules = 2, "new"
		beat(a, false, numbered(a, 2), numbered(b, 2))
		beat(c, true, numbered(b, 2), numbered(c, 1))
		gone := a
		gone.Beat = 3
		if _, err := s.BeatReplica(ctx, gone, false); !errors.Is(err, replica.ErrRemoved) {
			t.Errorf("a beat without a row: %v", err)
		}
		if removed, err := s.RemoveReplica(ctx, "b", 7); err != nil || removed {
			t.Fatal(removed, err)
		}
		if rows, err := s.Replicas(ctx); err != nil || len(rows) != 2 {
			t.Errorf("a row with another beat was removed: %v, %v", rows, err)
		}
		for _, first := range []bool{true, false} {
			if removed, err := s.RemoveReplica(ctx, "b", 1); err != nil || removed != first {
				t.Fatal(removed, err)
			}
		}
		rows, err := s.Replicas(ctx)
		if err != nil || !slices.EqualFunc(rows, []string{"c"}, func(r replica.Row, id string) bool { return r.ID == id }) {
			t.Errorf("left: %v, %v", rows, err)
		}
	})
}
