// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"iter"
	"math"
	"strconv"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// entriesPage is the number of entries that are read at once.
const entriesPage = 256

// Entries yields the entries of a store behind the cursor, in the order in which they were stored: at
// most limit entries, or all if limit is 0. It ends after an error. An entry is valid until the next one.
func Entries(ctx context.Context, s Store, after Cursor, limit int) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		for left := limit; limit == 0 || left > 0; {
			n := entriesPage
			if limit > 0 {
				n = min(n, left)
			}
			page, err := s.Feed(ctx, after, n)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for i := range page {
				if !yield(&page[i], nil) {
					return
				}
			}
			after, left = page[len(page)-1].Cursor, left-len(page)
		}
	}
}

// AppendJSON appends e as a line of an export, without the line feed behind it.
//
// spec: cascade/6
func (e *Entry) AppendJSON(dst []byte) []byte {
	kind := "attestation"
	switch e.Event {
	case Retract:
		kind = "retract"
	case Reverse:
		kind = "reverse"
	}
	dst = strconv.AppendUint(append(dst, `{"cursor":"`...), uint64(min(e.Cursor, math.MaxInt64)), 10)
	dst = append(append(append(dst, `","kind":"`...), kind...), `","hash":"`...)
	dst = append(append(dst, e.Hash.String()...), `","original":`...)
	return append(strictjson.AppendQuote(dst, string(e.Original)), '}')
}
