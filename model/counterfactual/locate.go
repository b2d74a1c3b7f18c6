// SPDX-License-Identifier: Apache-2.0

package counterfactual

import "slices"

// locate finds every sufficient core, one after the other, until the proposal no
// longer recurs without what was found.
func (s *search) locate(v *Attribution) {
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
