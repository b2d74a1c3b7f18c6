// SPDX-License-Identifier: Apache-2.0

package counterfactual

import "slices"

// A hunt looks for the causes of one target, one core after the other, by asking
// where the answer is least certain.
type hunt struct {
	*search
	t     int
	gone  Set           // what was found
	asked map[Set]*told // by what was shown
}

// told is what the answers about one set have said, in a hunt. The memory may hold
// more; it is not looked at, so that what was concluded does not change by what is
// asked afterwards.
type told struct {
	positives, negatives int
	failures             int
	next                 int // replicate
}

// find is a set of units out of pool with core that suffices; nil if not found
// to be found.
func (h *hunt) find(core, pool []int) []int {
	p := newPosterior(len(pool))
	h.recall(p, core, pool)
	for {
		b := p.belief()
		switch {
		case b.place == 0 || sure(b.none, b.total):
			return nil
		case 2*(b.alone+b.joint) > b.total && b.alone >= b.joint:
			with := append(slices.Clone(core), pool[b.place-1])
			if h.asked[h.keep(with)].sum(h.rule) >= h.rule.Accept {
				return with
			}
			w, ok := h.ask(with)
			if !ok {
				return nil
			}
			p.unit(b.place, w)
		case sure(b.alone+b.joint, b.total):
			if len(core)+1 < maxCore {
				if found := h.find(append(slices.Clone(core), pool[b.place-1]), pool[:b.place-1]); found != nil {
					return found
				}
			}
			p.refute(b.place)
		default:
			w, ok := h.ask(core, pool[:b.median])
			if !ok {
				return nil
			}
			p.prefix(b.median, w)
		}
	}
}

func sure(part, total uint64) bool { return part >= total-total/10 }

// ask is the weight of one more answer about what the units show; false if there
// were enough of them.
func (h *hunt) ask(units ...[]int) (int, bool) {
	kept := h.keep(units...)
	a := h.asked[kept]
	if a == nil {
		a = &told{}
		h.asked[kept] = a
	}
	switch {
	case a.positives+a.negatives >= maxReplicates:
		return 0, false
	case h.next(a, h.t, KeepOnly(kept), PurposeLocate):
		return h.rule.Positive, true
	}
	return h.rule.Negative, true
}

func (a *told) sum(r Rule) int {
	if a == nil {
		return 0
	}
	return a.positives*r.Positive + a.negatives*r.Negative
}

// recall tells p what was asked before.
func (h *hunt) recall(p *posterior, core, pool []int) {
	known := h.keep(core)
	for kept, a := range h.asked {
		if kept.Meets(h.gone) || !kept.Contains(known) {
			continue
		}
		w, prefix := a.sum(h.rule), true
		for k, u := range pool {
			shown := h.shows(kept, u)
			prefix = prefix && shown
			if shown {
				p.alone[k] += w
			}
			if prefix {
				p.joint[k] += w
			}
		}
	}
}

// shows reports whether a set holds a unit and all that it came of.
func (h *hunt) shows(kept Set, unit int) bool {
	for _, i := range h.members[unit] {
		if !kept.Has(i) || h.parent != nil && !kept.Contains(h.parent[i]) {
			return false
		}
	}
	return true
}
