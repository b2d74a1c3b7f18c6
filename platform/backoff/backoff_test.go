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
