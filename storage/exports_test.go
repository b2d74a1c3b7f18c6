// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/outbound"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestExports: one process at a time has an export, and goes on where the last one stopped.
func TestExports(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l := open(t, where, storage.Options{}).Ledger()
		now := time.Now()
		claim := func(holder string, begin int64, at time.Time, want int64, mine bool) {
			t.Helper()
			got, ok, err := l.ClaimExport(ctx, "siem", holder, begin, at, at.Add(time.Minute))
			if err != nil || ok != mine || mine && got != want {
				t.Errorf("%s: %d, %v, %v; want %d, %v", holder, got, ok, err, want, mine)
			}
		}
		claim("a", 7, now, 7, true)
		claim("a", 9, now, 7, true) // its position stays
		claim("b", 0, now, 0, false)
		if err := l.SaveExport(ctx, "siem", "a", 20, now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := l.SaveExport(ctx, "siem", "b", 30, now); !errors.Is(err, outbound.ErrLost) {
			t.Errorf("of another process: %v", err)
		}
		claim("b", 0, now.Add(2*time.Minute), 20, true)
		claim("a", 0, now.Add(2*time.Minute), 0, false)
		if err := l.SaveExport(ctx, "siem", "a", 21, now); !errors.Is(err, outbound.ErrLost) {
			t.Errorf("of a process that has lost it: %v", err)
		}
		if _, ok, err := l.ClaimExport(ctx, "other", "a", 0, now, now.Add(time.Minute)); !ok || err != nil {
			t.Errorf("another export: %v, %v", ok, err)
		}
	})
}
