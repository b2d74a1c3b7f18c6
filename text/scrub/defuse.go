// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"unicode/utf8"
)

// A rewrite says what stands in the place of a part of the text; with "", a removal.
type rewrite struct {
	start, end int
	with       string
	class      Class
}

// defuse makes every token that m found in plain spelling a form of level 1, removes what m
// cuts and, if asked, raises every form by one level. It returns how many of all these there
// were. spec: scrub/4.8
func (p *pass) defuse(m *matcher, raises bool) (n int) {
	s := p.text
	var all []rewrite
	for _, e := range m.cuts {
		all = append(all, rewrite{e.Start, e.End, "", e.Class})
	}
	// Marks go before brackets: what one of them stands in is no form any more.
	for _, e := range m.plain {
		if _, ok := m.table.plainForm(s, e.Start); !ok {
			_, w := utf8.DecodeLastRuneInString(s[:e.End])
			all = append(all, rewrite{e.End - w, e.End - w, defuseMark, e.Class})
		}
	}
	raises = raises && holdsForm(s)
	if raises {
		m.table.eachMark(s, func(start, _ int) { all = append(all, rewrite{start, start, defuseMark, RoleMarker}) })
	}
	before := slices.Clone(all)
	slices.SortFunc(before, func(a, b rewrite) int { return a.start - b.start })
	add := func(f *form, c Class) bool {
		start, end, with := f.raise(s)
		k, _ := slices.BinarySearchFunc(before, start, func(r rewrite, at int) int { return r.end - at - 1 })
		if k < len(before) && before[k].start < max(end, f.to) {
			return false
		}
		all = append(all, rewrite{start, end, with, c})
		return true
	}
	for _, e := range m.plain {
		if f, ok := m.table.plainForm(s, e.Start); ok {
			p.again = !add(&f, e.Class) || p.again
		}
	}
	if raises {
		m.table.eachForm(s, func(f form) { add(&f, ControlToken) })
	}
	slices.SortStableFunc(all, func(a, b rewrite) int { return a.start - b.start })
	done := 0
	for i, r := range all {
		if r.start >= done && (i == 0 || r.end > r.start || all[i-1] != r) {
			p.r.ed.replace(r.start, r.end, r.with, r.class)
			done = r.end
			n++
		}
	}
	return n
}
