// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"context"
	"math"
	"slices"
	"sync"
)

// Activations are rounded to the integers of -top to top: 12 bits, so that a sum of 2048
// products with a weight of 8 bits fits 32.
const top = 2047

// batchPlaces bounds the places that go through a layer together: more would leave the cache
// of one core without being faster.
const batchPlaces = 200

// A work is the memory of one look.
type work struct {
	*kernel
	at     []int     // where each window begins, and where the last one ends
	x      []float32 // the state of each place
	wide   []float32 // what a matrix puts out
	q      []int16   // what a matrix is given
	unit   []float32 // what one of each row of q stands for
	sums   []int32
	mixed  []float32  // what the heads put out
	heads  [3][]int16 // of one head and window: query, key, value; the last two as panels
	turned []int16    // a row on its way to them
	chance []int16
	total  []int32 // of the chances of each place
}

// up is n as a multiple of what is computed at a time.
func up(n, of int) int { return (n + of - 1) / of * of }

// rowSlack is more rows than any kernel computes beyond those that count.
const rowSlack = 16

// pool has the memory of looks that have ended.
var pool sync.Pool

func (m *Model) borrow(k *kernel) *work {
	w, ok := pool.Get().(*work)
	if !ok || len(w.x) != (batchPlaces+rowSlack)*m.Width || len(w.wide) != (batchPlaces+rowSlack)*m.widest() {
		t, one := batchPlaces+rowSlack, up(m.Window+2, widest)
		w = &work{x: make([]float32, t*m.Width), wide: make([]float32, t*m.widest()), q: make([]int16, t*m.widest()),
			unit: make([]float32, t), mixed: make([]float32, t*m.Width), sums: make([]int32, t*m.widest()), turned: make([]int16, headWidth),
			chance: make([]int16, (one+rowSlack)*one), total: make([]int32, one)}
		w.heads = [3][]int16{make([]int16, (one+rowSlack)*headWidth), make([]int16, one*headWidth), make([]int16, one*headWidth)}
	}
	w.kernel = k
	return w
}

func (m *Model) widest() int { return max(3*m.Width, m.Inner) }

// Logit is that of the worst window of a text, which should be the normalised view, however many there are.
func (m *Model) Logit(ctx context.Context, text string) (float32, error) {
	return m.logit(ctx, best, text)
}

func (m *Model) logit(ctx context.Context, k *kernel, text string) (float32, error) {
	var windows [][]int32
	m.vocabulary.windows(text, m.Window, m.Stride, func(ids []int32, _, _ int) { windows = append(windows, slices.Clone(ids)) })
	found, err := m.logits(ctx, k, windows)
	if err != nil {
		return 0, err
	}
	return slices.Max(found), nil
}

// Logits judge windows of pieces, each of which has at most as many as a window. They end with ctx.
func (m *Model) Logits(ctx context.Context, windows [][]int32) ([]float32, error) {
	return m.logits(ctx, best, windows)
}

func (m *Model) logits(ctx context.Context, k *kernel, windows [][]int32) ([]float32, error) {
	w := m.borrow(k)
	defer pool.Put(w)
	out := make([]float32, 0, len(windows))
	for len(windows) > 0 {
		n, places := 0, 0
		for n < len(windows) && (n == 0 || places+len(windows[n])+2 <= batchPlaces) {
			places += len(windows[n]) + 2
			n++
		}
		var err error
		if out, err = m.judge(ctx, w, windows[:n], out); err != nil {
			return nil, err
		}
		windows = windows[n:]
	}
	return out, nil
}

// judge appends the logits of windows that fit one batch.
func (m *Model) judge(ctx context.Context, w *work, windows [][]int32, out []float32) ([]float32, error) {
	w.at = append(w.at[:0], 0)
	n := 0
	for _, ids := range windows {
		m.embed(w, n, 0, Begin)
		for i, id := range ids {
			m.embed(w, n+i+1, i+1, id)
		}
		m.embed(w, n+len(ids)+1, len(ids)+1, End)
		n += len(ids) + 2
		w.at = append(w.at, n)
	}
	for i := range m.layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := &m.layers[i]
		w.round(w.x, n, m.Width)
		w.times(&l.qkv, n)
		for j := range windows {
			m.attend(w, w.at[j], w.at[j+1]-w.at[j])
		}
		w.round(w.mixed, n, m.Width)
		w.times(&l.out, n)
		w.settle(&l.norm1, n, m.Width)
		w.round(w.x, n, m.Width)
		w.times(&l.up, n)
		w.bend(w.wide[:n*m.Inner])
		w.round(w.wide, n, m.Inner)
		w.times(&l.down, n)
		w.settle(&l.norm2, n, m.Width)
	}
	for j := range windows {
		out = append(out, m.conclude(w.x[w.at[j]*m.Width:w.at[j+1]*m.Width]))
	}
	return out, nil
}

// embed puts the vector of a piece at a row and place.
func (m *Model) embed(w *work, row, place int, id int32) {
	v := m.vectors[int(id)*m.Width:][:m.Width]
	at := m.place[place*m.Width:][:m.Width]
	x := w.x[row*m.Width:][:m.Width]
	s := m.scales[id]
	for i := range x {
		x[i] = float32(float32(int8(v[i]))*s) + at[i]
	}
	w.norm(x, m.first.gain, m.first.bias)
}

// conclude takes the mean and the most of the states of a window through the head.
func (m *Model) conclude(x []float32) float32 {
	n := float32(len(x) / m.Width)
	sum := m.bias
	for i := range m.Width {
		mean, most := float32(0), float32(-math.MaxFloat32)
		for t := i; t < len(x); t += m.Width {
			mean += x[t]
			most = max(most, x[t])
		}
		sum += float32(m.head[i] * (mean / n))
		sum += float32(m.head[m.Width+i] * most)
	}
	return sum
}

// unitOf is what one of the integers stands for that numbers of at most largest are rounded to, and what
// they are multiplied with for that.
func unitOf(largest float32) (unit, by float32) {
	if !(largest > 0 && largest <= math.MaxFloat32) {
		return largest, 0 // 0, or what makes the logit no number
	}
	return largest / top, top / largest
}

// round rounds n rows of x for the next matrix.
func (w *work) round(x []float32, n, width int) {
	for t := range n {
		row := x[t*width:][:width]
		var by float32
		w.unit[t], by = unitOf(w.largest(row))
		w.nearest(w.q[t*width:][:width], row, by)
	}
}

// times multiplies the first n rows of w.q and leaves the rows in w.wide.
func (w *work) times(a *matrix, n int) {
	w.weights(w.sums, w.q, a.weights, n, a.rows, a.cols)
	for t := range n {
		w.widen(w.wide[t*a.rows:][:a.rows], w.sums[t*a.rows:][:a.rows], a.scales, a.bias, w.unit[t])
	}
}

// settle adds what a matrix has put out to the states and norms them.
func (w *work) settle(g *norm, n, width int) {
	w.add(w.x[:n*width], w.wide[:n*width])
	for t := range n {
		w.norm(w.x[t*width:][:width], g.gain, g.bias)
	}
}
