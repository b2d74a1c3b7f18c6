// SPDX-License-Identifier: Apache-2.0

package deep

import "math"

// exps are the exponentials of -i/256.
var exps = func() (t [4096]float32) {
	for i := range t {
		t[i] = float32(math.Exp(-float64(i) / 256))
	}
	return t
}()

// attend reads queries, keys and values of n places from w.wide and writes what the heads
// put out to w.together.
func (m *Model) attend(w *work, n int) {
	most := places(n)
	for h := range m.width / headWidth {
		var scale [3]float32
		for part := range 3 {
			scale[part] = m.part(w, part, h, n, most)
		}
		dot(w.sums, w.heads[0], w.heads[1], n+n&1, most, headWidth)
		w.soften(n, most, scale[0]*scale[1]/float32(math.Sqrt(headWidth)))
		dot(w.sums, w.chances, w.heads[2], n+n&1, headWidth, most)
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
func (m *Model) part(w *work, part, head, n, most int) float32 {
	dst := w.heads[part][:most*headWidth]
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
			dst[i*most+t] = int16(nearest(float32(v * inv)))
		}
	}
	return largest / top
}

// soften makes chances of the sums of each row, whose sum is w.total.
func (w *work) soften(n, most int, scale float32) {
	step := scale * 256
	if !(step >= 0 && step <= math.MaxFloat32) {
		step = 0
	}
	for t := range n {
		sums, out := w.sums[t*most:][:n], w.chances[t*most:][:most]
		high := sums[0]
		for _, s := range sums {
			high = max(high, s)
		}
		var sum float32
		for i, s := range sums {
			d := float32(high-s) * step
			var e float32
			if d < float32(len(exps)-1) {
				e = exps[int(d)]
			}
			w.soft[i] = e
			sum += e
		}
		inv := chance / sum
		total := int32(0)
		for i, e := range w.soft[:n] {
			c := nearest(float32(e * inv))
			out[i] = int16(c)
			total += c
		}
		clear(out[n:])
		w.total[t] = total
	}
	if n&1 == 1 {
		clear(w.chances[n*most:][:most])
	}
}
