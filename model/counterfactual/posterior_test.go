// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestDecay(t *testing.T) {
	for _, x := range []int{0, 1, 2, 693, 1851, 4096, 9999, 22180, 1<<15 - 1, 1 << 15, 1 << 40} {
		want := math.Exp(-float64(x)/1000) * (1 << 32)
		if got := float64(decay(x)); math.Abs(got-want) > 16 {
			t.Errorf("decay(%d) = %.0f, want %.0f", x, got, want)
		}
	}
}

func TestBelief(t *testing.T) {
	rule := uncalibratedRule
	p := newPosterior(128)
	if b := p.belief(); b.place != 1 || b.median != 1 {
		t.Errorf("it does not begin with the first suspect: %+v", b)
	}
	p.prefix(128, rule.Positive) // there is a cause
	p.prefix(80, rule.Positive)  // a slip
	for _, i := range []int{1, 8, 32, 64, 72, 76, 79} {
		p.prefix(i, rule.Negative)
	}
	if b := p.belief(); b.place != 80 || b.alone < b.joint {
		t.Errorf("%+v", b)
	}
	p.unit(80, rule.Negative)
	if b := p.belief(); b.place == 80 && sure(b.alone+b.joint, b.total) {
		t.Errorf("one positive answer is believed against two others: %+v", b)
	}
	p.prefix(80, rule.Negative)
	p.prefix(80, rule.Negative)
	if b := p.belief(); b.median <= 80 {
		t.Errorf("the slip still counts: %+v", b)
	}
	only := newPosterior(1) // what others would take is nothing to compare with
	only.prefix(1, 20_000)
	only.unit(1, -22_000)
	if b := only.belief(); b.total == 0 {
		t.Errorf("of one: %+v", b)
	}
	if b := newPosterior(0).belief(); b.place != 0 || !sure(b.none, b.total) {
		t.Errorf("of nothing: %+v", b)
	}
}

// TestBeliefBounds: whatever is told, the weights are parts of the total and the
// places are places.
func TestBeliefBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, maxSegments).Draw(t, "n")
		p := newPosterior(n)
		for range rapid.IntRange(0, 20).Draw(t, "answers") {
			w, k := rapid.IntRange(-1_000_000, 1_000_000).Draw(t, "w"), rapid.IntRange(1, n).Draw(t, "k")
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				p.prefix(k, w)
			case 1:
				p.unit(k, w)
			default:
				p.refute(k)
			}
		}
		b := p.belief()
		if b.place < 1 || b.place > n || b.median < 1 || b.median > n || b.total == 0 || b.alone+b.joint+b.none > b.total {
			t.Fatalf("%+v of %d", b, n)
		}
	})
}

// TestSlips: an answer that slips costs a few further ones, wherever it stands; it
// does not send the search astray.
func TestSlips(t *testing.T) {
	for slip := range 24 {
		n := 0
		r := Drive(mustPlan(t, problemOf(128)), scripted(func(p Probe) Observation {
			n++
			yes := p.Variant.Kept.Has(92)
			return answer(p, yes != (n == slip+5)) // the attribution took four
		}))
		if found(r) != SetOf(92) || r.Attributions[0].Certificate == nil || n > 40 {
			t.Errorf("answer %d: %d calls, %+v", slip+5, n, r.Attributions[0])
		}
		checkReplay(t, r)
	}
}

// TestBinomial: every tail is the sum of its terms, and counts at the limit take no
// time that anybody notices.
func TestBinomial(t *testing.T) {
	for _, n := range []int{1, 7, 40} {
		for k := range n {
			for _, p := range []float64{1e-9, .003, .11, .5, .97} {
				want, term := 0.0, math.Pow(1-p, float64(n))
				for i := range k + 1 {
					want += term
					term *= float64(n-i) / float64(i+1) * p / (1 - p)
				}
				if got := binomial(k, n, p); math.Abs(got-want) > 1e-12 {
					t.Errorf("binomial(%d, %d, %g) = %g, want %g", k, n, p, got, want)
				}
			}
		}
	}
	for _, k := range []int{0, 1, 1 << 19, 1<<20 - 1, 1 << 20} {
		c := Calibration{Trials: 1 << 20, Repeats: k, SlipTrials: 1 << 20, Slips: k}
		r, err := c.Rates()
		if rate := k * 1_000_000 >> 20; err != nil || r.P1 > rate || r.P1 < rate-1000 || r.P0 < rate || r.P0 > rate+1000 {
			t.Errorf("%d of %d: %+v, %v", k, 1<<20, r, err)
		}
	}
}
