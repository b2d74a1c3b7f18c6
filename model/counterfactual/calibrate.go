// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
)

// A Calibration is what was measured of one model.
type Calibration struct {
	Model string `json:"model"` // ModelDigest

	// Repeats: of Trials in which everything that caused a proposal was shown, the
	// proposal recurred in Repeats. Slips and SlipTrials: the same where it was not.
	Repeats    int `json:"repeats"`
	Trials     int `json:"trials"`
	Slips      int `json:"slips"`
	SlipTrials int `json:"slip_trials"`

	// Null holds, by the id of a metric, its values between answers to the same
	// request, ascending.
	Null map[string][]int `json:"null,omitempty"`
}

// ModelDigest binds a model's id and the fingerprint of the provider's system.
func ModelDigest(model, fingerprint string) string {
	h := sha256.New()
	h.Write([]byte("dev.pellucid/model/1\x00"))
	sum := sha256.Sum256([]byte(model))
	h.Write(sum[:])
	sum = sha256.Sum256([]byte(fingerprint))
	h.Write(sum[:])
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// miss is how often each bound that Rates gives may be wrong.
const miss = 0.05

// Rates are the bounds that the calibration supports: P1 from below, P0 from above
// (Clopper and Pearson, 1934, 95 % one-sided each). With no trials they are
// uncalibrated's.
func (c *Calibration) Rates() (Rates, error) {
	if c.Repeats < 0 || c.Repeats > c.Trials || c.Slips < 0 || c.Slips > c.SlipTrials || max(c.Trials, c.SlipTrials) > 1<<20 {
		return Rates{}, errors.New("counterfactual: calibrate: impossible counts")
	}
	r := uncalibrated
	r.Model = c.Model
	if c.Trials > 0 {
		unseen := max(0, priorTrials-c.Trials)
		r.P1 = int(math.Floor(1e6 * lowerBound(c.Repeats+unseen, c.Trials+unseen, miss)))
	}
	if c.SlipTrials > 0 {
		r.P0 = int(math.Ceil(1e6 * upperBound(c.Slips, max(c.SlipTrials, priorSlipTrials), miss)))
	}
	return r, nil
}

// Uncalibrated's bounds are those of so many trials without a miss and without a slip.
// Fewer are filled up with such ones, so that a few good trials never say less than none.
const (
	priorTrials     = 24
	priorSlipTrials = 148
)

// Add counts one answer: whether the cause was shown, and whether the proposal
// recurred.
func (c *Calibration) Add(shown, recurs bool) {
	n := 0
	if recurs {
		n = 1
	}
	if shown {
		c.Trials++
		c.Repeats += n
	} else {
		c.SlipTrials++
		c.Slips += n
	}
}

// lowerBound is the exact one-sided lower confidence bound for a rate of which k of
// n trials were seen, wrong with chance alpha at most.
func lowerBound(k, n int, alpha float64) float64 {
	if k <= 0 || n <= 0 {
		return 0
	}
	return root(func(p float64) bool { return 1-binomial(k-1, n, p) < alpha })
}

// upperBound is the upper one.
func upperBound(k, n int, alpha float64) float64 {
	if k >= n || n <= 0 {
		return 1
	}
	return root(func(p float64) bool { return binomial(k, n, p) > alpha })
}

// root is the p up to which below holds.
func root(below func(float64) bool) float64 {
	lo, hi := 0.0, 1.0
	for range 60 {
		if mid := (lo + hi) / 2; below(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// binomial is the chance of at most k successes in n trials. It adds up the terms of
// the nearer tail, from the largest on, and stops where they no longer count: some
// thousands of a million.
func binomial(k, n int, p float64) float64 {
	if p <= 0 || k >= n {
		return 1
	}
	if p >= 1 || k < 0 {
		return 0
	}
	term := func(i int) float64 {
		all, _ := math.Lgamma(float64(n + 1))
		a, _ := math.Lgamma(float64(i + 1))
		b, _ := math.Lgamma(float64(n - i + 1))
		return math.Exp(all - a - b + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	const negligible = 1e-17
	sum, odds := 0.0, p/(1-p)
	if float64(k) < float64(n+1)*p {
		for i, t := k, term(k); t > sum*negligible; i-- {
			sum += t
			t *= float64(i) / float64(n-i+1) / odds
		}
		return min(sum, 1)
	}
	for i, t := k+1, term(k+1); t > sum*negligible; i++ {
		sum += t
		t *= float64(n-i) / float64(i+1) * odds
	}
	return max(1-sum, 0)
}
