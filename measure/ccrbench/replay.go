// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// A ContextRow is how well a method finds every carrier of the injection in real
// contexts, whose answers are simulated with the model's measured noise.
type ContextRow struct {
	Suite  string `json:"suite"`
	Model  string `json:"model"`  // "" = all models of the suite
	Copies string `json:"copies"` // "1", or "2+": how many segments carry the injection
	Method string `json:"method"`
	Exact  Share  `json:"exact"` // exactly the carriers were named
	// Calls is the mean number of answers that localisation took, and AllCalls with the
	// attribution's. The baselines ask for no attribution.
	Calls    float64 `json:"calls"`
	AllCalls float64 `json:"all_calls"`
	Segments float64 `json:"segments"` // mean
}

// mostContexts is how many contexts of a stratum are replayed unless all are.
const mostContexts = 40

// ours is how the tables call the method of package counterfactual.
const ours = "pellucid"

// settle finds the attacker's proposal of each context: the first gated one that does
// not recur in the recorded probes. Later contexts of the same run are dropped.
func (x *index) settle() {
	var last *episode
	x.contexts = slices.DeleteFunc(x.contexts, func(c *context) bool {
		if c.episode == last || c.carriers == "" {
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

func (x *index) replay(models map[stratum]*measured, opt *Options) ([]ContextRow, error) {
	var rows []ContextRow
	type key struct{ suite, model, copies, method string }
	at := map[key]int{}
	taken := map[stratum]int{}
	row := func(k key) *ContextRow {
		i, ok := at[k]
		if !ok {
			i = len(rows)
			at[k] = i
			rows = append(rows, ContextRow{Suite: k.suite, Model: k.model, Copies: k.copies, Method: k.method})
		}
		return &rows[i]
	}
	for i, c := range x.contexts {
		if i%50 == 0 {
			opt.say("C: real contexts", i, len(x.contexts))
		}
		s := c.episode.stratum
		if taken[s]++; !opt.Full && taken[s] > mostContexts {
			continue
		}
		trials, err := c.replay(models[s], opt.Seed, i)
		if err != nil {
			return nil, err
		}
		copies := "1"
		if c.carriers.Len() > 1 {
			copies = "2+"
		}
		for _, t := range trials {
			for _, model := range []string{s.Model, ""} {
				r := row(key{s.Suite, model, copies, t.method})
				r.Exact.add(t.exact)
				r.Calls += float64(t.calls)
				r.AllCalls += float64(t.calls + t.verdict)
				r.Segments += float64(len(c.problems[c.target].Segments))
			}
		}
	}
	for i := range rows {
		n := float64(rows[i].Exact.N)
		rows[i].Exact = rows[i].Exact.done()
		rows[i].Calls, rows[i].AllCalls, rows[i].Segments = rows[i].Calls/n, rows[i].AllCalls/n, rows[i].Segments/n
	}
	slices.SortStableFunc(rows, func(a, b ContextRow) int {
		for _, c := range []int{compare(a.Suite, b.Suite), compare(a.Model, b.Model), compare(a.Copies, b.Copies)} {
			if c != 0 {
				return c
			}
		}
		return 0
	})
	return rows, nil
}

// trial is what came of one method.
type trial struct {
	method         string
	exact          bool
	calls, verdict int
	found          counterfactual.Set
}

// replay runs every method that needs not be told on c.
func (c *context) replay(m *measured, seed uint64, number int) ([]trial, error) {
	p := c.problems[c.target]
	p.Budget = open
	p.Rates = m.rates[1-half(c.episode.task)]
	p.Rates.P0 = max(p.Rates.P0, int(1e6*slipFloor))
	p.Targets[0].Privilege = 1000
	var causes []counterfactual.Set
	for i := range c.carriers.Places() {
		causes = append(causes, counterfactual.SetOf(i))
	}
	fresh := func(name string) *simulated {
		return &simulated{causes: causes, p1: m.repeat, p0: m.slip, rng: random(seed, "C "+name, number)}
	}
	t, err := solve(p, fresh(ours))
	if err != nil {
		return nil, err
	}
	out := []trial{t}
	for _, b := range methods {
		if b.told {
			continue
		}
		sim := fresh(b.name)
		found := b.run(sim, len(p.Segments), 0)
		out = append(out, trial{method: b.name, exact: found == c.carriers, calls: sim.calls, found: found})
	}
	return out, nil
}

// solve drives a plan against a simulated model.
func solve(p counterfactual.Problem, sim *simulated) (trial, error) {
	plan, err := counterfactual.NewPlan(p)
	if err != nil {
		return trial{}, err
	}
	v := counterfactual.Drive(plan, sim).Attributions[0]
	t := trial{method: ours, calls: sim.calls - sim.verdict, verdict: sim.verdict}
	for _, c := range v.Causes {
		t.found = t.found.Union(c.Segments)
	}
	t.exact = t.found == sim.all()
	return t, nil
}
