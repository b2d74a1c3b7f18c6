// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"math"
	"sync"
)

// headWidth is the width of one head of attention.
const headWidth = 32

// Activations are rounded to the integers of -top to top: 12 bits, so that a sum of 2048
// products with a weight of 8 bits fits 32.
const top = 2047

// Windows is the number of windows of a text that are looked at, at most.
const Windows = 64

// Logit is that of the worst window of a text, of its first [Windows] windows. The text
// should be the normalised view.
func (m *Model) Logit(text string) float32 {
	w := m.borrow()
	defer m.giveBack(w)
	w.ids, _ = m.vocabulary.Cut(w.ids[:0], text, m.window+(Windows-1)*m.stride)
	return m.logit(w, w.ids)
}

func (m *Model) logit(w *work, ids []int32) float32 {
	best := m.judge(w, ids[:min(len(ids), m.window)])
	for at := m.stride; at+m.window-m.stride < len(ids); at += m.stride {
		from := min(at, len(ids)-m.window) // the last one reaches the end
		best = max(best, m.judge(w, ids[from:from+m.window]))
	}
	return best
}

// A work is the memory of one look.
type work struct {
	ids      []int32
	x        []float32 // the state of each place
	wide     []float32 // what a matrix puts out
	row      []float32 // one row, on its way to integers
	q        []int16   // what a matrix is given
	scale    []float32 // of each row of q
	sums     []int32
	heads    [3][]int16 // of one head: query, key, value (turned)
	chances  []int16
	total    []int32
	together []float32 // what the heads put out
}

// places is the length of a row of attention for so many places, and rows the number of rows that
// are computed: multiples of what the kernels take at a time.
func places(n int) int { return (n + 15) &^ 15 }
func rows(n int) int   { return (n + 1) &^ 1 }

var pools sync.Map // of works, by shape

func (m *Model) borrow() *work {
	p, _ := pools.LoadOrStore(m.shape, &sync.Pool{})
	if w, ok := p.(*sync.Pool).Get().(*work); ok {
		return w
	}
	t := places(m.window + 2)
	widest := max(3*m.width, m.inner)
	w := &work{x: make([]float32, t*m.width), wide: make([]float32, t*widest), row: make([]float32, m.width),
		q: make([]int16, t*max(m.width, m.inner)), scale: make([]float32, t), sums: make([]int32, t*max(widest, t)),
		chances: make([]int16, t*t), total: make([]int32, t), together: make([]float32, t*m.width)}
	for i := range w.heads {
		w.heads[i] = make([]int16, t*headWidth)
	}
	return w
}

func (m *Model) giveBack(w *work) {
	if p, ok := pools.Load(m.shape); ok {
		p.(*sync.Pool).Put(w)
	}
}

// judge is the logit of one window.
func (m *Model) judge(w *work, ids []int32) float32 {
	n := len(ids) + 2
	m.embed(w, 0, Begin)
	for i, id := range ids {
		m.embed(w, i+1, id)
	}
	m.embed(w, n-1, End)
	for i := range m.layers {
		l := &m.layers[i]
		l.before.rows(w, n, m.width)
		l.qkv.times(w, n)
		m.attend(w, n)
		integers(w, w.together, n, m.width)
		l.out.times(w, n)
		add(w.x[:n*m.width], w.wide)
		l.between.rows(w, n, m.width)
		l.up.times(w, n)
		ramp(w.wide[:n*m.inner])
		integers(w, w.wide, n, m.inner)
		l.down.times(w, n)
		add(w.x[:n*m.width], w.wide)
	}
	return m.conclude(w, n)
}

// embed puts the vector of a piece at a place.
func (m *Model) embed(w *work, at int, id int32) {
	v := m.vectors[int(id)*m.width:][:m.width]
	place := m.place[at*m.width:][:m.width]
	x := w.x[at*m.width:][:m.width]
	s := m.scales[id]
	for i := range x {
		x[i] = float32(float32(v[i])*s) + place[i]
	}
}

// conclude takes the mean and the most of the states through the head.
func (m *Model) conclude(w *work, n int) float32 {
	mean, most := w.together[:m.width], w.together[m.width:2*m.width]
	for i := range mean {
		mean[i], most[i] = 0, -math.MaxFloat32
	}
	for t := range n {
		m.last.of(w.row, w.x[t*m.width:][:m.width])
		for i, x := range w.row {
			mean[i] += x
			most[i] = max(most[i], x)
		}
	}
	sum := m.bias
	for i := range mean {
		sum += float32(m.head[i] * (mean[i] / float32(n)))
		sum += float32(m.head[m.width+i] * most[i])
	}
	return sum
}

// of writes the normalised x to dst.
func (g *norm) of(dst, x []float32) {
	var sum, squares float32
	for _, v := range x {
		sum += v
	}
	mean := sum / float32(len(x))
	for _, v := range x {
		d := v - mean
		squares += float32(d * d)
	}
	inv := 1 / float32(math.Sqrt(float64(squares/float32(len(x))+1e-5)))
	for i, v := range x {
		dst[i] = float32(float32((v-mean)*inv)*g.gain[i]) + g.bias[i]
	}
}

// rows normalises the states and rounds them.
func (g *norm) rows(w *work, n, width int) {
	for t := range n {
		g.of(w.row, w.x[t*width:][:width])
		w.scale[t] = round(w.q[t*width:][:width], w.row)
	}
	clear(w.q[n*width : rows(n)*width])
}

// integers rounds rows for the next matrix.
func integers(w *work, x []float32, n, width int) {
	for t := range n {
		w.scale[t] = round(w.q[t*width:][:width], x[t*width:][:width])
	}
	clear(w.q[n*width : rows(n)*width])
}

// half added to a number of less than 2^22 leaves its nearest integer in the low bits.
const half = 3 << 22

// nearest is the nearest integer to x, which is small.
func nearest(x float32) int32 { return int32(math.Float32bits(x+half)) - int32(0x4b400000) }

// round writes x to dst as integers of -top to top, and returns what one of them stands for.
func round(dst []int16, x []float32) float32 {
	most := largestOf(x)
	if !(most > 0 && most <= math.MaxFloat32) {
		clear(dst)
		return most // 0, or what makes the logit no number
	}
	inv := top / most
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = int16(nearest(float32(v * inv)))
	}
	return most / top
}

// largestOf is the largest number of x without its sign. Without it, the bits of two numbers
// are in the order of the numbers; those of an endless one and of one that is no number come last.
func largestOf(x []float32) float32 {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}

// times multiplies the first n rows of w.q and leaves the rows in w.wide.
func (a *matrix) times(w *work, n int) {
	dot(w.sums, w.q, a.weights, rows(n), a.rows, a.cols)
	for t := range n {
		s := w.scale[t]
		out, sums := w.wide[t*a.rows:][:a.rows], w.sums[t*a.rows:][:a.rows]
		scales, bias := a.scales[:len(out)], a.bias[:len(out)]
		for i := range out {
			out[i] = float32(float32(float32(sums[i])*s)*scales[i]) + bias[i]
		}
	}
}

func add(x, y []float32) {
	y = y[:len(x)]
	for i := range x {
		x[i] += y[i]
	}
}

func ramp(x []float32) {
	for i, v := range x {
		b := math.Float32bits(v)
		x[i] = math.Float32frombits(b &^ uint32(int32(b)>>31)) // 0 where the sign is set
	}
}
