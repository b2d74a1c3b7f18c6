// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaits(t *testing.T) {
	for name, tt := range map[string]struct {
		w    Waits
		want []time.Duration // without what chance adds
	}{
		"doubled up to the longest": {Waits{First: 2, Most: 11}, []time.Duration{2, 4, 8, 11, 11}},
		"first above the longest":   {Waits{First: 30, Most: 20}, []time.Duration{20, 20}},
		"one nanosecond":            {Waits{First: 1, Most: 2}, []time.Duration{1, 2, 2}},
		"as long as can be":         {Waits{First: 1 << 60, Most: 1 << 61}, []time.Duration{1 << 60, 1 << 61, 1 << 61}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				for i, least := range tt.want {
					if d := tt.w.Next(); d < least || d > least+least/4 {
						t.Errorf("wait %d is %d, want %d to %d", i, d, least, least+least/4)
					}
				}
				tt.w.Reset()
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for _, d := range []time.Duration{0, -1, -time.Hour} {
		if got := Spread(d); got != d {
			t.Errorf("%v became %v", d, got)
		}
	}
	seen := map[time.Duration]bool{}
	for range 1000 {
		d := Spread(time.Second)
		if d < time.Second || d > time.Second*5/4 {
			t.Fatalf("%v", d)
		}
		seen[d] = true
	}
	if len(seen) < 2 {
		t.Error("always the same")
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "007": 7 * time.Second, "-1": 0, "+1": 0, "1.5": 0, " 1": 0, "soon": 0,
		"86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999999": 24 * time.Hour,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:04:04 GMT": 0, "Fri, 31 Dec 9999 00:00:00 GMT": 24 * time.Hour,
	} {
		if got := RetryAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		began := time.Now()
		if err := Sleep(ctx, time.Second); err != nil || time.Since(began) != time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := Sleep(ctx, -1); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}
