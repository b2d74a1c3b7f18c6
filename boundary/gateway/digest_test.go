// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// TestEarlyDigest: whether or not it was begun beside the walk, it is the digest, and
// the bytes are read no more once wait has returned.
func TestEarlyDigest(t *testing.T) {
	for _, n := range []int{0, 1, worthHelp - 1, worthHelp, 1 << 20} {
		b := bytes.Repeat([]byte{'a'}, n)
		want := sha256.Sum256(b)
		var e earlyDigest
		e.begin(b)
		if got := e.of(b); got != want {
			t.Errorf("%d octets: %v", n, got)
		}
		e.wait()
		clear(b)

		b = bytes.Repeat([]byte{'b'}, n)
		var unused earlyDigest
		unused.begin(b)
		unused.wait()
		clear(b) // a race if it is still read
	}
}
