// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A SyntheticRow is how well a method finds the causes in a context of N segments.
type SyntheticRow struct {
	Case   string  `json:"case"`
	N      int     `json:"n"`
	Noise  float64 `json:"noise"` // chance that the action does not recur where it is caused
	Method string  `json:"method"`
	Told   bool    `json:"told"` // the method was told how many segments to name
	Exact  Share   `json:"exact"`
	// Calls is the mean number of answers that localisation took, and AllCalls with the
	// attribution's.
	Calls    float64 `json:"calls"`
	AllCalls float64 `json:"all_calls"`
}

// A shape is a way in which segments cause a proposal.
type shape struct {
	name   string
	causes [][]int // of segments drawn at random
	order  prior
	drift  bool
}

// prior is what is known beforehand of who is suspect.
type prior uint8

const (
	priorNone  prior = iota
	priorGood        // the causes first in 98.6 of 100 cases, as on the recorded runs
	priorDecoy       // other segments look guilty: the causes last
)

var shapes = []shape{
	{name: "single", causes: [][]int{{0}}},
	{name: "single, good prior", causes: [][]int{{0}}, order: priorGood},
	{name: "single among decoys", causes: [][]int{{0}}, order: priorDecoy},
	{name: "two copies (A or B)", causes: [][]int{{0}, {1}}},
	{name: "three copies", causes: [][]int{{0}, {1}, {2}}},
	{name: "A and B", causes: [][]int{{0, 1}}},
	{name: "A and B and C", causes: [][]int{{0, 1, 2}}},
	{name: "A or (B and C)", causes: [][]int{{0}, {1, 2}}},
	{name: "single, model drifts", causes: [][]int{{0}}, drift: true},
}

// The sizes and the noises of track D. slipFloor is how often a proposal recurs
// without its cause.
var (
	sizes  = []int{8, 32, 128}
	noises = []float64{0, 0.03, 0.11}
)

func trials(full bool, n int) int {
	switch {
	case full:
		return 400
	case n > 32:
		return 60
	}
	return 120
}

func synthetic(opt *Options) ([]SyntheticRow, error) {
	var rows []SyntheticRow
	done, total := 0, len(shapes)*len(sizes)*len(noises)
	for _, noise := range noises {
		for _, n := range sizes {
			for _, s := range shapes {
				opt.say("D: synthetic contexts", done, total)
				done++
				r, err := s.rows(n, noise, opt)
				if err != nil {
					return nil, err
				}
				rows = append(rows, r...)
			}
		}
	}
	return rows, nil
}

// draw places the causes of a shape among n segments and says in which order they
// are suspected.
func (s *shape) draw(n int, rng *rand.Rand) (causes []counterfactual.Set, order []int) {
	at := rng.Perm(n)
	var all counterfactual.Set
	for _, c := range s.causes {
		var places []int
		for _, i := range c {
			places = append(places, at[i])
		}
		causes = append(causes, counterfactual.SetOf(places...))
		all = all.Union(causes[len(causes)-1])
	}
	order = rng.Perm(n)
	first := s.order == priorGood && rng.Float64() < 0.986
	if first || s.order == priorDecoy {
		slices.SortStableFunc(order, func(i, j int) int {
			if all.Has(i) == all.Has(j) {
				return 0
			}
			if all.Has(i) == first {
				return -1
			}
			return 1
		})
	}
	return causes, order
}

func (s *shape) rows(n int, noise float64, opt *Options) ([]SyntheticRow, error) {
	rows := []SyntheticRow{{Method: ours}}
	for _, m := range methods {
		if s.order == priorNone && !s.drift { // they take no prior, and no notice of who answers
			rows = append(rows, SyntheticRow{Method: m.name, Told: m.told})
		}
	}
	name := fmt.Sprintf("D %s %d %g", s.name, n, noise)
	count := trials(opt.Full, n)
	for i := range count {
		causes, order := s.draw(n, random(opt.Seed, name, i))
		for r := range rows {
			row := &rows[r]
			sim := &simulated{causes: causes, p1: 1 - noise, p0: slipFloor, rng: random(opt.Seed, name+row.Method, i)}
			told := sim.all().Len()
			var t trial
			if r == 0 {
				p := problem(n, order, sim)
				if s.drift {
					sim.drift, sim.drifted = 5, 1-min(0.3, noise+0.1)
				}
				var err error
				if t, err = solve(p, sim); err != nil {
					return nil, err
				}
			} else {
				found := methods[r-1].run(sim, n, told)
				t = trial{exact: found == sim.all(), calls: sim.calls}
			}
			row.Exact.add(t.exact)
			row.Calls += float64(t.calls)
			row.AllCalls += float64(t.calls + t.verdict)
		}
	}
	for r := range rows {
		row := &rows[r]
		row.Case, row.N, row.Noise = s.name, n, noise
		row.Exact = row.Exact.done()
		row.Calls /= float64(count)
		row.AllCalls /= float64(count)
	}
	return rows, nil
}

// calibrationTrials is how many answers a model's rates are measured on in track D.
const calibrationTrials = 200

func problem(n int, order []int, sim *simulated) counterfactual.Problem {
	p := counterfactual.Problem{
		Segments: make([]counterfactual.Unit, n), Order: order, Rates: sim.rates(calibrationTrials), Budget: open,
		Targets: []counterfactual.Target{{Digest: "target", Privilege: 1000}},
	}
	for i := range p.Segments {
		p.Segments[i].ID = fmt.Sprint("s", i+1)
	}
	return p
}
