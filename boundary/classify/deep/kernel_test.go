// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestKernels: on random shapes and numbers, every kernel of this processor gives the bits of the plain one.
func TestKernels(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	floats := func(n int) []float32 {
		x := make([]float32, n)
		size := math.Exp2(float64(r.IntN(40) - 30))
		for i := range x {
			x[i] = float32(r.NormFloat64() * size)
		}
		return x
	}
	same := func(a, b []float32) bool {
		return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
	}
	for _, k := range kernels() {
		for range 200 {
			count, n, deep := 1+r.IntN(110), widest*(1+r.IntN(6)), 2*(1+r.IntN(1024))
			full := up(count, k.rows)
			a, weights, numbers := make([]int16, full*deep), make([]byte, n*deep), make([]int16, n*deep)
			for i := range a {
				a[i] = int16(r.IntN(2*top+1) - top)
			}
			for i := range weights {
				weights[i], numbers[i] = byte(r.UintN(256)), int16(r.IntN(511)-255)
			}
			got, want := make([]int32, full*n), make([]int32, count*n)
			k.weights(got, a, weights, count, n, deep)
			plain.weights(want, a, weights, count, n, deep)
			if !slices.Equal(got[:count*n], want) {
				t.Fatalf("%s: weights of %d × %d × %d differ", k.name, count, n, deep)
			}
			k.numbers(got, a, numbers, count, n, deep)
			plain.numbers(want, a, numbers, count, n, deep)
			if !slices.Equal(got[:count*n], want) {
				t.Fatalf("%s: numbers of %d × %d × %d differ", k.name, count, n, deep)
			}

			long := 16 * (1 + r.IntN(96))
			x, gain, bias := floats(long), floats(long), floats(long)
			sums := make([]int32, long)
			for i := range sums {
				sums[i] = int32(r.IntN(1<<uint(1+r.IntN(28)))) - 1<<20
			}
			for name, of := range map[string]func(k *kernel) []float32{
				"widen": func(k *kernel) []float32 {
					out := make([]float32, long)
					k.widen(out, sums, gain, bias, x[0])
					return out
				},
				"bend":    func(k *kernel) []float32 { out := slices.Clone(x); k.bend(out); return out },
				"norm":    func(k *kernel) []float32 { out := slices.Clone(x); k.norm(out, gain, bias); return out },
				"add":     func(k *kernel) []float32 { out := slices.Clone(x); k.add(out, gain); return out },
				"largest": func(k *kernel) []float32 { return []float32{k.largest(x)} },
				"nearest": func(k *kernel) (out []float32) {
					ints := make([]int16, long)
					k.nearest(ints, x, top/plain.largest(x))
					for _, i := range ints {
						out = append(out, float32(i))
					}
					return out
				},
				"soften": func(k *kernel) (out []float32) {
					ints := make([]int16, long)
					out = append(out, float32(k.soften(ints, sums, float32(math.Exp2(-float64(long%30))))))
					for _, i := range ints {
						out = append(out, float32(i))
					}
					return out
				},
			} {
				if !same(of(k), of(&plain)) {
					t.Fatalf("%s: %s of %d numbers differs", k.name, name, long)
				}
			}
		}
	}
}

// TestBend and TestSoften hold the polynomials to the errors that are stated of them.
func TestBend(t *testing.T) {
	worst := 0.
	for x := -9.; x < 9; x += 1e-3 {
		y := []float32{float32(x)}
		bendPlain(y)
		worst = max(worst, math.Abs(float64(y[0])-x*(1+math.Erf(x/math.Sqrt2))/2))
	}
	if worst > 2e-5 {
		t.Errorf("off by %v", worst)
	}
}

func TestSoften(t *testing.T) {
	const n = 1 << 12
	sums, out := make([]int32, n), make([]int16, n)
	for i := range sums {
		sums[i] = -int32(i)
	}
	total, sum := softenPlain(out, sums, 1./256), int32(0)
	for i, c := range out {
		sum += int32(c)
		if off := math.Abs(float64(c) - most*math.Exp2(-float64(i)/256)); off > .51 {
			t.Fatalf("at %d off by %v", i, off)
		}
	}
	if total != sum {
		t.Errorf("the chances are %d, their sum %d", total, sum)
	}
}

// TestLogits: all kernels agree, whatever is batched with whatever, and the end of the context ends them.
func TestLogits(t *testing.T) {
	m := mustParse(t, small().write())
	r := rand.New(rand.NewPCG(5, 6))
	var windows [][]int32
	for range 60 {
		w := make([]int32, r.IntN(m.Window+1))
		for i := range w {
			w[i] = int32(r.IntN(m.Pieces))
		}
		windows = append(windows, w)
	}
	want, err := m.logits(t.Context(), &plain, windows)
	if err != nil || len(want) != len(windows) {
		t.Fatalf("%d, %v", len(want), err)
	}
	for _, k := range kernels() {
		all, err := m.logits(t.Context(), k, windows)
		if err != nil || !slices.Equal(all, want) {
			t.Errorf("%s: %v, %v; want %v", k.name, all, err, want)
		}
		for i, w := range windows {
			if one, err := m.logits(t.Context(), k, windows[i:i+1]); err != nil || one[0] != want[i] {
				t.Fatalf("%s: %d pieces alone: %v, %v; want %v", k.name, len(w), one, err, want[i])
			}
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if out, err := m.Logits(stopped, windows); !errors.Is(err, context.Canceled) || out != nil {
		t.Errorf("after the end: %v, %v", out, err)
	}
}
