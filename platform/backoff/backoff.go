// SPDX-License-Identifier: Apache-2.0

// Package backoff waits between attempts, longer after each failure.
package backoff

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Waits are the times between the attempts of one caller: First, twice First, and so on
// up to Most. Each is lengthened at random by up to a quarter, so that callers that failed
// together do not come back together. First and Most are positive.
type Waits struct {
	First, Most time.Duration
	next        time.Duration
}

// Next returns the time to wait before the next attempt.
func (w *Waits) Next() time.Duration {
	d := min(max(w.next, w.First), w.Most)
	w.next = min(2*d, w.Most)
	return Spread(d)
}

// Reset begins again with First.
func (w *Waits) Reset() { w.next = 0 }

// Spread lengthens d at random by up to a quarter.
func Spread(d time.Duration) time.Duration { return d + rand.N(max(d, 0)/4+1) }

// longestAsked is the longest wait that RetryAfter returns.
const longestAsked = 24 * time.Hour

// RetryAfter reads the value of the header Retry-After: seconds, or a date (RFC 9110
// 10.2.3). It returns how long the server wants to be left alone, up to a day; 0 if it does
// not say.
func RetryAfter(value string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(n, uint64(longestAsked/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(value); err == nil {
		return min(max(t.Sub(now), 0), longestAsked)
	}
	return 0
}

// Sleep waits for d. If ctx ends first, it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
