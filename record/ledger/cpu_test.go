// SPDX-License-Identifier: Apache-2.0

//go:build unix

package ledger

import (
	"syscall"
	"testing"
)

// init lets benchmarks tell what they cost where other programs want the processors.
func init() {
	processorTime = func(b *testing.B) float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
	}
}
