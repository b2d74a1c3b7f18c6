// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestBudget: the sum never exceeds the budget, a caller that has much does not keep another
// waiting for ever, what is longer than all gets all, and a wait ends with its context.
func TestBudget(t *testing.T) { synctest.Test(t, testBudget) }

func testBudget(t *testing.T) {
	b := NewBudget(100)
	var out, most atomic.Int64
	var work sync.WaitGroup
	for i := range 40 {
		work.Go(func() {
			who, n := string(rune('a'+i%3)), int64(1+i*7%120)
			give, err := b.Wait(context.Background(), who, n)
			if err != nil {
				t.Error(err)
				return
			}
			now := out.Add(min(n, 100))
			for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
			}
			time.Sleep(time.Millisecond)
			out.Add(-min(n, 100))
			give()
		})
	}
	work.Wait()
	if most.Load() > 100 {
		t.Errorf("%d of 100 were out", most.Load())
	}
	give, err := b.Wait(context.Background(), "a", 60)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer stop()
	if _, err := b.Wait(ctx, "a", 30); err != ErrGreedy {
		t.Errorf("one who has most of it: %v", err)
	}
	if _, err := b.Wait(ctx, "b", 50); err != ErrFull {
		t.Errorf("what is not there: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if give, err := b.Wait(context.Background(), "b", 50); err == nil {
			give()
		}
	}()
	give()
	<-done
}
