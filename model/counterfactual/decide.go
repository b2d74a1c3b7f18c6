// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"slices"
)

// conclusion is what follows from the memory at one moment.
type conclusion struct {
	need     []Probe // to be asked before more follows; none: nothing is left
	stop     StopReason
	verdicts []Attribution
	withheld Set
	repair   *Repair
}

// search is one run of the decision over the memory of a plan.
type search struct {
	*Plan
	c      *conclusion
	closed bool // nothing more will be asked
	rule   Rule
	tokens int64             // of c.need
	wanted map[question]bool // those of c.need
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
	s := &search{Plan: p, c: &conclusion{}, closed: closed, rule: p.problem.Rule, wanted: map[question]bool{}, all: AllOf(len(p.problem.Segments))}
	if p.drift {
		s.rule = s.rule.stricter(uncalibratedRule)
	}
	s.c.verdicts = make([]Attribution, len(p.problem.Targets))
	for t := range s.c.verdicts {
		s.c.verdicts[t] = Attribution{Target: t, Class: Inconclusive}
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
	q := s.question(v, replicate)
	if s.wanted[q] {
		return // in a small context two variants may show the same
	}
	if why := s.afford(v, purpose, len(s.c.need), s.tokens); why != "" {
		panic(denied{why})
	}
	if s.closed {
		panic(denied{cmp.Or(s.stop, StopOpen)})
	}
	s.wanted[q] = true
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
		case o.Failure == FailNone && o.Recurrences[t].Recurs:
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
		case o.Recurrences[t].Recurs:
			c.positives++
			c.sum += s.rule.Positive
		default:
			c.negatives++
			c.sum += s.rule.Negative
		}
	}
	return c
}

// classify asks the attribution's questions of one target.
func (s *search) classify(v *Attribution) {
	n := len(s.problem.Segments)
	t := v.Target
	if v.Class = cmp.Or(s.problem.Known, Inconclusive); v.Class != Inconclusive {
		v.LogE = s.rule.Accept
		return
	}
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
			out = append(out, o.Recurrences[t].Tampered...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
