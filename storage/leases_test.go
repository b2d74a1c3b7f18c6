// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/lease"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestLeases: of many processes that see one row, exactly one gets the lease; its beat is raised by its holder alone, and
// a lease is freed by its holder, or while its beat is still the one that was seen.
func TestLeases(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		for _, address := range []string{"", "h:1"} {
			seen := lease.Row{Name: "work" + address}
			var won atomic.Pointer[lease.Row]
			var n atomic.Int64
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					row, err := s.ClaimLease(ctx, seen, "holder-"+strconv.Itoa(i), address)
					switch {
					case err == nil:
						n.Add(1)
						won.Store(&row)
					case !errors.Is(err, lease.ErrLost):
						t.Error(err)
					}
				})
			}
			all.Wait()
			if n.Load() != 1 {
				t.Fatalf("%d processes have the lease", n.Load())
			}
			held := *won.Load()
			if held.Fence != 1 || held.Beat != 1 || held.Address != address {
				t.Errorf("%+v", held)
			}
			stranger := held
			stranger.Holder = "stranger"
			for what, err := range map[string]error{
				"beat of a stranger": s.BeatLease(ctx, stranger), "freed by a stranger": s.FreeLease(ctx, stranger, false),
				"claimed": func() error { _, err := s.ClaimLease(ctx, seen, "late", ""); return err }(),
			} {
				if !errors.Is(err, lease.ErrLost) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := s.BeatLease(ctx, held); err != nil {
				t.Fatal(err)
			}
			if err := s.FreeLease(ctx, held, true); !errors.Is(err, lease.ErrLost) {
				t.Errorf("taken for gone after a beat: %v", err)
			}
			rows, err := s.Leases(ctx, "work"+address)
			if held.Beat++; err != nil || len(rows) == 0 || rows[len(rows)-1] != held {
				t.Fatalf("%+v, %v", rows, err)
			}
			if err := s.FreeLease(ctx, held, true); err != nil {
				t.Fatal(err)
			}
			if rows, err = s.Leases(ctx, "work"+address); err != nil || (len(rows) > 0 && rows[0].Name == held.Name) != (address == "") {
				t.Errorf("after its end: %+v, %v", rows, err)
			}
			free := lease.Row{Name: held.Name}
			if address == "" {
				free = rows[0]
			}
			if next, err := s.ClaimLease(ctx, free, "next", address); err != nil || next.Fence != free.Fence+1 {
				t.Errorf("claimed again: %+v, %v", next, err)
			}
		}
		if rows, err := s.Leases(ctx, "other"); err != nil || len(rows) != 0 {
			t.Errorf("%+v, %v", rows, err)
		}
	})
}
