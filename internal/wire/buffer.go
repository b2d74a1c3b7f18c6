package wire

import (
	"math/bits"
	"sync"

	"github.com/pellucid-mcp/pellucid/finding"
	"github.com/pellucid-mcp/pellucid/internal/strictjson"
)

// Buffers come in powers of two, so that a grown one serves the next message
// and none is pinned at the size of the largest message ever seen: above
// maxPooled they are left to the collector.
const (
	minBuffer = 4 << 10
	maxPooled = 2 << 20
)

var (
	minClass = bits.Len(minBuffer - 1)
	buffers  [10]sync.Pool // of *[]byte; classes 4 KiB … 2 MiB
	docs     = sync.Pool{New: func() any { return new(strictjson.Doc) }}
)

// GetBuffer returns an empty slice with room for at least n octets.
func GetBuffer(n int) []byte {
	n = max(n, minBuffer)
	class := bits.Len(uint(n-1)) - minClass
	if n > maxPooled {
		return make([]byte, 0, n)
	}
	if p, ok := buffers[class].Get().(*[]byte); ok {
		return (*p)[:0]
	}
	return make([]byte, 0, 1<<(class+minClass))
}

// PutBuffer takes back a slice from GetBuffer; the caller forgets it.
func PutBuffer(b []byte) {
	if n := cap(b); n >= minBuffer && n <= maxPooled && n&(n-1) == 0 {
		b = b[:0]
		buffers[bits.Len(uint(n-1))-minClass].Put(&b)
	}
}

// excerpt is finding.Quote over the head of b.
func excerpt(b []byte) string { return finding.Quote(string(b[:min(len(b), 128)])) }

// putDoc takes back a Doc, emptied first so that it holds on to no octets.
func putDoc(d *strictjson.Doc) {
	_ = d.Reset(nil, strictjson.Limits{}) // fails: there is no text
	docs.Put(d)
}
