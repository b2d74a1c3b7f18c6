// SPDX-License-Identifier: Apache-2.0

package deep

// dotPlain multiplies m rows of a with n rows of b, each of k numbers: dst has a row for each
// row of a and a column for each row of b. m is even, n a multiple of 4, k a multiple of 16.
func dotPlain(dst []int32, a, b []int16, m, n, k int) {
	for i := range m {
		x := a[i*k:][:k]
		out := dst[i*n:][:n]
		for j := 0; j+4 <= n; j += 4 {
			b0, b1, b2, b3 := b[j*k:][:k], b[(j+1)*k:][:k], b[(j+2)*k:][:k], b[(j+3)*k:][:k]
			var s0, s1, s2, s3 int32
			for t, v := range x {
				v := int32(v)
				s0 += v * int32(b0[t])
				s1 += v * int32(b1[t])
				s2 += v * int32(b2[t])
				s3 += v * int32(b3[t])
			}
			out[j], out[j+1], out[j+2], out[j+3] = s0, s1, s2, s3
		}
	}
}
