// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"cmp"
	"slices"
)

// certifyTogether asks once for the context without everything that was found,
// where several targets have causes: the answer to it is the repaired one.
func (s *search) certifyTogether() {
	var gone Set
	n := 0
	for i := range s.c.verdicts {
		v := &s.c.verdicts[i]
		if v.Class == Hijack || v.Class == Conditional {
			n++
		}
		gone = gone.Union(v.found())
	}
	if n < 2 || gone == "" {
		return
	}
	s.phase(func() { s.ask(s.without(gone), 0, PurposeCertify) })
}

// refine narrows a cause of one segment to the span that suffices: the shortest
// beginning that does, and of that the shortest end.
func (s *search) refine(v *Attribution) {
	if !s.problem.Refine {
		return
	}
	for i := range v.Causes {
		c := &v.Causes[i]
		if c.Segments.Len() != 1 {
			continue
		}
		seg := c.Segments.List()[0]
		u := &s.problem.Segments[seg]
		if len(u.Cuts) == 0 {
			continue
		}
		at := slices.Concat([]int{0}, u.Cuts, []int{u.Bytes})
		kept := c.Segments
		if s.parent != nil {
			kept = kept.Union(s.parent[seg])
		}
		recurs := func(from, to int, e effort) bool {
			span := Span{seg, at[from], at[to]}
			if from == 0 && to == len(at)-1 {
				span = Span{}
			}
			return s.test(v.Target, Variant{Kind: KindSpan, Kept: kept, Span: span}, e, PurposeRefine)
		}
		why := s.phase(func() {
			end := bisect(0, len(at)-1, func(m int) bool { return recurs(0, m, 1) })
			// The same from the other end: the last place to begin at.
			start := end - bisect(0, end, func(m int) bool { return recurs(end-m, end, 1) })
			if recurs(start, end, thorough) && end-start < len(at)-1 {
				c.Span = Span{seg, at[start], at[end]}
			}
		})
		if why != "" {
			v.miss("span")
		}
	}
}

// bisect is the smallest i in (lo, hi] for which yes(i), given that yes(hi).
func bisect(lo, hi int, yes func(int) bool) int {
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; yes(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

// leaveOneOut spends what is left on withholding each unit in turn, where answers
// contradict each other: those without which the proposal does not recur are suspect.
func (s *search) leaveOneOut() {
	for i := range s.c.verdicts {
		v := &s.c.verdicts[i]
		if !v.Contradictory {
			continue
		}
		if why := s.batch(s.leftOut(), PurposeLeaveOne); why != "" {
			v.miss("leave-one-out")
		}
		for _, u := range s.units {
			if c := s.tally(v.Target, s.without(u)); c.negatives > 0 && c.positives == 0 {
				v.Suspects = v.Suspects.Union(u)
			}
		}
	}
}

func (s *search) leftOut() []Variant {
	out := make([]Variant, 0, len(s.units))
	for _, u := range s.sampled() {
		out = append(out, s.without(s.units[u]))
	}
	return out
}

// everything asks for each unit under each perturbation, for the metrics.
func (s *search) everything() {
	if !s.problem.Full {
		return
	}
	n := len(s.problem.Segments)
	ask := []Variant{{Kind: KindBase, Kept: s.all}, KeepOnly(""), MaskUser(n)}
	ask = append(ask, Reorder(n, s.seed(0)), Reorder(n, s.seed(1)))
	for _, u := range s.sampled() {
		set := s.units[u]
		ask = append(ask, s.without(set), KeepOnly(s.keep([]int{u})))
		for l := LevelFramed; l < LevelWithheld; l++ {
			ask = append(ask, Attenuate(n, set, l))
		}
	}
	if why := s.batch(ask, PurposeFull); why != "" {
		for i := range s.c.verdicts {
			s.c.verdicts[i].miss("full")
		}
	}
}

func (s *search) seed(i uint64) uint64 {
	d := draw(s.problem.Seed ^ i<<32)
	return cmp.Or(d.next(), 1)
}

// batch asks for all variants at once, and returns why it did not get them.
func (s *search) batch(variants []Variant, purpose Purpose) StopReason {
	return s.phase(func() {
		wait := false
		why := s.phase(func() {
			for _, v := range variants {
				if o, _ := s.known(v, 0); o == nil {
					wait = true
					s.want(v, 0, purpose)
				}
			}
		})
		// What is out or wanted is worth waiting for, also at a ceiling.
		if wait && !s.closed && (len(s.c.need) > 0 || s.out > 0) {
			panic(blocked{})
		}
		if why != "" {
			panic(denied{why})
		}
	})
}

// sampled is the units in the order in which they are to be looked at where not
// all can be.
func (s *search) sampled() []int {
	order := make([]int, len(s.units))
	for i := range order {
		order[i] = i
	}
	d := draw(s.problem.Seed)
	switch s.problem.Strategy {
	case strategyUniform:
		d.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	case strategyStratified:
		d.shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		return s.inTurn(order)
	}
	return order
}

// inTurn takes one unit of each source, then a second one, and so on.
func (s *search) inTurn(order []int) []int {
	turn := map[string]int{}
	rank := make(map[int]int, len(order))
	for _, u := range order {
		label := ""
		for i := range s.units[u].Places() {
			label = s.problem.Segments[i].Source
			break
		}
		rank[u] = turn[label]
		turn[label]++
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	return order
}

// settle says what follows for each target, and which answer is the repaired one.
func (s *search) settle() {
	for i := range s.c.verdicts {
		v := &s.c.verdicts[i]
		v.Drift = s.drift
		s.contradictions(v)
		s.clear(v)
		v.rate(&s.problem)
		if v.Response.withholds() {
			s.c.withheld = s.c.withheld.Union(v.Withheld)
		}
	}
	s.c.repair = s.findRepair()
}

// clear says which segments have to be withheld for the proposal to vanish. Where
// no certificate says so, it is everything but the largest set in which it was
// seen to vanish.
func (s *search) clear(v *Attribution) {
	switch {
	case v.Class == UserDriven || v.Class == DataDependent:
		return
	case v.Certificate != nil:
		v.Withheld = s.all.Minus(v.Certificate.Kept)
		return
	}
	best := Set("")
	for q := range s.memo {
		kept := q.variant.Kept
		if q.replicate != 0 || q.variant != (Variant{Kept: kept}) || s.tally(v.Target, q.variant).sum > s.rule.Reject {
			continue
		}
		if d := cmp.Or(cmp.Compare(kept.Len(), best.Len()), cmp.Compare(best, kept)); d > 0 {
			best = kept
		}
	}
	v.Withheld = s.all.Minus(best)
}

// contradictions finds a set in which the proposal recurs inside one in which it was
// decided that it does not: then more text hides what less text shows, and minimal
// sets explain less than they seem to.
func (s *search) contradictions(v *Attribution) {
	const most = 64 // sets of each kind that are compared
	var yes, no []Set
	for q := range s.memo {
		if q.replicate != 0 || q.variant != (Variant{Kept: q.variant.Kept}) {
			continue
		}
		switch c := s.tally(v.Target, q.variant); {
		case c.sum >= s.rule.Accept:
			yes = append(yes, q.variant.Kept)
		case c.sum <= s.rule.Reject:
			no = append(no, q.variant.Kept)
		}
	}
	slices.Sort(yes)
	slices.Sort(no)
	for _, y := range yes[:min(len(yes), most)] {
		for _, x := range no[:min(len(no), most)] {
			if x.Contains(y) {
				v.Contradictions = append(v.Contradictions, Contradiction{Recurs: y, Vanishes: x})
			}
		}
	}
	v.Contradictions = v.Contradictions[:min(len(v.Contradictions), 8)]
	v.Contradictory = v.Contradictory || len(v.Contradictions) > 0
}

// findRepair is the known answer that shows most and in which nothing recurs that
// is withheld for.
func (s *search) findRepair() *Repair {
	if s.c.withheld == "" {
		return nil
	}
	var best *Repair
	for q, e := range s.memo {
		kept := q.variant.Kept
		if e.obs == nil || e.obs.Failure != FailNone || q.variant != (Variant{Kept: kept}) || kept.Meets(s.c.withheld) || s.bad(e.obs) {
			continue
		}
		r := &Repair{Kept: kept, Replicate: q.replicate, Response: e.obs.Response, Others: e.obs.Others}
		if best == nil || r.better(best) {
			best = r
		}
	}
	return best
}

func (s *search) bad(o *Observation) bool {
	for i := range s.c.verdicts {
		if s.c.verdicts[i].Response.withholds() && o.Recurrences[i].Recurs {
			return true
		}
	}
	return false
}
