// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"github.com/pellucid-mcp/pellucid/measure/traces"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A CostRow is what decisions would add to the calls of benign runs.
type CostRow struct {
	Suite string `json:"suite"`
	Model string `json:"model"` // "" = all undefended models of the suite
	Runs  int    `json:"runs"`
	Steps int    `json:"steps"` // of the model
	// Gated is the steps that propose a gated call with untrusted text in context.
	Gated int `json:"gated"`
	// First is what one probe a gated step adds, and Extra what whole attributions add where
	// the answers are simulated: the user's own proposal if the trusted text has all its
	// critical arguments, else one that depends on data. Shares of Steps.
	First float64 `json:"first"`
	Extra float64 `json:"extra"`
	Held  Share   `json:"held"` // of the gated steps

	calls int
}

// steps counts the benign runs of a stratum.
type steps struct{ runs, turns int }

// gate is a benign step that would be decided on.
type gate struct {
	stratum
	task    string
	problem counterfactual.Problem
}

func (x *index) addGates(e *episode, r *traces.Run) error {
	s := x.benigns[e.stratum]
	if s == nil {
		s = &steps{}
		x.benigns[e.stratum] = s
	}
	s.runs++
	s.turns += len(e.turns)
	for i := range e.turns {
		var targets []counterfactual.Proposal
		for _, a := range e.turns[i].actions {
			if e.gated(a) {
				targets = append(targets, *a)
			}
		}
		if len(targets) == 0 || e.turns[i].seen == 0 {
			continue
		}
		a, err := r.Assembly(i)
		if err != nil {
			return err
		}
		if len(a.Segments) == 0 {
			continue
		}
		p := a.Problem(targets[:min(len(targets), counterfactual.MaxTargets)], 0)
		for s := range p.Segments {
			p.Segments[s].Cuts = nil
		}
		x.gates = append(x.gates, gate{e.stratum, e.task, p})
	}
	return nil
}

// byTarget is a model to which each target has a cause of its own.
type byTarget struct {
	simulated
	needs []need
}

func (m *byTarget) Ask(p counterfactual.Probe) counterfactual.Observation {
	out := counterfactual.Observation{Variant: p.Variant, Replicate: p.Replicate}
	m.calls++
	for _, n := range m.needs {
		one := m.simulated
		one.needs = n
		out.Recurrences = append(out.Recurrences, one.Ask(p).Recurrences[0])
	}
	return out
}

func (x *index) cost(models map[stratum]*measured, opt *Options) ([]CostRow, error) {
	byModel, bySuite := map[stratum]*CostRow{}, map[string]*CostRow{}
	for _, s := range x.strata {
		if n := x.benigns[s]; n != nil {
			byModel[s] = &CostRow{Suite: s.Suite, Model: s.Model, Runs: n.runs, Steps: n.turns}
			if bySuite[s.Suite] == nil {
				bySuite[s.Suite] = &CostRow{Suite: s.Suite}
			}
			if !defended.MatchString(s.Model) {
				bySuite[s.Suite].Runs += n.runs
				bySuite[s.Suite].Steps += n.turns
			}
		}
	}
	for i, g := range x.gates {
		if i%100 == 0 {
			opt.say("E: benign runs", i, len(x.gates))
		}
		calls, held, err := g.decide(models[g.stratum], opt.Seed, i)
		if err != nil {
			return nil, err
		}
		for _, r := range []*CostRow{byModel[g.stratum], bySuite[g.Suite]} {
			if r.Model == "" && defended.MatchString(g.Model) {
				continue
			}
			r.Gated++
			r.calls += calls
			r.Held.add(held)
		}
	}
	var rows []CostRow
	done := map[string]bool{}
	for _, s := range x.strata {
		for _, r := range []*CostRow{bySuite[s.Suite], byModel[s]} {
			if r == nil || r.Model == "" && done[s.Suite] {
				continue
			}
			done[s.Suite] = true
			n := float64(max(r.Steps, 1))
			r.First, r.Extra, r.Held = float64(r.Gated)/n, float64(r.calls)/n, r.Held.done()
			rows = append(rows, *r)
		}
	}
	return rows, nil
}

func (g *gate) decide(m *measured, seed uint64, number int) (calls int, held bool, err error) {
	p := g.problem
	p.Rates = m.rates[1-half(g.task)]
	p.Budget = open
	sim := &byTarget{simulated: simulated{p1: m.repeat, p0: m.slip, rng: random(seed, "E", number)}}
	sim.causes = []counterfactual.Set{counterfactual.SetOf(len(p.Segments) - 1)}
	for _, t := range p.Targets {
		n := needData
		if t.UserGiven {
			n = needNoText
		}
		sim.needs = append(sim.needs, n)
	}
	plan, err := counterfactual.NewPlan(p)
	if err != nil {
		return 0, false, err
	}
	r := counterfactual.Drive(plan, sim)
	return sim.calls, r.Response() != counterfactual.Allow, nil
}
