// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"hash/maphash"
	"sync"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// paging remembers the order of the cursors of a list, so that no list leads a client in a
// circle. Several clients may page through a list at a time, so a cursor that was there
// before is no fault: only a circle is.
type paging struct {
	mu   sync.Mutex
	next map[string]map[uint64]uint64 // digests of cursors, by method
}

var cursorSeed = maphash.MakeSeed()

// maxCursors bounds the pages of one list.
const maxCursors = 10_000

// isLastPage reports whether the page that k has asked for must be the last one although it names next,
// and else remembers next.
func (p *paging) isLastPage(k *call, next string) bool {
	if next == "" {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[string]map[uint64]uint64{}
	}
	known := p.next[k.method]
	if k.cursor == "" || known == nil { // the list is read anew
		known = map[uint64]uint64{}
		p.next[k.method] = known
	}
	from, to := maphash.String(cursorSeed, k.cursor), maphash.String(cursorSeed, next)
	for at, more := to, true; more; at, more = known[at] {
		if at == from {
			return true
		}
	}
	if len(known) >= maxCursors {
		return true
	}
	known[from] = to
	return false
}

// endList takes the cursor out of the last page of a list.
func (in *inspection) endList(root strictjson.Value) {
	if !in.p.lastPage || !root.Get("nextCursor").Exists() {
		return
	}
	in.w.edits.Remove(root.Get("nextCursor"))
	in.w.edited = true
	in.w.addFindingAt("nextCursor", finding.ShapeRepaired)
}
