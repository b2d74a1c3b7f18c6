// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// ours is how the tables call the method of package counterfactual.
const ours = "pellucid"

// settle finds the attacker's proposal of each context: the first gated one that does
// not recur in the recorded probes. Later contexts of the same run are dropped.
func (x *index) settle() {
	var last *episode
	x.contexts = slices.DeleteFunc(x.contexts, func(c *context) bool {
		if c.episode == last {
			return true
		}
		c.target = -1
		e := c.episode
		base := x.aligned(e)
		if base == nil {
			return true
		}
		probes := x.probes(e, base)
		for i, a := range e.turns[c.turn].actions {
			if e.gated(a) && score(a, probes, Probes) >= frozen(signalSix) {
				c.target = i
				last = e
				return false
			}
		}
		return true
	})
}

// trial is what came of one method.
type trial struct {
	exact          bool
	calls, verdict int
	found          counterfactual.Set
}

// solve drives a plan against a simulated model.
func solve(p counterfactual.Problem, sim *simulated) (trial, error) {
	plan, err := counterfactual.NewPlan(p)
	if err != nil {
		return trial{}, err
	}
	v := counterfactual.Drive(plan, sim).Attributions[0]
	t := trial{calls: sim.calls - sim.verdict, verdict: sim.verdict}
	for _, c := range v.Causes {
		t.found = t.found.Union(c.Segments)
	}
	t.exact = t.found == sim.all()
	return t, nil
}
