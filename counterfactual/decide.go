package counterfactual

import (
	"cmp"
	"slices"
)

// conclusion is what follows from the memory at one moment.
type conclusion struct {
	need     []Probe // to be asked before more follows; none: nothing is left
	stop     StopReason
	verdicts []Verdict
	withheld Set
	repair   *Repair
}

// search is one run of the decision over the memory of a plan.
type search struct {
	*Plan
	c      *conclusion
	closed bool // nothing more will be asked
	rule   Rule
	tokens int64 // of c.need
	all    Set
}

// A run of the decision ends early in two ways, as panics with these values:
// blocked ends it at a question whose answer is to come, denied ends one phase of
// it at a question that may not be asked.
type (
	blocked struct{}
	denied  struct{ why StopReason }
)

// step is the conclusion from what is known now.
func (p *Plan) step() *conclusion {
	if p.last == nil {
		p.last = p.decide(p.stop != "")
		p.ready = p.last.need
	}
	return p.last
}

func (p *Plan) decide(closed bool) *conclusion {
	s := &search{Plan: p, c: &conclusion{}, closed: closed, rule: p.problem.Rule, all: AllOf(len(p.problem.Segments))}
	if p.drift {
		s.rule = s.rule.stricter(uncalibratedRule)
	}
	s.c.verdicts = make([]Verdict, len(p.problem.Targets))
	for t := range s.c.verdicts {
		s.c.verdicts[t] = Verdict{Target: t, Class: Inconclusive}
	}
	s.unlessBlocked(func() {
		for t := range s.c.verdicts {
			s.classify(&s.c.verdicts[t])
		}
		for t := range s.c.verdicts {
			s.locate(&s.c.verdicts[t])
		}
		s.certifyTogether()
		for t := range s.c.verdicts {
			s.refine(&s.c.verdicts[t])
		}
		s.leaveOneOut()
		s.everything()
	})
	if closed {
		s.settle()
	}
	return s.c
}

func (s *search) unlessBlocked(f func()) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(blocked); !ok {
				panic(r)
			}
		}
	}()
	f()
}

// phase runs f and returns why it was cut short; "" if it was not.
func (s *search) phase(f func()) (why StopReason) {
	defer func() {
		if r := recover(); r != nil {
			d, ok := r.(denied)
			if !ok {
				panic(r)
			}
			why = d.why
			s.c.stop = cmp.Or(s.c.stop, why)
		}
	}()
	f()
	return ""
}

// known is the answer to a question, if there is one.
func (s *search) known(v Variant, replicate int) (o *Observation, out bool) {
	e := s.memo[s.question(v, replicate)]
	if e == nil {
		return nil, false
	}
	return e.obs, e.obs == nil
}

// ask is the answer to a question; it does not return without one.
func (s *search) ask(v Variant, replicate int, purpose Purpose) *Observation {
	o, _ := s.known(v, replicate)
	if o == nil {
		s.want(v, replicate, purpose)
		panic(blocked{})
	}
	return o
}

// want notes a question to be asked, if it may be.
func (s *search) want(v Variant, replicate int, purpose Purpose) {
	if _, out := s.known(v, replicate); out && !s.closed {
		return
	}
	if why := s.afford(v, purpose, len(s.c.need), s.tokens); why != "" {
		panic(denied{why})
	}
	if s.closed {
		panic(denied{cmp.Or(s.stop, StopOpen)})
	}
	v.Kept = shown(v.Kept, s.parent)
	pr := Probe{Variant: v, Replicate: replicate, Purpose: purpose, Tokens: s.bound(v)}
	s.c.need = append(s.c.need, pr)
	s.tokens += pr.Tokens
}

// effort says how many negative answers a test takes for "no" before the rule
// has decided.
type effort int

const thorough effort = maxReplicates

// test decides whether target t recurs in v. Below thorough, a "no" is a guess
// that a later positive test has to bear out.
func (s *search) test(t int, v Variant, e effort, purpose Purpose) bool {
	_, yes := s.decided(t, v, e, 0, purpose)
	return yes
}

// decided is test after no fewer than least answers, with what they were.
func (s *search) decided(t int, v Variant, e effort, least int, purpose Purpose) (a told, yes bool) {
	for a.positives+a.negatives < max(maxReplicates, least) {
		s.next(&a, t, v, purpose)
		sum := a.sum(s.rule)
		switch {
		case a.positives+a.negatives < least:
		case sum >= s.rule.Accept:
			return a, true
		case sum <= s.rule.Reject, a.positives == 0 && effort(a.negatives) >= e:
			return a, false
		}
	}
	return a, a.sum(s.rule) > 0
}

// next adds one more answer about v to a, and reports what it says. Two that fail
// end the phase.
func (s *search) next(a *told, t int, v Variant, purpose Purpose) (recurs bool) {
	for {
		o := s.ask(v, a.next, purpose)
		a.next++
		switch {
		case o.Failure == FailNone && o.Outcomes[t].Recurs:
			a.positives++
			return true
		case o.Failure == FailNone:
			a.negatives++
			return false
		case a.failures > 0:
			panic(denied{StopFailures})
		}
		a.failures++
	}
}

// tally is what the memory holds of target t in v, without asking.
type tally struct {
	positives, negatives int
	sum                  int
}

func (s *search) tally(t int, v Variant) (c tally) {
	for r := range maxReplicates + 2 {
		o, _ := s.known(v, r)
		switch {
		case o == nil:
			return c
		case o.Failure != FailNone:
		case o.Outcomes[t].Recurs:
			c.positives++
			c.sum += s.rule.Positive
		default:
			c.negatives++
			c.sum += s.rule.Negative
		}
	}
	return c
}

// classify asks the verdict's questions of one target.
func (s *search) classify(v *Verdict) {
	n := len(s.problem.Segments)
	t := v.Target
	why := s.phase(func() {
		none := KeepOnly("")
		if s.test(t, none, thorough, PurposeVerdict) {
			v.Class, v.LogE = UserDriven, s.tally(t, none).sum
			return
		}
		v.LogE = -s.tally(t, none).sum
		if v.Arguments = s.tampered(t, none); len(v.Arguments) > 0 {
			v.Class = Hijack
			return
		}
		mask := MaskUser(n)
		if s.test(t, mask, thorough, PurposeVerdict) {
			v.Class, v.LogE = Hijack, min(v.LogE, s.tally(t, mask).sum)
			return
		}
		weak := Attenuate(n, s.all, s.problem.Level)
		if s.test(t, weak, thorough, PurposeVerdict) {
			v.Class, v.LogE = DataDependent, min(v.LogE, s.tally(t, weak).sum)
			return
		}
		v.Class, v.LogE = Conditional, min(v.LogE, -s.tally(t, weak).sum)
	})
	if why != "" {
		v.Class, v.LogE = Inconclusive, 0
		v.miss("verdict")
	}
}

// tampered are the arguments that the answers without untrusted text give as the
// user did, where the target has something else.
func (s *search) tampered(t int, v Variant) []string {
	var out []string
	for r := range maxReplicates + 2 {
		o, _ := s.known(v, r)
		if o == nil {
			break
		}
		if o.Failure == FailNone {
			out = append(out, o.Outcomes[t].Tampered...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// locate finds every sufficient core, one after the other, until the action no
// longer recurs without what was found.
func (s *search) locate(v *Verdict) {
	if v.Class != Hijack && v.Class != Conditional {
		return
	}
	var gone Set
	h := &hunt{search: s, t: v.Target, asked: map[Set]*told{}}
	h.asked[s.all] = &told{positives: 1} // the answer that proposed it
	why := s.phase(func() {
		for {
			rest := s.without(gone)
			if v.Causes != nil {
				a, yes := s.decided(v.Target, rest, thorough, 0, PurposeCertify)
				if !yes {
					v.certify(rest.Kept, s.tally(v.Target, rest))
					return
				}
				h.asked[rest.Kept] = &a
			}
			if len(v.Causes) >= s.problem.MaxCauses {
				v.miss("redundancy")
				return
			}
			h.gone = gone
			core := h.find(nil, s.pool(gone))
			if core == nil {
				if v.Causes != nil && s.slipped(v.Target, rest) {
					v.certify(rest.Kept, s.tally(v.Target, rest))
					return
				}
				v.Contradictory = true
				v.miss("localisation")
				return
			}
			c := s.cause(v.Target, s.minimise(v.Target, core))
			gone = gone.Union(c.Segments)
			v.Causes = append(v.Causes, c)
		}
	})
	switch {
	case why == "":
	case v.Causes == nil:
		v.miss("localisation")
	default:
		v.miss("certificate")
	}
}

// slipped reports whether target t vanishes in v after all, by every answer there is:
// where nothing else causes it, those that said it recurs were a slip.
func (s *search) slipped(t int, v Variant) bool {
	c := s.tally(t, v)
	_, yes := s.decided(t, v, thorough, c.positives+c.negatives, PurposeCertify)
	return !yes
}

func (s *search) cause(t int, core []int) Cause {
	kept := s.keep(core)
	c := Cause{LogE: s.tally(t, KeepOnly(kept)).sum}
	for _, u := range core {
		c.Segments = c.Segments.Union(s.units[u])
	}
	c.Carriers = s.descendants(c.Segments)
	return c
}

// without is the variant that withholds group and what came of it.
func (s *search) without(group Set) Variant {
	return Variant{Kind: KindRemove, Kept: shown(s.all.Minus(group), s.parent)}
}

func (s *search) descendants(group Set) Set {
	return s.all.Minus(group).Minus(shown(s.all.Minus(group), s.parent))
}

// keep is the segments of the units, with all that they came of: else they would
// not be shown.
func (s *search) keep(units ...[]int) Set {
	var b setBuilder
	add := func(set Set) {
		for len(b) < len(set) {
			b = append(b, 0)
		}
		for i := range len(set) {
			b[i] |= set[i]
		}
	}
	for _, list := range units {
		for _, u := range list {
			add(s.units[u])
			if s.parent != nil {
				for i := range s.units[u].Places() {
					add(s.parent[i])
				}
			}
		}
	}
	return b.set()
}

// pool is the units that are left, copies of what is gone first.
func (s *search) pool(gone Set) []int {
	var twins setBuilder
	for i := range gone.Places() {
		for _, j := range s.problem.Segments[i].Twins {
			twins.add(j)
		}
	}
	copies := twins.set()
	var first, rest []int
	for u, set := range s.units {
		switch {
		case gone.Meets(set):
		case set.Meets(copies):
			first = append(first, u)
		default:
			rest = append(rest, u)
		}
	}
	return append(first, rest...)
}

// minimise drops what a core does not need: first all that was shown only because
// other segments came of it, or those others, then one by one.
func (s *search) minimise(t int, core []int) []int {
	if up := s.ancestorUnits(core); len(up) > 0 && s.test(t, KeepOnly(s.keep(up)), thorough, PurposeLocate) {
		core = up
	}
	for i := 0; i < len(core) && len(core) > 1; {
		fewer := slices.Concat(core[:i], core[i+1:])
		if s.test(t, KeepOnly(s.keep(fewer)), thorough, PurposeLocate) {
			core = fewer
		} else {
			i++
		}
	}
	return core
}

// ancestorUnits are the units that core came of, without core.
func (s *search) ancestorUnits(core []int) []int {
	if s.parent == nil {
		return nil
	}
	var own Set
	for _, u := range core {
		own = own.Union(s.units[u])
	}
	up := s.keep(core).Minus(own)
	var out []int
	for u, set := range s.units {
		if up.Contains(set) {
			out = append(out, u)
		}
	}
	return out
}
