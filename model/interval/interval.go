// SPDX-License-Identifier: Apache-2.0

// Package interval gives shares their confidence intervals.
package interval

import (
	"fmt"
	"math"
)

// z is the 0.975 quantile of the normal distribution, so that intervals are of 95 %.
const z = 1.959963984540054

// Wilson returns the score interval of k successes in n trials at 95 % (E. B. Wilson,
// 1927): 0 and 1 for no trial. It does not depend on how the share came about, and
// stays within [0, 1] for any k between 0 and n.
func Wilson(k, n int) (low, high float64) {
	if n <= 0 || k < 0 || k > n {
		return 0, 1
	}
	p, m := float64(k)/float64(n), float64(n)
	centre := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	whole := 1 + z*z/m
	return max(0, (centre-half)/whole), min(1, (centre+half)/whole)
}

// Format writes a share with its interval in per cent: "68.5 % [63.8, 72.8]".
func Format(k, n int) string {
	if n <= 0 {
		return "–"
	}
	low, high := Wilson(k, n)
	return fmt.Sprintf("%.1f %% [%.1f, %.1f]", 100*float64(k)/float64(n), 100*low, 100*high)
}
