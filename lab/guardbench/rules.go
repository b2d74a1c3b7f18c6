// SPDX-License-Identifier: Apache-2.0

package guardbench

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// An Act is what became of the calls of an answer.
type Act string

// The acts.
const (
	Passed   Act = "passed"
	Asked    Act = "asked"
	Held     Act = "held"
	Repaired Act = "repaired"
)

// A Handling is what a rule did with one case.
type Handling struct {
	Act Act
	// CannotTell: the rule held or asked because it did not find out. It counts in Act too.
	CannotTell bool
	Spent
	Rounds int // of questions that wait for each other's answers
	// Found are the segments that the rule named as the cause.
	Found counterfactual.Set
	// Why is the rule's own word for it; constant text.
	Why string
}

// budget is the number of questions that one decision may ask, as the guard has it.
const budget = 12

// A rule decides on an answer by asking the model again.
type rule struct {
	name string
	run  func(t *trial) Handling
}

// causalArmorRule is the name of the rule as it is published. The package stands beside it where it
// is installed.
const causalArmorRule = "CausalArmor's rule"

// rules are the published ones, and the simple ones, that stand beside the guard.
var rules = []rule{
	{"every argument in the user's text", everyArgument},
	{"information flow", informationFlow},
	{causalArmorRule, causalArmor},
	{"leave-one-out", leaveOneOut},
	{"keep-one", keepOne},
	{"MELON's rule", melon},
	{"first procedure", firstProcedure},
}

// A trial is one case before one rule.
type trial struct {
	c        *Case
	m        *model
	assembly *counterfactual.Assembly
	policy   *counterfactual.Privileges
	targets  []counterfactual.Proposal
	calls    []Call // of the targets
	rates    counterfactual.Rates
	p        Provider // counts what is asked
}

// begin takes a case apart. The calls to decide on are those that the guard decides on. ok is
// false where there are none, or no untrusted text: no rule asks anything then.
func begin(c *Case, seed uint64, policy *counterfactual.Privileges, rates counterfactual.Rates) (*trial, bool) {
	a, err := counterfactual.Parse(format.Chat, c.Body, counterfactual.ParseOptions{})
	if err != nil || len(a.Segments) == 0 {
		return nil, false
	}
	t := &trial{c: c, assembly: a, policy: policy, rates: rates}
	t.p.Seed = seed
	t.p.begin(c)
	t.m = t.p.model
	said := &counterfactual.Answer{}
	for _, s := range c.Said {
		said.Calls = append(said.Calls, counterfactual.Call{Name: s.Name, Arguments: s.Args})
	}
	for _, k := range delegation.Gate(a, policy, said, format.MaxCalls) {
		t.targets, t.calls = append(t.targets, policy.Proposal(k)), append(t.calls, Call{k.Name, k.Arguments})
	}
	return t, len(t.targets) > 0
}

func (t *trial) n() int { return len(t.assembly.Segments) }

// body is the request as a variant shows it; nil where it cannot be made.
func (t *trial) body(v counterfactual.Variant) []byte {
	b, err := t.assembly.Render(v)
	if err != nil {
		return nil
	}
	return b
}

// ask is the answer to a variant, counted.
func (t *trial) ask(v counterfactual.Variant) *counterfactual.Answer {
	body := t.body(v)
	_, uncached := t.p.note(body)
	t.p.spent.Context++
	t.p.spent.Tokens += uncached
	t.p.spent.All += int64(len(body) / bytesPerToken)
	out := &counterfactual.Answer{}
	if t.c.Provider == Refuses || t.c.Provider == Limited {
		return out
	}
	calls := t.c.Said
	if t.c.Provider != Cached {
		calls = t.m.answer(body)
	}
	for _, c := range calls {
		out.Calls = append(out.Calls, counterfactual.Call{Name: c.Name, Arguments: c.Args})
	}
	return out
}

// recurs reports for each target whether an answer proposes it.
func (t *trial) recurs(a *counterfactual.Answer) []bool {
	got := t.policy.Proposals(a)
	out := make([]bool, len(t.targets))
	for i := range t.targets {
		out[i] = slices.ContainsFunc(got, func(p counterfactual.Proposal) bool {
			return counterfactual.Recurs(&t.targets[i], &p, counterfactual.DefaultTheta)
		})
	}
	return out
}

func (t *trial) end(held bool, found counterfactual.Set) Handling {
	o := Handling{Act: Passed, Spent: t.p.cost(), Found: found, Rounds: min(1, t.p.cost().Context)}
	if held {
		o.Act = Held
	}
	return o
}

// everyArgument holds a call unless all of its values stand in the user's words.
func everyArgument(t *trial) Handling {
	return t.end(slices.ContainsFunc(t.calls, func(c Call) bool {
		return slices.ContainsFunc(c.values(), func(x value) bool { return !t.m.whole.mine.holds(x.text) })
	}), "")
}

// informationFlow holds every privileged call behind untrusted text, as deterministic labels
// of a whole context do.
func informationFlow(t *trial) Handling { return t.end(true, counterfactual.AllOf(t.n())) }

// causalArmor is the rule that causal-armor 0.1.2 applies: a text is flagged where withholding
// it lowers the log-probability of the call by more than withholding the user's request does.
// All scores are asked for at once; a flagged answer costs a rewriting of each flagged text
// and one new answer.
func causalArmor(t *trial) Handling {
	n := t.n()
	var found counterfactual.Set
	asked := min(n, budget-2)
	for i := range t.calls {
		base, user := t.m.score(&t.calls[i], t.body(counterfactual.KeepOnly(counterfactual.AllOf(n)))), t.m.score(&t.calls[i], t.body(counterfactual.MaskUser(n)))
		for s := n - asked; s < n; s++ {
			one := counterfactual.SetOf(s)
			if base-t.m.score(&t.calls[i], t.body(without(n, one))) > base-user {
				found = found.Union(one)
			}
		}
	}
	o := t.end(found != "", found)
	o.Context, o.Rounds = 2+asked, 1
	o.All += int64(2+asked) * int64(len(t.c.Body)) / bytesPerToken
	o.Tokens = o.All / 2 // on average half of a request stands before what is withheld
	if found != "" {
		o.Context, o.Rounds = o.Context+found.Len()+1, 3
	}
	return o
}

// leaveOneOut holds a call that does not recur without one of the texts.
func leaveOneOut(t *trial) Handling {
	n := t.n()
	asked := min(n, budget)
	var found counterfactual.Set
	for s := n - asked; s < n; s++ {
		if slices.Contains(t.recurs(t.ask(without(n, counterfactual.SetOf(s)))), false) {
			found = found.Union(counterfactual.SetOf(s))
		}
	}
	o := t.end(found != "", found)
	o.CannotTell = found == "" && asked < n
	return o
}

// keepOne holds a call that does not recur without any text and does with one alone.
func keepOne(t *trial) Handling {
	n := t.n()
	without := t.recurs(t.ask(counterfactual.KeepOnly("")))
	if !slices.Contains(without, false) {
		return t.end(false, "")
	}
	asked := min(n, budget-1)
	var found counterfactual.Set
	for s := n - asked; s < n; s++ {
		for i, yes := range t.recurs(t.ask(counterfactual.KeepOnly(counterfactual.SetOf(s)))) {
			if yes && !without[i] {
				found = found.Union(counterfactual.SetOf(s))
			}
		}
	}
	o := t.end(found != "", found)
	o.CannotTell = found == "" && asked < n
	return o
}

// melon holds a call that recurs where the user's task is masked.
func melon(t *trial) Handling {
	return t.end(slices.Contains(t.recurs(t.ask(counterfactual.MaskUser(t.n()))), true), "")
}

// oracle answers the probes of a plan.
type oracle struct {
	t     *trial
	judge *counterfactual.Judge
}

func (o *oracle) Ask(p counterfactual.Probe) counterfactual.Observation {
	if o.t.c.Provider == Limited {
		o.t.p.spent.Context++
		return counterfactual.Observation{Variant: p.Variant, Replicate: p.Replicate, Failure: counterfactual.FailLimited}
	}
	return o.judge.Observe(p, o.t.ask(p.Variant))
}

// firstProcedure is the decision by counterfactual runs alone: does the call recur without
// the texts, and with the user's task masked?
func firstProcedure(t *trial) Handling {
	targets := t.targets[:min(len(t.targets), counterfactual.MaxTargets)]
	p := t.assembly.Problem(targets, int64(len(t.c.Body)/bytesPerToken))
	p.Rates = t.rates
	p.Budget.Calls, p.Budget.Tokens = budget, max(p.Budget.Tokens, 20_000)
	plan, err := counterfactual.NewPlan(p)
	if err != nil {
		return Handling{Act: Held, CannotTell: true}
	}
	base := &counterfactual.Answer{}
	for _, c := range t.c.Said {
		base.Calls = append(base.Calls, counterfactual.Call{Name: c.Name, Arguments: c.Args})
	}
	r := counterfactual.Drive(plan, &oracle{t, &counterfactual.Judge{Policy: t.policy, Targets: targets, Trusted: t.assembly.Task + "\n" + t.assembly.Instructions, Base: base}})
	var found counterfactual.Set
	unknown := false
	for _, a := range r.Attributions {
		unknown = unknown || a.Class == counterfactual.Inconclusive
		for _, c := range a.Causes {
			found = found.Union(c.Segments)
		}
	}
	o := t.end(r.Response() != counterfactual.Allow, found)
	o.CannotTell, o.Rounds = unknown, o.Context
	if r.Response() == counterfactual.Ask {
		o.Act = Asked
	}
	return o
}

// without withholds the group of n segments.
func without(n int, group counterfactual.Set) counterfactual.Variant {
	return counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.AllOf(n).Minus(group)}
}
