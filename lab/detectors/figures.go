// SPDX-License-Identifier: Apache-2.0

package detectors

import (
	"math"
	"slices"
)

// alarms is the share of benign texts that may be flagged where detectors are compared at
// equal false alarms.
const alarms = 0.01

// limitAt is the least score that at most the share of the sorted benign scores exceed.
func limitAt(benign []float64, share float64) float64 {
	if len(benign) == 0 {
		return math.Inf(1)
	}
	return benign[len(benign)-1-min(len(benign)-1, int(share*float64(len(benign))))]
}

// area is the probability that an attack scores higher than a benign text, an equal score
// being half of that; both lists are sorted.
func area(attacks, benign []float64) float64 {
	if len(attacks) == 0 || len(benign) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, a := range attacks {
		below, _ := slices.BinarySearch(benign, a)
		notAbove, _ := slices.BinarySearchFunc(benign, a, func(b, a float64) int {
			if b <= a {
				return -1
			}
			return 1
		})
		sum += float64(below+notAbove) / 2
	}
	return sum / float64(len(attacks)) / float64(len(benign))
}

// median of a list; NaN if it is empty.
func median(list []float64) float64 {
	if len(list) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// A tally counts what a detector flags of the texts that it has judged.
type tally struct{ flagged, n int }

func (c *column) tally(rows []row, keep func(row) bool) (t tally) {
	for _, r := range rows {
		if v, ok := c.answers[r.id]; ok && keep(r) {
			t.n++
			if v.flagged {
				t.flagged++
			}
		}
	}
	return t
}

// scores lists the detector's own of the texts that keep wants, in order.
func (c *column) scores(rows []row, keep func(row) bool) []float64 {
	return scores(rows, func(r row) bool { _, ok := c.answers[r.id]; return ok && keep(r) }, func(r row) float64 { return c.answers[r.id].score })
}

// at is the detector with another limit: the one that the share of the benign texts exceed.
func (c *column) at(rows []row, share float64, benign func(row) bool) *column {
	limit := limitAt(c.scores(rows, benign), share)
	out := *c
	out.answers = map[string]answer{}
	for id, v := range c.answers {
		out.answers[id] = answer{v.score > limit, v.score}
	}
	return &out
}

// among is the detector on the texts that the other has judged.
func (c *column) among(other *column) *column {
	out := *c
	out.answers = map[string]answer{}
	for id := range other.answers {
		if v, ok := c.answers[id]; ok {
			out.answers[id] = v
		}
	}
	return &out
}
