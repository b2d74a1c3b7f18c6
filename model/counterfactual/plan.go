// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"errors"
	"slices"
)

// Bounds of a Problem.
const (
	maxSegments = 4096
	MaxTargets  = 32
	maxCore     = 8   // segments that are needed together
	maxFailures = 6   // probes without an answer end a plan
	maxCutCount = 512 // of one segment

	// maxCount bounds tokens and milliseconds, so that sums of them stay exact, in a
	// JSON number too.
	maxCount = 1 << 40
)

// StopReason says why a Plan asks no more.
type StopReason string

// The reasons. StopDone: nothing is left to ask.
const (
	StopDone     StopReason = "done"
	StopVerdict  StopReason = "verdict-calls" // the verdict's own ceiling
	StopCalls    StopReason = "calls"
	StopTokens   StopReason = "tokens"
	StopTime     StopReason = "time"
	StopFailures StopReason = "failures"
	StopCanceled StopReason = "canceled"
	StopOpen     StopReason = "open" // none: the plan could go on
)

// A Plan decides what to ask and what follows. It is not for concurrent use: one
// goroutine calls Next and Observe, whoever asks the model may be many.
//
// It holds no state but what was observed and what is out. Each step runs the
// whole decision again from the start, takes what is known from memory and ends
// at the first question that nobody has answered; so it can be resumed anywhere,
// and a change of what is known of the model (its rates, by a new fingerprint)
// holds for the questions before as well.
type Plan struct {
	problem Problem
	parent  []Set
	units   []Set   // what is withheld together, in the order of suspicion
	members [][]int // of each unit

	memo   map[question]*entry
	log    []Observation // in the order of arrival
	out    int
	spent  Spent
	model  string // of the first answer
	drift  bool
	failed int
	stop   StopReason // given from outside, or by a ceiling

	last  *conclusion // of what is observed; nil if a step is due
	ready []Probe     // of last, not handed out yet
}

type question struct {
	variant   Variant // same()
	replicate int
}

type entry struct {
	obs   *Observation // nil while it is out
	bound int64
}

// Spent is what a Plan has used.
type Spent struct {
	Calls  int   `json:"calls"`
	Tokens int64 `json:"tokens"`
	Millis int64 `json:"millis"`
	Failed int   `json:"failed,omitempty"` // of Calls
}

// NewPlan checks p and plans for it.
func NewPlan(p Problem) (*Plan, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	p.setDefaults()
	up := make([][]int, len(p.Segments))
	linked := false
	for i := range p.Segments {
		up[i] = p.Segments[i].Parents
		linked = linked || len(up[i]) > 0
	}
	plan := &Plan{problem: p, memo: map[question]*entry{}}
	if linked {
		all, ok := ancestors(up)
		if !ok {
			return nil, errors.New("counterfactual: new plan: a segment derives from itself")
		}
		plan.parent = all
	}
	plan.units = p.units()
	for _, u := range plan.units {
		plan.members = append(plan.members, u.List())
	}
	return plan, nil
}

func (p *Problem) check() error {
	n := len(p.Segments)
	switch {
	case n > maxSegments:
		return errors.New("counterfactual: new plan: too many segments")
	case len(p.Targets) == 0:
		return errors.New("counterfactual: new plan: no target")
	case len(p.Targets) > MaxTargets:
		return errors.New("counterfactual: new plan: too many targets")
	case p.Known != "" && p.Known.weight() == 0:
		return errors.New("counterfactual: new plan: no such class")
	case p.Rule != (Rule{}) && !p.Rule.valid():
		return errors.New("counterfactual: new plan: no such rule")
	}
	inside := func(list []int) bool {
		return !slices.ContainsFunc(list, func(i int) bool { return i < 0 || i >= n })
	}
	for i := range p.Segments {
		u := &p.Segments[i]
		if !inside(u.Parents) || !inside(u.Twins) || u.Tokens < 0 || u.Tokens > 1<<30 || u.Bytes < 0 || u.Bytes > 1<<30 {
			return errors.New("counterfactual: new plan: bad segment")
		}
		if len(u.Cuts) > maxCutCount || !slices.IsSorted(u.Cuts) ||
			len(u.Cuts) > 0 && (u.Cuts[0] <= 0 || u.Cuts[len(u.Cuts)-1] >= u.Bytes) {
			return errors.New("counterfactual: new plan: bad cuts")
		}
	}
	if !inside(p.Order) {
		return errors.New("counterfactual: new plan: order names no segment")
	}
	b := p.Budget
	if b.Calls < 0 || b.VerdictCalls < 0 || b.Tokens < 0 || b.BaseTokens < 0 || b.AnswerTokens < 0 || b.Millis < 0 || b.Concurrency < 0 {
		return errors.New("counterfactual: new plan: negative budget")
	}
	if max(b.Tokens, 3*min(b.BaseTokens, maxCount), b.AnswerTokens, b.Millis) > 4*maxCount || b.BaseTokens > maxCount || max(b.Calls, b.Concurrency) > 1<<20 {
		return errors.New("counterfactual: new plan: budget beyond reason")
	}
	return nil
}

func (p *Problem) setDefaults() {
	p.Budget = p.Budget.whole()
	if p.Rule == (Rule{}) {
		p.Rule = p.Rates.rule()
	}
	p.Level = cmp.Or(min(p.Level, LevelWithheld), LevelMasked)
	p.MaxCauses = cmp.Or(max(p.MaxCauses, 0), 6)
	p.Severity = p.Severity.whole()
	p.Segments = slices.Clone(p.Segments)
	if !p.Refine { // nobody asks for them, and the record would be long
		for i := range p.Segments {
			p.Segments[i].Cuts = nil
		}
	}
}

// whole is b with its defaults.
func (b Budget) whole() Budget {
	b.Calls = cmp.Or(b.Calls, 12)
	b.VerdictCalls = min(cmp.Or(b.VerdictCalls, (b.Calls+1)/2), b.Calls)
	b.Tokens = cmp.Or(b.Tokens, 3*b.BaseTokens)
	b.Millis = cmp.Or(b.Millis, 60_000)
	b.Concurrency = cmp.Or(b.Concurrency, 4)
	return b
}

// units groups the segments by capsule and orders the groups by suspicion.
func (p *Problem) units() []Set {
	members := map[string]Set{}
	for i, s := range p.Segments {
		if s.Capsule != "" {
			members[s.Capsule] = members[s.Capsule].Union(SetOf(i))
		}
	}
	var out []Set
	var seen Set
	add := func(i int) {
		if seen.Has(i) {
			return
		}
		unit := SetOf(i)
		if c := p.Segments[i].Capsule; c != "" {
			unit = members[c]
		}
		seen = seen.Union(unit)
		out = append(out, unit)
	}
	for _, i := range p.Order {
		add(i)
	}
	for i := range p.Segments {
		add(i)
	}
	return out
}

// Problem is what the plan works on, its defaults filled in.
func (p *Plan) Problem() Problem { return p.problem }

// Spent is what was used until now; probes that are out are charged their bound.
func (p *Plan) Spent() Spent { return p.spent }

// Done reports whether there is nothing left to ask, and nothing out.
func (p *Plan) Done() bool {
	return p.out == 0 && (p.stop != "" || len(p.step().need) == 0)
}

// Next hands out at most n probes, which from then on are out until Observe gets
// them. It returns none where the plan is done, or has to see what is out first.
func (p *Plan) Next(n int) []Probe {
	n = min(n, p.problem.Budget.Concurrency-p.out)
	if p.stop != "" || n <= 0 {
		return nil
	}
	p.step()
	n = min(n, len(p.ready))
	probes := p.ready[:n:n]
	p.ready = p.ready[n:]
	for _, pr := range probes {
		p.memo[p.question(pr.Variant, pr.Replicate)] = &entry{bound: pr.Tokens}
		p.out++
		p.spent.Calls++
		p.spent.Tokens += pr.Tokens
	}
	return probes
}

// Observe takes what came of probes. What nobody asked for, or was observed
// already, is ignored.
func (p *Plan) Observe(obs ...Observation) {
	for _, o := range obs {
		e := p.memo[p.question(o.Variant, o.Replicate)]
		if e == nil || e.obs != nil {
			continue
		}
		p.out--
		used := min(cmp.Or(max(o.Tokens, 0), e.bound), maxCount)
		p.spent.Tokens += used - e.bound
		o.Tokens = used
		p.keep(e, o)
	}
}

// keep records o as the answer of e.
func (p *Plan) keep(e *entry, o Observation) {
	if o.Failure == FailNone && len(o.Recurrences) != len(p.problem.Targets) {
		o.Failure = FailBroken
	}
	if o.Failure != FailNone {
		o.Recurrences, o.Metrics, o.Others, o.Refused = nil, nil, 0, false
		p.spent.Failed++
		p.failed++
	} else {
		p.failed = 0
		p.model = cmp.Or(p.problem.Rates.Model, p.model, o.Model)
		p.drift = p.drift || o.Model != "" && o.Model != p.model
	}
	o.Elapsed = min(max(o.Elapsed, 0), maxCount)
	p.spent.Millis = max(p.spent.Millis, o.Elapsed)
	e.obs = &o
	p.log = append(p.log, o)
	p.last, p.ready = nil, nil
	switch {
	case p.stop != "":
	case o.Failure == FailCanceled:
		p.stop = StopCanceled
	case p.failed >= maxFailures:
		p.stop = StopFailures
	}
}

// Stop ends the plan: Next hands out nothing more. The first reason counts.
func (p *Plan) Stop(reason StopReason) {
	p.stop = cmp.Or(p.stop, reason)
	p.last, p.ready = nil, nil
}

// question is the key under which the answer to a variant is remembered.
func (p *Plan) question(v Variant, replicate int) question {
	v = v.same()
	v.Kept = shown(v.Kept, p.parent)
	if v.Weak != "" {
		v.Weak = v.Weak.Minus(v.Weak.Minus(v.Kept))
		v = v.same()
	}
	return question{v, replicate}
}

// bound is what a probe of v may cost: the base without three quarters of what is
// hidden, since what hidden text costs is an estimate, and with what placeholders
// and wrappers add.
func (p *Plan) bound(v Variant) int64 {
	b := p.problem.Budget
	if b.BaseTokens == 0 {
		return b.AnswerTokens
	}
	cost := b.BaseTokens + b.AnswerTokens
	for i := range p.problem.Segments {
		u := &p.problem.Segments[i]
		switch {
		case !v.Kept.Has(i):
			cost += 8 - int64(u.Tokens)*3/4
		case v.Weak.Has(i):
			cost += 128 + int64(u.Tokens)/4
		}
	}
	return max(cost, 1)
}

// afford says which ceiling a further probe of v would break; "" is none.
func (p *Plan) afford(v Variant, purpose Purpose, queued int, tokens int64) StopReason {
	b := p.problem.Budget
	switch calls := p.spent.Calls + queued; {
	case calls >= b.Calls:
		return StopCalls
	case purpose == PurposeVerdict && calls >= b.VerdictCalls:
		return StopVerdict
	case p.spent.Millis >= b.Millis:
		return StopTime
	case b.Tokens > 0 && p.spent.Tokens+tokens+p.bound(v) > b.Tokens:
		return StopTokens
	}
	return ""
}
