// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"sync"
	"testing"
	"time"
)

// TestLatencies: the times within which answers came are those that a sorted list gives, to a tenth.
func TestLatencies(t *testing.T) {
	var a answers
	if got := a.list(); got != nil {
		t.Errorf("before any answer: %v", got)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for i := 1; i <= 1000; i++ {
				a.add("mail", time.Duration(i)*time.Millisecond)
				a.add("files", 0)
			}
		})
	}
	wait.Wait()
	a.add("slow", 24*time.Hour)
	got := a.list()
	if len(got) != 3 || got[0].Server != "files" || got[1].Server != "mail" || got[1].Answers != 4000 || got[2].Answers != 1 {
		t.Fatalf("%+v", got)
	}
	near := func(name string, is, want time.Duration) {
		if is < want || float64(is) > 1.11*float64(want) {
			t.Errorf("%s: %v, want %v to a tenth more", name, is, want)
		}
	}
	near("p50", got[1].P50, 500*time.Millisecond)
	near("p99", got[1].P99, 990*time.Millisecond)
	near("shortest", got[0].P99, shortest)
	if last := bound(bounds - 1); got[2].P50 != last || last < 8*time.Minute {
		t.Errorf("the longest: %v, want %v", got[2].P50, last)
	}
}
