// SPDX-License-Identifier: Apache-2.0

package reuse

import (
	"math/bits"
	"sync"
)

// Buffers come in classes, so that a grown one serves the next owner and none is pinned at
// the size of the longest text ever seen: above MaxPooled they are left to the collector.
// There are four classes between two powers of two: a text of just over a megabyte is not to
// cost two.
const (
	minBuffer = 4 << 10
	steps     = 4

	// MaxPooled is how many bytes a Buffer may have room for and still be used again.
	MaxPooled = 2 << 20
)

var (
	minBits = bits.Len(minBuffer - 1)
	buffers [9*steps + 1]sync.Pool // of *Buffer; classes 4 KiB … 2 MiB
)

// classOf is the class of buffers with room for n bytes, minBuffer at least, and that room.
func classOf(n int) (class, room int) {
	width := bits.Len(uint(n-1)) - 1 // 1<<width < n <= 2<<width
	step := 1 << (width - bits.Len(steps-1))
	k := (n - 1 - 1<<width) / step
	return (width-minBits)*steps + k + 1, 1<<width + (k+1)*step
}

// A Buffer is bytes in memory that is used again. A nil Buffer has no bytes.
type Buffer struct {
	lease
	b []byte
}

// NewBuffer returns an empty Buffer with room for at least n bytes.
func NewBuffer(n int) *Buffer {
	n = max(n, minBuffer)
	if n > MaxPooled {
		return &Buffer{b: take(n)}
	}
	class, room := classOf(n)
	if b, ok := buffers[class].Get().(*Buffer); ok {
		return b
	}
	return &Buffer{b: take(room)}
}

// Copy returns a Buffer of the bytes of p, with room for at least n.
func Copy(p []byte, n int) *Buffer {
	b := NewBuffer(max(n, len(p)))
	b.b = append(b.b, p...)
	return b
}

// Bytes are the bytes of the Buffer, valid until Release. The owner may append to them, and
// then calls Set.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	b.use()
	return b.b
}

// Set makes p the bytes of the Buffer: a slice from the beginning of its memory, or what
// append has made of one. In the second case nothing may refer to the bytes from before.
func (b *Buffer) Set(p []byte) {
	b.use()
	if !b.Holds(p) {
		giveBack(b.b)
	}
	b.b = p
}

// Append appends p, in other memory where there is no room for it. Nothing may refer to the
// bytes from before.
func (b *Buffer) Append(p []byte) {
	b.use()
	if need := len(b.b) + len(p); need > cap(b.b) {
		b.Grow(max(need, 2*len(b.b)))
	}
	b.b = append(b.b, p...)
}

// Grow makes room for n bytes in all, the present ones included. Nothing may refer to the
// bytes from before.
func (b *Buffer) Grow(n int) {
	b.use()
	if n <= cap(b.b) {
		return
	}
	grown := NewBuffer(n)
	grown.b = append(grown.b, b.b...)
	b.b, grown.b = grown.b, b.b[:0]
	grown.Release()
}

// Fit moves the bytes into a Buffer for their length, where there is a good deal more room
// than they need, so that what is kept for long is not kept half empty. A copy of 1 MiB takes
// 30 microseconds. Nothing may refer to the bytes from before if it reports true.
func (b *Buffer) Fit() (moved bool) {
	b.use()
	if cap(b.b) <= worthFit || cap(b.b)-len(b.b) <= cap(b.b)/4 {
		return false
	}
	fit := Copy(b.b, 0)
	b.b, fit.b = fit.b, b.b[:0]
	fit.Release()
	return true
}

// worthFit is the room from which on Fit moves bytes.
const worthFit = 64 << 10

// Holds reports whether p begins where the memory of the Buffer begins.
func (b *Buffer) Holds(p []byte) bool {
	return b != nil && cap(p) > 0 && cap(b.b) > 0 && &p[:1][0] == &b.b[:1][0]
}

// Release gives the memory back. A nil Buffer has none.
func (b *Buffer) Release() {
	if b == nil {
		return
	}
	b.end()
	if Checked {
		giveBack(b.b)
		return
	}
	if n := cap(b.b); n >= minBuffer && n <= MaxPooled {
		if class, room := classOf(n); room == n {
			b.b = b.b[:0]
			buffers[class].Put(b)
		}
	}
}
