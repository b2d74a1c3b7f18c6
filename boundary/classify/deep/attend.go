// SPDX-License-Identifier: Apache-2.0

package deep

import "math"

// most is the chance of the place that a row of attention looks at most: 12 bits, so that a sum of
// products of 256 chances with numbers of 12 bits fits 32.
const most = 4095

// chances are most times the exponentials of -i/256.
var chances = func() (t [4096]int16) {
	for i := range t {
		t[i] = int16(math.Round(most * math.Exp(-float64(i)/256)))
	}
	return t
}()

// attend reads queries, keys and values of n places from w.wide and writes what the heads
// put out to w.together.
func (m *Model) attend(w *work, n int) {
	wide := places(n)
	for h := range m.width / headWidth {
		var scale [3]float32
		for part := range 3 {
			scale[part] = m.part(w, part, h, n, wide)
		}
		dot(w.sums, w.heads[0], w.heads[1], rows(n), wide, headWidth)
		w.soften(n, wide, scale[0]*scale[1]/float32(math.Sqrt(headWidth)))
		dot(w.sums, w.chances, w.heads[2], rows(n), headWidth, wide)
		for t := range n {
			s := scale[2] / float32(w.total[t])
			out := w.together[t*m.width+h*headWidth:][:headWidth]
			sums := w.sums[t*headWidth:][:headWidth]
			for i := range out {
				out[i] = float32(sums[i]) * s
			}
		}
	}
}

// part rounds the queries (0), keys (1) or values (2) of a head to integers, and returns
// what one of them stands for. Values are turned: a row for each number, a column for each place.
func (m *Model) part(w *work, part, head, n, wide int) float32 {
	dst := w.heads[part][:wide*headWidth]
	at := part*m.width + head*headWidth
	var largest float32
	for t := range n {
		largest = max(largest, largestOf(w.wide[t*3*m.width+at:][:headWidth]))
	}
	clear(dst)
	if !(largest > 0 && largest <= math.MaxFloat32) {
		return largest
	}
	inv := top / largest
	for t := range n {
		src := w.wide[t*3*m.width+at:][:headWidth]
		if part < 2 {
			row := dst[t*headWidth:][:headWidth]
			for i, v := range src {
				row[i] = int16(nearest(float32(v * inv)))
			}
			continue
		}
		for i, v := range src {
			dst[i*wide+t] = int16(nearest(float32(v * inv)))
		}
	}
	return largest / top
}

// soften makes chances of the sums of each row; w.total is what they are shares of.
func (w *work) soften(n, wide int, scale float32) {
	step := scale * 256
	if !(step >= 0 && step <= math.MaxFloat32) {
		step = 0
	}
	for t := range n {
		sums, out := w.sums[t*wide:][:n], w.chances[t*wide:][:wide]
		high := sums[0]
		for _, s := range sums {
			high = max(high, s)
		}
		total := int32(0)
		for i, s := range sums {
			c := chances[int(min(float32(high-s)*step, float32(len(chances)-1)))]
			out[i] = c
			total += int32(c)
		}
		clear(out[n:])
		w.total[t] = total
	}
	clear(w.chances[n*wide : rows(n)*wide])
}
