// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"math/bits"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Buffers come in classes, so that a grown one serves the next message and none is
// pinned at the size of the largest message ever seen: above maxPooled they are
// left to the collector. There are four classes between two powers of two: a
// message of just over a megabyte is not to cost two.
const (
	minBuffer = 4 << 10
	maxPooled = 2 << 20
	steps     = 4
)

var (
	minBits = bits.Len(minBuffer - 1)
	buffers [9*steps + 1]sync.Pool // of *[]byte; classes 4 KiB … 2 MiB
	docs    = sync.Pool{New: func() any { return new(strictjson.Doc) }}
)

// classOf is the class of buffers with room for n bytes, minBuffer at least, and that room.
func classOf(n int) (class, room int) {
	width := bits.Len(uint(n-1)) - 1 // 1<<width < n <= 2<<width
	step := 1 << (width - bits.Len(steps-1))
	k := (n - 1 - 1<<width) / step
	return (width-minBits)*steps + k + 1, 1<<width + (k+1)*step
}

// GetBuffer returns an empty slice with room for at least n bytes.
func GetBuffer(n int) []byte {
	n = max(n, minBuffer)
	if n > maxPooled {
		return make([]byte, 0, n)
	}
	class, room := classOf(n)
	if p, ok := buffers[class].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, room)
}

// PutBuffer takes back a slice from GetBuffer; the caller forgets it.
func PutBuffer(b []byte) {
	if overwrite {
		for i := range b[:cap(b)] {
			b[:cap(b)][i] = 0xdb
		}
		return
	}
	if n := cap(b); n >= minBuffer && n <= maxPooled {
		if class, room := classOf(n); room == n {
			b = b[:0]
			buffers[class].Put(&b)
		}
	}
}

// worthFit is the room from which a buffer is not kept half empty. A copy of 1 MiB takes 30 microseconds.
const worthFit = 64 << 10

// fitted is b, in a buffer for its length where its own has a quarter more than it needs.
func fitted(b []byte) []byte {
	if cap(b) <= worthFit || cap(b)-len(b) <= cap(b)/4 {
		return b
	}
	fit := append(GetBuffer(len(b)), b...)
	PutBuffer(b)
	return fit
}

// excerpt is finding.Quote over the head of b.
func excerpt(b []byte) string { return finding.Quote(string(b[:min(len(b), 128)])) }

// putDoc takes back a Doc, emptied first so that it holds on to no bytes.
func putDoc(d *strictjson.Doc) {
	_ = d.Reset(nil, strictjson.Limits{}) // fails: there is no text
	docs.Put(d)
}
