// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is how long to wait before a server that is gone is tried again: 0.5 s,
// 1 s, 2 s and so on, up to a minute, each up to a quarter longer so that not all
// sessions come at once.
type backoff struct {
	first, most time.Duration // 0: half a second, a minute
	next        time.Duration
}

const (
	firstWait = 500 * time.Millisecond
	mostWait  = time.Minute
	// steady is how long a server must have run to be as good as new.
	steady = time.Minute
)

// step returns the next wait.
func (b *backoff) step() time.Duration {
	if b.first == 0 {
		b.first, b.most = firstWait, mostWait
	}
	d := max(b.next, b.first)
	b.next = min(2*d, b.most)
	return d + rand.N(d/4+1)
}

// reset begins anew.
func (b *backoff) reset() { b.next = 0 }

// sleep waits for d; false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
