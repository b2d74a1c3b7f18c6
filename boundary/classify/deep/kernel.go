// SPDX-License-Identifier: Apache-2.0

package deep

import "math"

// A kernel is how a processor computes. All give the same bits: products are sums of
// integers, and every other number is computed in the same order of the same operations.
type kernel struct {
	name string
	rows int // rows that the products take at a time
	// weights and numbers multiply count rows of a with the n columns of b, each of k numbers: the
	// sums of a row go to dst[row*n:][:n]. k is even, and n a multiple of 32; rows are computed
	// up to a multiple of rows.
	weights func(dst []int32, a []int16, b []byte, count, n, k int)
	numbers func(dst []int32, a, b []int16, count, n, k int)
	// The rest take numbers by multiples of 8.
	widen   func(dst []float32, sums []int32, scales, bias []float32, s float32) // sums × scale × s + bias
	bend    func(x []float32)                                                    // by GELU
	largest func(x []float32) float32                                            // of the numbers without their signs
	nearest func(dst []int16, x []float32, by float32)                           // integers of x × by
	norm    func(x, gain, bias []float32)
	add     func(x, y []float32)
	soften  func(dst []int16, sums []int32, step float32) int32 // chances, and their sum
}

var plain = kernel{"go", 1, panelPlain[byte], panelPlain[int16], widenPlain, bendPlain, largestPlain, nearestPlain, normPlain, addPlain, softenPlain}

// best is what the processor can do.
var best = kernels()[0]

// panelWidth is the columns of a panel. Columns lie in memory as panels, in which two numbers of a
// column stand together: those of each column, then the next two of each.
const panelWidth = 16

// widest is the columns that a kernel takes at one time, at most: two panels.
const widest = 2 * panelWidth

// number is the value of a weight, which is kept as the byte of a file, and of an activation.
func number[T byte | int16](x T) int64 {
	if b, ok := any(x).(byte); ok {
		return int64(int8(b))
	}
	return int64(int16(x))
}

// panelPlain has the sums of two columns in one number of 64 bits, 32 bits apart: the products
// of both take one multiplication.
func panelPlain[T byte | int16](dst []int32, a []int16, b []T, count, n, k int) {
	const lanes = 4
	pairs := make([][lanes]int64, k)
	for c := 0; c < n; c += 2 * lanes {
		panel := b[c/panelWidth*panelWidth*k+c%panelWidth*2:]
		for t := range pairs {
			at := panel[t/2*2*panelWidth+t%2:]
			for l := range lanes {
				pairs[t][l] = number(at[4*l]) + number(at[4*l+2])<<32
			}
		}
		for r := range count {
			var s [lanes]int64
			row := a[r*k:][:len(pairs)]
			for t := range pairs {
				x, w := int64(row[t]), &pairs[t]
				s[0] += x * w[0]
				s[1] += x * w[1]
				s[2] += x * w[2]
				s[3] += x * w[3]
			}
			out := dst[r*n+c:][:2*lanes]
			for l, v := range s {
				low := int32(v)
				out[2*l], out[2*l+1] = low, int32((v-int64(low))>>32)
			}
		}
	}
}

func widenPlain(dst []float32, sums []int32, scales, bias []float32, s float32) {
	sums, scales, bias = sums[:len(dst)], scales[:len(dst)], bias[:len(dst)]
	for i := range dst {
		dst[i] = float32(float32(float32(sums[i])*s)*scales[i]) + bias[i]
	}
}

func addPlain(x, y []float32) {
	y = y[:len(x)]
	for i := range x {
		x[i] += y[i]
	}
}

// bendEdge is where the tail of GELU counts as ended.
const bendEdge = 4.5

// bendTerms are a polynomial of what GELU lacks of the ramp max(x, 0), over |x|, which goes from -1
// to 1 for 0 to bendEdge: x·Φ(x) = max(x, 0) - |x|·Φ(-|x|). It is off by at most 2e-5.
var bendTerms = [...]float32{-0.042591106, 0.021778664, 0.1763912, -0.17630759, -0.20491652, 0.4347767, -0.20296507, -0.14721474, 0.24659202, -0.13303956, 0.02749714}

func bendPlain(x []float32) {
	for i, v := range x {
		size := math.Float32frombits(math.Float32bits(v) &^ (1 << 31))
		t := float32(min(size, bendEdge)*(2/bendEdge)) - 1
		lack := bendTerms[0]
		for _, c := range bendTerms[1:] {
			lack = float32(lack*t) + c
		}
		x[i] = max(v, 0) - lack
	}
}

// largestPlain compares bits: without the sign, those of two numbers are in the order of the numbers, and
// those of an endless one and of one that is no number come last.
func largestPlain(x []float32) float32 {
	var most uint32
	for _, v := range x {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}

// half added to a number of less than 2^22 leaves its nearest integer in the low bits.
const half = 3 << 22

// nearest is the nearest integer to x, the even one of two; x is small.
func nearest(x float32) int32 { return int32(math.Float32bits(x+half)) - int32(0x4b400000) }

func nearestPlain(dst []int16, x []float32, by float32) {
	dst = dst[:len(x)]
	for i, v := range x {
		dst[i] = int16(nearest(float32(v * by)))
	}
}

// epsilon keeps a norm from dividing by nothing.
const epsilon = 1e-12

func normPlain(x, gain, bias []float32) {
	var sums [8]float32
	for i := 0; i+8 <= len(x); i += 8 {
		for l := range sums {
			sums[l] += x[i+l]
		}
	}
	n := float32(len(x))
	mean := together(&sums) / n
	sums = [8]float32{}
	for i := 0; i+8 <= len(x); i += 8 {
		for l := range sums {
			d := x[i+l] - mean
			x[i+l] = d
			sums[l] += float32(d * d)
		}
	}
	inv := 1 / float32(math.Sqrt(float64(together(&sums)/n+epsilon)))
	gain, bias = gain[:len(x)], bias[:len(x)]
	for i, d := range x {
		x[i] = float32(float32(d*inv)*gain[i]) + bias[i]
	}
}

// together is the sum of eight sums, in the order in which a register is folded.
func together(s *[8]float32) float32 {
	return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

// most is the chance of the place that a row of attention looks at most: 12 bits, so that a sum of
// products of 256 chances with numbers of 12 bits fits 32.
const most = 4095

// softenEdge is the power of two below which a chance is 0.
const softenEdge = 14

// softenTerms are a polynomial of most × 2^-x for 0 to 1, off by at most .01.
var softenTerms = [...]float32{27.989958, -217.90771, 980.4683, -2838.0354, 4094.992}

// softenPlain makes chances of the sums of a row: most × 2^-((highest - sum) × step).
func softenPlain(dst []int16, sums []int32, step float32) int32 {
	high := sums[0]
	for _, s := range sums {
		high = max(high, s)
	}
	total := int32(0)
	dst = dst[:len(sums)]
	for i, s := range sums {
		y := min(float32(float32(high-s)*step), softenEdge)
		whole := int32(y)
		f := y - float32(whole)
		c := softenTerms[0]
		for _, t := range softenTerms[1:] {
			c = float32(c*f) + t
		}
		chance := nearest(math.Float32frombits(uint32(int32(math.Float32bits(c)) - whole<<23)))
		dst[i] = int16(chance)
		total += chance
	}
	return total
}
