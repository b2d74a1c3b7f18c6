// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
)

// TestShadowOverflows: what does not fit is dropped and recorded, and nobody waits.
func TestShadowOverflows(t *testing.T) {
	t.Parallel()
	k := &words{gate: make(chan struct{})}
	j := newJury(t, &ShadowOptions{Workers: 1, waiting: 1}, aMember(t, k, inShadow))
	r := newRig(t, j.set)
	const calls = 10
	for range calls {
		if got := r.result(r.request("1", "tools/call", question), evil); !strings.Contains(string(got["result"]), "evil") {
			t.Fatalf("%v", got)
		}
	}
	close(k.gate)
	dropped := 0
	for range calls {
		if c := j.next(t); c.Dropped {
			dropped++
			if c.Reason != classify.OverBudget || c.Of == (ID{}) {
				t.Errorf("%+v", c)
			}
		}
	}
	if dropped < calls-3 || int64(dropped) != j.Shadow.Dropped() {
		t.Errorf("%d dropped, %d counted", dropped, j.Shadow.Dropped())
	}
}

// TestShadowBounds: bytes that wait are bounded, and given back.
func TestShadowBounds(t *testing.T) {
	s := NewShadow(ShadowOptions{Bytes: 100})
	done := make(chan struct{})
	job := func(n int64) shadowJob {
		return shadowJob{bytes: n, work: func(context.Context) { <-done }, free: func() {}}
	}
	if !s.offer(job(60)) || s.offer(job(60)) || !s.offer(job(40)) || s.offer(job(1)) {
		t.Error("the bound of bytes does not hold")
	}
	close(done)
	s.Close(t.Context())
	if s.bytes.Load() != 0 || s.Pending() != 0 || s.Dropped() != 2 || s.offer(job(1)) {
		t.Errorf("%d bytes, %d pending, %d dropped", s.bytes.Load(), s.Pending(), s.Dropped())
	}
	if (*Shadow)(nil).offer(job(1)) {
		t.Error("nobody takes a job")
	}
}

// TestShadowWaits: a job begins once the answer has had time to be delivered, and not
// before, so that it does not hold that up.
func TestShadowWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewShadow(ShadowOptions{Workers: 1})
		begin := time.Now()
		var began time.Duration
		s.offer(shadowJob{work: func(context.Context) { began = time.Since(begin) }, free: func() {}})
		s.Close(t.Context())
		if began != shadowWait {
			t.Errorf("it began after %v, want %v", began, shadowWait)
		}
	})
}
