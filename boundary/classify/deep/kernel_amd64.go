// SPDX-License-Identifier: Apache-2.0

package deep

import (
	"math"

	"golang.org/x/sys/cpu"
)

//go:noescape
func weightsAVX2(dst *int32, a *int16, b *byte, tiles, n, k int)

//go:noescape
func numbersAVX2(dst *int32, a *int16, b *int16, tiles, n, k int)

//go:noescape
func weightsVNNI(dst *int32, a *int16, b *byte, tiles, n, k int)

//go:noescape
func numbersVNNI(dst *int32, a *int16, b *int16, tiles, n, k int)

//go:noescape
func weightsVNNI512(dst *int32, a *int16, b *byte, tiles, n, k int)

//go:noescape
func numbersVNNI512(dst *int32, a *int16, b *int16, tiles, n, k int)

//go:noescape
func widenAVX2(dst *float32, sums *int32, scales, bias *float32, s float32, n int)

//go:noescape
func bendAVX2(x *float32, terms *[4 + len(bendTerms)][8]float32, n int)

//go:noescape
func largestAVX2(x *float32, n int) float32

//go:noescape
func nearestAVX2(dst *int16, x *float32, by float32, n int)

//go:noescape
func addAVX2(x, y *float32, n int)

//go:noescape
func normAVX2(x, gain, bias *float32, epsilon float32, n int)

//go:noescape
func softenAVX2(dst *int16, sums *int32, step float32, n int, terms *[len(softenTerms) + 1][8]float32) int32

// tiles makes a product of one that takes rows by tiles, and that many columns.
func tiles[T byte | int16](rows, columns int, f func(dst *int32, a *int16, b *T, tiles, n, k int)) func(dst []int32, a []int16, b []T, count, n, k int) {
	return func(dst []int32, a []int16, b []T, count, n, k int) {
		t := (count + rows - 1) / rows
		if t == 0 || k < 2 || n%columns != 0 {
			return
		}
		a, b, dst = a[:t*rows*k], b[:n*k], dst[:t*rows*n]
		for c := 0; c < n; c += columns {
			f(&dst[c], &a[0], &b[c*k], t, n, k)
		}
	}
}

// eight has each number eight times, as a register does.
func eight(out [][8]float32, numbers ...float32) {
	for i, x := range numbers {
		for l := range out[i] {
			out[i][l] = x
		}
	}
}

var (
	bendWide = func() (w [4 + len(bendTerms)][8]float32) {
		eight(w[:], append([]float32{math.Float32frombits(1<<31 - 1), bendEdge, 2 / bendEdge, 1}, bendTerms[:]...)...)
		return w
	}()
	softenWide = func() (w [len(softenTerms) + 1][8]float32) {
		eight(w[:], append(softenTerms[:], softenEdge)...)
		return w
	}()
)

// kernels are those of this processor, the fastest first.
func kernels() []*kernel {
	list := []*kernel{&plain}
	if !cpu.X86.HasAVX2 {
		return list
	}
	avx2 := kernel{"avx2", 6, tiles(6, panelWidth, weightsAVX2), tiles(6, panelWidth, numbersAVX2),
		func(dst []float32, sums []int32, scales, bias []float32, s float32) {
			n := len(dst)
			widenAVX2(&dst[0], &sums[:n][0], &scales[:n][0], &bias[:n][0], s, n)
		},
		func(x []float32) { bendAVX2(&x[0], &bendWide, len(x)) },
		func(x []float32) float32 { return largestAVX2(&x[0], len(x)) },
		func(dst []int16, x []float32, by float32) { nearestAVX2(&dst[:len(x)][0], &x[0], by, len(x)) },
		func(x, gain, bias []float32) {
			normAVX2(&x[0], &gain[:len(x)][0], &bias[:len(x)][0], epsilon, len(x))
		},
		func(x, y []float32) { addAVX2(&x[0], &y[:len(x)][0], len(x)) },
		func(dst []int16, sums []int32, step float32) int32 {
			return softenAVX2(&dst[:len(sums)][0], &sums[0], step, len(sums), &softenWide)
		}}
	list = append([]*kernel{&avx2}, list...)
	if cpu.X86.HasAVXVNNI {
		k := avx2
		k.name, k.weights, k.numbers = "avx-vnni", tiles(6, panelWidth, weightsVNNI), tiles(6, panelWidth, numbersVNNI)
		list = append([]*kernel{&k}, list...)
	}
	if cpu.X86.HasAVX512VNNI && cpu.X86.HasAVX512BW {
		k := avx2
		k.name, k.rows, k.weights, k.numbers = "avx512-vnni", 14, tiles(14, widest, weightsVNNI512), tiles(14, widest, numbersVNNI512)
		list = append([]*kernel{&k}, list...)
	}
	return list
}
