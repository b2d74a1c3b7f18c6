// SPDX-License-Identifier: Apache-2.0

package interval

import (
	"math"
	"testing"
)

// The first four are published by Newcombe, Statistics in Medicine 17 (1998), table I.
func TestWilson(t *testing.T) {
	for _, tt := range []struct {
		k, n      int
		low, high float64
	}{
		{15, 148, 0.0624, 0.1605},
		{81, 263, 0.2553, 0.3662},
		{0, 20, 0, 0.1611},
		{29, 29, 0.8830, 1},
		{0, 0, 0, 1},
		{5, 4, 0, 1},
	} {
		low, high := Wilson(tt.k, tt.n)
		if math.Abs(low-tt.low) > 1e-4 || math.Abs(high-tt.high) > 1e-4 {
			t.Errorf("Wilson(%d, %d) = %.4f, %.4f, want %.4f, %.4f", tt.k, tt.n, low, high, tt.low, tt.high)
		}
	}
}

func TestFormat(t *testing.T) {
	if got, want := Format(81, 263), "30.8 % [25.5, 36.6]"; got != want {
		t.Errorf("Format = %q, want %q", got, want)
	}
	if got := Format(0, 0); got != "–" {
		t.Errorf("Format of nothing = %q", got)
	}
}
