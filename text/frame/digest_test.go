// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"crypto/sha256"
	"strings"
	"testing"
)

// TestDigestOf: a text is hashed whole, and without an allocation.
func TestDigestOf(t *testing.T) {
	text := strings.Repeat("The quick brown fox. ", 1000)
	for _, n := range []int{0, 1, 255, 256, 257, 2<<10 - 1, 2 << 10, 2<<10 + 1, 4 << 10, len(text)} {
		if DigestOf(text[:n]) != sha256.Sum256([]byte(text[:n])) {
			t.Errorf("%d bytes: another digest", n)
		}
		var d Digest
		if allocs := testing.AllocsPerRun(10, func() { d = DigestOf(text[:n]) }); allocs != 0 || d == (Digest{}) {
			t.Errorf("%d bytes: %v allocations", n, allocs)
		}
	}
}
