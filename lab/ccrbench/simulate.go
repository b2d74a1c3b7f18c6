// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"math/rand/v2"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// open is a budget that no track reaches: what is measured is how much is asked for.
var open = counterfactual.Budget{Calls: 100_000, VerdictCalls: 1000, Millis: 1 << 40, Concurrency: 1}

// A simulated model proposes the target where one of its causes is shown whole. Its
// answers are independent of each other: the response function is assumed.
type simulated struct {
	causes []counterfactual.Set // any of them suffices, if all of it is shown
	p1, p0 float64              // chance to propose the target where it is caused, and where not
	rng    *rand.Rand

	// drift, if it is not 0, is the number of the answer from which another model answers,
	// with the chance drifted.
	drift   int
	drifted float64

	calls, verdict int
}

func (m *simulated) Ask(p counterfactual.Probe) counterfactual.Observation {
	m.calls++
	if p.Purpose == counterfactual.PurposeVerdict {
		m.verdict++
	}
	chance, model := m.p1, "m1"
	if m.drift > 0 && m.calls >= m.drift {
		chance, model = m.drifted, "m2"
	}
	if !m.caused(p.Variant) {
		chance = m.p0
	}
	return counterfactual.Observation{
		Variant: p.Variant, Replicate: p.Replicate, Model: model,
		Recurrences: []counterfactual.Recurrence{{Recurs: m.rng.Float64() < chance}},
	}
}

func (m *simulated) caused(v counterfactual.Variant) bool {
	for _, c := range m.causes {
		if v.Kept.Contains(c) && (v.MaskUser || v.Level == counterfactual.LevelPlain || !v.Weak.Meets(c)) {
			return true
		}
	}
	return false
}

// recurs asks for a set of segments, once, as the baselines do.
func (m *simulated) recurs(kept counterfactual.Set) bool {
	return m.Ask(counterfactual.Probe{Variant: counterfactual.KeepOnly(kept), Replicate: m.calls, Purpose: counterfactual.PurposeLocate}).Recurrences[0].Recurs
}

// all is everything that a cause names.
func (m *simulated) all() counterfactual.Set {
	var s counterfactual.Set
	for _, c := range m.causes {
		s = s.Union(c)
	}
	return s
}

// rates are what a calibration of so many trials of each kind would give.
func (m *simulated) rates(trials int) counterfactual.Rates {
	c := counterfactual.Calibration{
		Trials: trials, Repeats: int(m.p1*float64(trials) + 0.5),
		SlipTrials: trials, Slips: int(m.p0*float64(trials) + 0.5),
	}
	r, _ := c.Rates() // the counts are possible ones
	return r
}

// replicates answers with other turns that were shown the same context, each once.
type replicates struct {
	group   []replicate
	base    int
	action  *counterfactual.Proposal
	asked   int
	shortOf counterfactual.Kind // of the probe that none was left for
}

func (o *replicates) Ask(p counterfactual.Probe) counterfactual.Observation {
	out := counterfactual.Observation{Variant: p.Variant, Replicate: p.Replicate}
	if p.Variant.MaskUser {
		out.Recurrences = []counterfactual.Recurrence{{}}
		return out
	}
	o.asked++
	if o.asked >= len(o.group) {
		o.shortOf = p.Variant.Kind
		out.Failure = counterfactual.FailCanceled
		return out
	}
	t := o.group[(o.base+o.asked)%len(o.group)]
	out.Recurrences = []counterfactual.Recurrence{{Recurs: t.has(o.action)}}
	return out
}

// random is the generator of one trial: of the seed, the track, and its number.
func random(seed uint64, track string, trial int) *rand.Rand {
	h := uint64(14695981039346656037)
	for i := range len(track) {
		h = (h ^ uint64(track[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed^h, uint64(trial)))
}
