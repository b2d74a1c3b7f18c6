// SPDX-License-Identifier: Apache-2.0

package deep

import "golang.org/x/sys/cpu"

//go:generate go run -modfile=../../../tools/lint/go.mod gen.go -pkg deep -out tiles_amd64.s -stubs tiles_amd64.go

func dot(dst []int32, a, b []int16, m, n, k int) {
	if !cpu.X86.HasAVX2 || m == 0 {
		dotPlain(dst, a, b, m, n, k)
		return
	}
	dst, a, b = dst[:m*n], a[:m*k], b[:n*k]
	for j := 0; j < n; j += 4 {
		dotTiles(&dst[j], &a[0], &b[j*k], m/2, n, k)
	}
}
