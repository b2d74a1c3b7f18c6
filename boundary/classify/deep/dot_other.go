// SPDX-License-Identifier: Apache-2.0

//go:build !amd64

package deep

func dot(dst []int32, a, b []int16, m, n, k int) { dotPlain(dst, a, b, m, n, k) }
