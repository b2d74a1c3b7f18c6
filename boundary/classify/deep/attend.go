// SPDX-License-Identifier: Apache-2.0

package deep

import "math"

// headWidth is the width of one head of attention.
const headWidth = widest

// attend reads queries, keys and values of the n places of a window from w.wide, whose row from is
// the first of them, and writes what the heads put out to the same rows of w.mixed.
func (m *Model) attend(w *work, from, n int) {
	wide := up(n, widest)
	for h := range m.Heads {
		var unit [3]float32
		for part := range 3 {
			unit[part] = m.part(w, part, h, from, n, wide)
		}
		w.numbers(w.sums, w.heads[0], w.heads[1], n, wide, headWidth)
		w.allSoften(n, wide, unit[0]*unit[1]/float32(math.Sqrt(headWidth)))
		w.numbers(w.sums, w.chance, w.heads[2], n, headWidth, wide)
		for t := range n {
			s := unit[2] / float32(w.total[t])
			out := w.mixed[(from+t)*m.Width+h*headWidth:][:headWidth]
			w.widen(out, w.sums[t*headWidth:], m.ones, m.zeros, s)
		}
	}
}

// part rounds the queries (0), keys (1) or values (2) of a head to integers, and returns
// what one of them stands for. Keys become panels with a column for each place, values one
// with a column for each number; what stands beyond the last place is 0.
func (m *Model) part(w *work, part, head, from, n, wide int) float32 {
	dst := w.heads[part]
	src := w.wide[from*3*m.Width+part*m.Width+head*headWidth:]
	var largest float32
	for t := range n {
		largest = max(largest, w.largest(src[t*3*m.Width:][:headWidth]))
	}
	unit, by := unitOf(largest)
	if part == 0 {
		for t := range n {
			w.nearest(dst[t*headWidth:][:headWidth], src[t*3*m.Width:][:headWidth], by)
		}
		return unit
	}
	clear(dst)
	for t := range n {
		w.nearest(w.turned, src[t*3*m.Width:][:headWidth], by)
		if part == 1 {
			column := dst[t/panelWidth*panelWidth*headWidth+t%panelWidth*2:]
			for i := 0; i < headWidth; i += 2 {
				column[i*panelWidth], column[i*panelWidth+1] = w.turned[i], w.turned[i+1]
			}
			continue
		}
		row := dst[t/2*2*panelWidth+t%2:]
		for i, v := range w.turned {
			row[i/panelWidth*panelWidth*wide+i%panelWidth*2] = v
		}
	}
	return unit
}

// allSoften makes chances of the sums of each place; w.total is what they are shares of.
func (w *work) allSoften(n, wide int, scale float32) {
	step := scale * math.Log2E
	if !(step >= 0 && step <= math.MaxFloat32) {
		step = 0
	}
	for t := range n {
		sums := w.sums[t*wide:][:wide]
		for i := n; i < wide; i++ {
			sums[i] = -1 << 30 // no place
		}
		w.total[t] = w.soften(w.chance[t*wide:][:wide], sums, step)
	}
}
