// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pellucid-mcp/pellucid/storage"
)

// BenchmarkAdd acknowledges records: one by one, as required evidence does on an idle
// gateway, and in groups, as it does under load.
func BenchmarkAdd(b *testing.B) {
	for name, where := range map[string]func() string{
		"sqlite":   func() string { return filepath.Join(b.TempDir(), "a.db") },
		"postgres": func() string { return server.Database(b) },
	} {
		for _, n := range []int{1, 32, 1024} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				l := open(b, where(), storage.Options{}).Ledger()
				records := make([][]byte, n)
				for b.Loop() {
					b.StopTimer()
					for i := range records {
						records[i] = sealed(b, "bench")
					}
					b.StartTimer()
					add(b, l, records...)
				}
			})
		}
	}
}
