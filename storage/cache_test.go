// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"path/filepath"
	"testing"
)

// TestCache: who writes keeps as many pages as it was told.
func TestCache(t *testing.T) {
	t.Parallel()
	for blob, want := range map[int]int{0: -64 << 10, 8 << 20: -8 << 10, 1: -1} {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "x.db"), Options{Cache: blob})
		if err != nil {
			t.Fatal(err)
		}
		var got int
		if err := s.write.QueryRow("PRAGMA cache_size").Scan(&got); err != nil || got != want {
			t.Errorf("cache of %d bytes: %d, %v, want %d", blob, got, err, want)
		}
		s.Close()
	}
}
