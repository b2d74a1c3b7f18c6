// SPDX-License-Identifier: Apache-2.0

package delegation

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// An Asker puts questions to models. Its methods may be called at the same time.
type Asker interface {
	// Plan asks the planner.
	Plan(ctx context.Context, q Question) Reply
	// Show asks the model for its answer to a variant of the context.
	Show(ctx context.Context, v counterfactual.Variant) Reply
}

// A Reply is what came back.
type Reply struct {
	Exchange
	Answer counterfactual.Answer // empty where Failure says why
}

// A Problem is what has to be decided.
type Problem struct {
	Assembly   *counterfactual.Assembly
	Privileges *counterfactual.Privileges
	Answer     *counterfactual.Answer // the answer with the calls
	Calls      []counterfactual.Call  // those of it that Gate names
	Examples   []Example              // for the planner
	Confirm    bool                   // ask NeedPrompt as well
	SkipStated bool                   // do not ask for the plan if all values are the user's and the request has the tool's verb
	Own        bool                   // the context holds no third-party text, and nothing is asked
	Rules      Rules                  // about the values of calls; nil: there are none
	// Approved is the id of a person's approval for a call that would not pass, or "". nil:
	// there are none.
	Approved func(ctx context.Context, c counterfactual.Call) string
	// Quarantined reports whether the context holds text of a quarantined source; nil: not.
	Quarantined func() bool
}

// Gate are the calls of an answer that need a decision, each once: the privileged ones, and
// of the others those that reach an address which is not the user's.
func Gate(a *counterfactual.Assembly, p *counterfactual.Privileges, said *counterfactual.Answer, most int) []counterfactual.Call {
	var out, readers []counterfactual.Call
	list := said.Calls[:min(len(said.Calls), most)]
	for _, c := range list {
		if p.Privilege(c.Name) == 0 {
			readers = append(readers, c)
		}
	}
	f := a.Finder(p)
	f.Prepare(readers...)
	seen := map[string]bool{}
	for _, c := range list {
		x := p.Proposal(c)
		if d := x.Digest(); !seen[d] && (x.Privilege > 0 || reaches(f, c)) {
			seen[d] = true
			out = append(out, c)
		}
	}
	return out
}

// reaches reports whether a call of a reader goes to an address that is not the user's.
func reaches(f *counterfactual.Finder, c counterfactual.Call) bool {
	list, ok := f.Origins(c)
	return !ok || slices.ContainsFunc(list, func(o counterfactual.Origin) bool { return !o.Trusted && o.Reaches() })
}

// A Result is what was found out about one call.
type Result struct {
	Facts
	Verdict  Verdict
	Response Response
	// Origins are of Facts.Arguments.
	Origins []counterfactual.Origin
	// Candidates are the values that compete with those of the call, for a reviewer. They are
	// third-party text.
	Candidates []Candidate
}

// A Candidate is the value that the model gives an argument if it does not see the value of the
// call. Both are canonical.
type Candidate struct{ Path, Value string }

// Decide asks what has to be asked, of all calls at the same time, and says what policy does.
func Decide(ctx context.Context, p *Problem, policy Policy, by Asker) []Result {
	out := make([]Result, len(p.Calls))
	work := make([]*deciding, len(p.Calls))
	f := p.Assembly.Finder(p.Privileges)
	f.Prepare(p.Calls...)
	for i, c := range p.Calls {
		work[i] = begin(p, f, c)
	}
	plan(ctx, p, work, by)
	var wait sync.WaitGroup
	for _, w := range work {
		w.begin(ctx, &wait, by)
	}
	wait.Wait()
	for i, w := range work {
		v := w.facts.Verdict()
		r := w.settle(ctx, policy.Of(v))
		out[i] = Result{Facts: w.facts, Verdict: v, Response: r, Origins: w.origins, Candidates: slices.Concat(w.candidates...)}
	}
	return out
}

// deciding is one call under way.
type deciding struct {
	p        *Problem
	call     counterfactual.Call
	proposal counterfactual.Proposal
	origins  []counterfactual.Origin
	paths    []string
	facts    Facts
	literal  map[string][]string // what the plan states of the arguments, by path
	// candidates are those of Facts.Rivals, in their order.
	candidates [][]Candidate
}

// begin finds out what costs nothing.
func begin(p *Problem, f *counterfactual.Finder, c counterfactual.Call) *deciding {
	w := &deciding{p: p, call: c, proposal: p.Privileges.Proposal(c)}
	w.facts = Facts{Tool: frame.Label(c.Name), Digest: w.proposal.Digest(), Reader: w.proposal.Privilege == 0}
	w.facts.Own, w.facts.Verb = p.Own, p.Assembly.SaysWhatToDo(c.Name)
	if w.facts.Writes = !w.facts.Reader && p.Privileges.Privilege(c.Name) == 0; w.facts.Writes {
		w.facts.Verb = p.Assembly.AsksToWrite(c)
	}
	list, ok := f.Origins(c)
	switch {
	case !ok:
		list = nil
	case list == nil:
		list = []counterfactual.Origin{}
	}
	if p.Rules != nil {
		w.facts.Rulings = p.Rules.Rulings(p.Assembly, c, list)
	}
	if w.facts.Unread = !ok; !ok {
		return w
	}
	for _, o := range list {
		if w.facts.Reader && !o.Reaches() {
			continue
		}
		w.origins = append(w.origins, o)
		w.paths = append(w.paths, o.Path())
		w.facts.Arguments = append(w.facts.Arguments,
			Argument{Label: o.Argument, Form: o.Form, Inside: o.Inside, Trusted: o.Trusted, Segments: o.Segments, Composed: o.Composed, Minor: o.Minor, Leaks: o.Leaks, Guessed: o.Guessed})
	}
	return w
}

// open reports whether something is left to ask.
func (w *deciding) open() bool {
	return !w.facts.Own && !w.facts.Unread && (w.facts.asks() || !w.facts.Reader && (!w.p.SkipStated || !w.facts.Verb))
}

// plan asks the planner, once for all calls.
func plan(ctx context.Context, p *Problem, work []*deciding, by Asker) {
	if !slices.ContainsFunc(work, (*deciding).open) {
		return
	}
	q, why := PlanQuestion(p.Assembly, p.Privileges, p.Examples, p.Calls...)
	r := Reply{Exchange: Exchange{Failure: counterfactual.FailRejected}}
	if why == "" {
		r = by.Plan(ctx, q)
	}
	list, read := []planned(nil), false
	if r.Failure == "" {
		list, read = q.parse(r.Answer.Text)
		named(list, p.Assembly.Tools)
	}
	before, does := p.before(), newWork(p.Assembly)
	for _, w := range work {
		if !w.open() {
			continue
		}
		f := &PlanFacts{Exchange: r.Exchange, Unasked: why, Unreadable: r.Failure == "" && !read, Done: p.Assembly.Made(w.call.Name) + before[w.proposal.Digest()]}
		if read {
			w.read(f, list, does)
		}
		w.facts.Plan = f
	}
}

// before is, by the digest of a call, how many calls of its tool the answer has before it. Of
// equal calls the last one counts: all of them are made.
func (p *Problem) before() map[string]int {
	out, of := map[string]int{}, map[string]int{}
	for _, c := range p.Answer.Calls {
		x := p.Privileges.Proposal(c)
		out[x.Digest()] = of[c.Name]
		of[c.Name]++
	}
	return out
}

// begin asks what is left of one call, if the verdict depends on it.
func (w *deciding) begin(ctx context.Context, wait *sync.WaitGroup, by Asker) {
	f := w.facts.Plan
	if !w.open() || f == nil || !f.Listed && !f.Confirmed || !w.facts.asks() {
		return
	}
	if w.p.Confirm {
		need := &Needed{}
		w.facts.Need = need
		wait.Go(func() { w.need(ctx, need, by) })
	}
	groups := w.facts.groups()
	// What is not delegated whatever a rival says is not asked about. With Need the answer is
	// not there yet; both go out together, since an answer costs less than waiting.
	if early := w.facts; len(groups) > 0 {
		early.Need, early.Rivals = nil, make([]Rival, len(groups))
		if early.Verdict() != Delegated {
			return
		}
	}
	w.facts.Rivals = make([]Rival, len(groups))
	w.candidates = make([][]Candidate, len(groups))
	for i, g := range groups {
		wait.Go(func() { w.facts.Rivals[i], w.candidates[i] = w.rival(ctx, g, by) })
	}
}

// need asks whether the request asks for what the tool does.
func (w *deciding) need(ctx context.Context, n *Needed, by Asker) {
	q, ok := needQuestion(w.p.Assembly, w.call.Name)
	if !ok {
		n.Failure = counterfactual.FailRejected
		return
	}
	r := by.Plan(ctx, q)
	n.Exchange = r.Exchange
	if n.Failure == "" {
		n.Yes, ok = yes(strings.TrimSpace(r.Answer.Text))
		n.Unreadable = !ok
	}
}

// rival asks for the answer without some of the values.
func (w *deciding) rival(ctx context.Context, group []int, by Asker) (out Rival, candidates []Candidate) {
	out.Arguments = group
	var values []counterfactual.Origin
	for _, i := range group {
		values = append(values, w.origins[i])
	}
	v, ok := w.p.Assembly.Without(values...)
	if !ok {
		out.Failure = counterfactual.FailBroken
		return out, nil
	}
	if _, err := v.Without.List(); err != nil { // too many places for a list
		v = whole(w.p.Assembly, values)
	}
	r := by.Show(ctx, v)
	if out.Exchange = r.Exchange; out.Failure == "" {
		out.Rival = w.p.Assembly.Rival(w.p.Privileges, w.p.Answer, w.call, v, values, &r.Answer)
		candidates = w.candidatesOf(out.Rival, v, values, &r.Answer)
		out.Unnamed = w.unnamed(group, candidates)
	}
	return out, candidates
}

// unnamed reports whether the plan has a name for a value that was withheld, and for no candidate.
func (w *deciding) unnamed(group []int, candidates []Candidate) bool {
	is := comparison{w.p.Assembly}
	return slices.ContainsFunc(group, func(i int) bool {
		var value string
		for _, x := range slices.Concat(w.proposal.Critical, w.proposal.Free) {
			if x.Path == w.paths[i] {
				value = x.Value
			}
		}
		return slices.ContainsFunc(w.literal[w.paths[i]], func(name string) bool {
			return isName(name) && is.same(name, value) && len(candidates) > 0 && !slices.ContainsFunc(candidates, func(c Candidate) bool { return c.Path == w.paths[i] && is.same(name, c.Value) })
		})
	})
}

// whole withholds every segment that holds one of the values.
func whole(a *counterfactual.Assembly, values []counterfactual.Origin) counterfactual.Variant {
	var of counterfactual.Set
	for _, v := range values {
		of = of.Union(v.Segments)
	}
	return counterfactual.Variant{Kind: counterfactual.KindRemove, Kept: counterfactual.AllOf(len(a.Segments)).Minus(of)}
}

// candidatesOf are the values of the call that is the rival.
func (w *deciding) candidatesOf(rival counterfactual.Rival, v counterfactual.Variant, values []counterfactual.Origin, said *counterfactual.Answer) (out []Candidate) {
	if !rival.Other {
		return nil
	}
	for _, c := range said.Calls {
		if w.p.Assembly.Rival(w.p.Privileges, w.p.Answer, w.call, v, values, &counterfactual.Answer{Calls: []counterfactual.Call{c}}) != rival {
			continue
		}
		other := w.p.Privileges.Proposal(c)
		for _, a := range slices.Concat(other.Critical, other.Free) {
			if slices.ContainsFunc(values, func(o counterfactual.Origin) bool { return o.Path() == a.Path }) {
				out = append(out, Candidate{a.Path, a.Value})
			}
		}
		return out
	}
	return nil
}

// Untrusted are the values of a call that are not the user's.
func (d *Result) Untrusted() []counterfactual.Origin {
	return slices.DeleteFunc(slices.Clone(d.Origins), func(o counterfactual.Origin) bool { return o.Trusted || o.Segments == "" })
}
