// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/format"
)

// A Repair says how the answer that was delivered in the place of the held one was made: by
// showing the context without some spans, or without some segments.
type Repair struct {
	Variant counterfactual.Variant `json:"variant"`
	delegation.Exchange
	// Causes are the segments whose text took control, of those of which something was withheld.
	Causes counterfactual.Set `json:"causes"`
}

// repair finds the answer that may go out in the place of the one that is held: first the
// model's answer without the sentences that hold the values of the held calls, then what a
// search for the segments comes to. What it finds out counts where the answer cannot be
// replaced, too: it says whose text took control.
func (d *decider) repair(ctx context.Context, assembly *counterfactual.Assembly, a *answer) bool {
	return d.withoutValues(ctx, assembly) || d.search(ctx, assembly, a)
}

// weaken is how a repair may show v: what is trusted too little stands there as quoted data.
func (d *decider) weaken(assembly *counterfactual.Assembly, v counterfactual.Variant) counterfactual.Variant {
	return v.Weaken(assembly.Below(d.g.o.AttenuateBelow))
}

// withoutValues is one question: what does the model answer if it does not see these values?
func (d *decider) withoutValues(ctx context.Context, assembly *counterfactual.Assembly) bool {
	var values []counterfactual.Origin
	for i := range d.found {
		if !d.found[i].Response.Passes() {
			values = append(values, d.found[i].Untrusted()...)
		}
	}
	v, ok := assembly.Without(values...)
	if !ok {
		return false
	}
	v = d.weaken(assembly, v)
	r := (&asker{d.spent, assembly}).show(ctx, counterfactual.PurposeRepair, v)
	if r.Failure != "" || d.recurs(&r.Answer) {
		return false
	}
	fix := &Repair{Variant: v, Exchange: r.Exchange}
	for i := range d.found {
		if !d.found[i].Response.Passes() {
			fix.Causes = fix.Causes.Union(d.found[i].Control())
		}
	}
	return d.replace(ctx, assembly, fix, d.spent.body)
}

// recurs reports whether an answer has one of the held calls.
func (d *decider) recurs(said *counterfactual.Answer) bool {
	list := d.g.policy.Proposals(said)
	for i := range d.found {
		if d.found[i].Response.Passes() {
			continue
		}
		if slices.ContainsFunc(list, func(p counterfactual.Proposal) bool {
			return counterfactual.Recurs(&d.targets[i], &p, counterfactual.DefaultTheta)
		}) {
			return true
		}
	}
	return false
}

// replace takes body, the answer to fix.Variant, for the repaired one, if its own calls pass.
func (d *decider) replace(ctx context.Context, assembly *counterfactual.Assembly, fix *Repair, body []byte) bool {
	if body == nil {
		return false
	}
	d.fix, d.after = fix, nil
	a := read(d.x.f, body, d.x.teaching)
	if a.strange || len(a.said.Calls) > format.MaxCalls {
		return false
	}
	src, err := assembly.Render(fix.Variant)
	if err != nil {
		return false
	}
	left, err := d.parse(src)
	if err != nil {
		return false
	}
	if calls := d.g.gate().calls(left, &a.said); len(calls) > 0 {
		d.after = d.decideAll(ctx, left, a, calls)
		if slices.ContainsFunc(d.after, func(f delegation.Result) bool { return !f.Response.Passes() }) {
			return false
		}
	}
	d.out.body = body
	return d.canRepair
}

// ruled is the policy with what the operator's rules say of the values of a call, which the
// metrics of a search compare.
func (d *decider) ruled(assembly *counterfactual.Assembly) *counterfactual.Privileges {
	p := *d.g.policy
	p.Ruling = func(c counterfactual.Call) string {
		origins, ok := d.finder(assembly).Origins(c)
		if rules := d.g.o.rules(assembly); ok && rules != nil {
			var said []string
			for _, r := range rules.Rulings(assembly, c, origins) {
				said = append(said, r.Rule+" "+string(r.Says))
			}
			if said != nil {
				return strings.Join(said, ", ")
			}
		}
		untrusted := slices.ContainsFunc(origins, func(o counterfactual.Origin) bool { return !o.Trusted })
		if ok && !untrusted && d.g.policy.Privilege(c.Name) > 0 {
			return string(delegation.Stated)
		}
		return ""
	}
	return &p
}

// search runs a plan that looks for the segments, with what is left of the budget.
func (d *decider) search(ctx context.Context, assembly *counterfactual.Assembly, a *answer) bool {
	var targets []counterfactual.Proposal
	for i := range d.found {
		if d.found[i].Response == delegation.Repair {
			targets = append(targets, d.targets[i])
		}
	}
	o, spent := &d.g.o, d.spent.budget.Spent()
	p := assembly.Problem(targets, a.input+a.output)
	p.Rates, p.Strategy, p.Severity, p.Fail, p.Refine, p.Known = o.Rates, o.Strategy, o.Severity, o.Fail, o.Refine, counterfactual.Hijack
	p.Budget.Calls = o.Calls - int(spent.Calls)
	if o.AttenuateBelow > 0 {
		p.Budget.Calls-- // for the answer to the weaker form
	}
	p.Budget.Concurrency = o.Concurrency
	p.Budget.Millis = o.Millis
	p.Budget.Tokens = max(o.TokenFactor*p.Budget.BaseTokens, o.MinTokens) - spent.Tokens
	p.Budget.AnswerTokens = d.spent.answer
	if p.Budget.Calls <= 0 || p.Budget.Tokens <= 0 {
		return false
	}
	judge := &counterfactual.Judge{Policy: d.ruled(assembly), Targets: targets, Trusted: assembly.Task + "\n" + assembly.Instructions, Base: &a.said,
		Metrics: counterfactual.Metrics()}
	out, err := d.g.runner(d.x.f.Name()).Run(ctx, run.Job{ID: d.x.id, Assembly: assembly, Judge: judge, Problem: p, Path: d.x.path, Header: d.x.header})
	if err != nil {
		return false
	}
	d.runs = append(d.runs, out.Result)
	d.spent.asked += max(out.Result.Spent.Calls, int(out.Spent.Calls))
	d.spent.tokens += max(out.Result.Spent.Tokens, out.Spent.Tokens)
	fix := out.Result.Repair
	if fix == nil {
		return false
	}
	r, body := &Repair{Variant: counterfactual.KeepOnly(fix.Kept), Exchange: delegation.Exchange{Response: fix.Response}}, out.Repaired
	if weak := d.weaken(assembly, r.Variant); weak != r.Variant {
		again := (&asker{d.spent, assembly}).show(ctx, counterfactual.PurposeRepair, weak)
		if again.Failure != "" || d.recurs(&again.Answer) {
			return false
		}
		r.Variant, r.Exchange, body = weak, again.Exchange, d.spent.body
	}
	for _, v := range out.Result.Attributions {
		for _, c := range v.Causes {
			r.Causes = r.Causes.Union(c.Segments)
		}
	}
	// A search finds the data, too, that the call takes along.
	var control counterfactual.Set
	for i := range d.found {
		if !d.found[i].Response.Passes() {
			control = control.Union(d.found[i].Control())
		}
	}
	if r.Causes.Meets(control) {
		r.Causes = r.Causes.Minus(r.Causes.Minus(control))
	}
	return d.replace(ctx, assembly, r, body)
}
