// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/storage"
)

// The index of the claims is the same in both engines: the table postings holds,
// for every token and every block of claims, which claims of the block have the
// token. Claim id lies in block id/blockClaims. The bytes of a row are either
// ascending offsets into the block, two bytes each, big-endian, or, where those
// would be no shorter, a bitmap with the lowest bit first.
const (
	blockClaims = 4096
	bitmapSize  = blockClaims / 8
)

// A claimSet is some claims of one block, a bit for each.
type claimSet [blockClaims / 64]uint64

func (s *claimSet) add(offset int64) { s[offset/64] |= 1 << (offset % 64) }

func (s *claimSet) has(offset int64) bool { return s[offset/64]>>(offset%64)&1 != 0 }

func (s *claimSet) and(t *claimSet) {
	for i := range s {
		s[i] &= t[i]
	}
}

// descend calls yield for each offset, the greatest first, until it returns false.
func (s *claimSet) descend(yield func(offset int64) bool) {
	for i := len(s) - 1; i >= 0; i-- {
		for word := s[i]; word != 0; {
			top := bits.Len64(word) - 1
			if !yield(int64(i*64 + top)) {
				return
			}
			word &^= 1 << top
		}
	}
}

func (s *claimSet) encode() []byte {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	if 2*n >= bitmapSize {
		out := make([]byte, 0, bitmapSize)
		for _, word := range s {
			out = binary.LittleEndian.AppendUint64(out, word)
		}
		return out
	}
	out := make([]byte, 0, 2*n)
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			out = binary.BigEndian.AppendUint16(out, uint16(i*64+bits.TrailingZeros64(word)))
		}
	}
	return out
}

// merge adds the claims that b, made by encode, stands for.
func (s *claimSet) merge(b []byte) {
	if len(b) == bitmapSize {
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(b[8*i:])
		}
		return
	}
	for ; len(b) >= 2; b = b[2:] {
		s.add(int64(binary.BigEndian.Uint16(b) % blockClaims))
	}
}

// A posting is the place of a row of postings.
type posting struct {
	block int64
	token string
}

// index adds claims to the index: for each token the ids of claims that did not
// have it, in any order.
func (t *tx) index(ctx context.Context, more map[string][]int64) error {
	sets := map[posting]*claimSet{}
	for token, ids := range more {
		for _, id := range ids {
			at := posting{id / blockClaims, token}
			if sets[at] == nil {
				sets[at] = new(claimSet)
			}
			sets[at].add(id % blockClaims)
		}
	}
	places := slices.SortedFunc(maps.Keys(sets), func(a, b posting) int {
		return cmp.Or(cmp.Compare(a.block, b.block), strings.Compare(a.token, b.token))
	})
	for i := 0; i < len(places); {
		block, args := places[i].block, []any(nil)
		for ; i < len(places) && places[i].block == block && len(args) < storage.Chunk; i++ {
			args = append(args, places[i].token)
		}
		err := t.EachRow(ctx, func(r *sql.Rows) error {
			var token string
			var claims sql.RawBytes
			err := r.Scan(&token, &claims)
			sets[posting{block, token}].merge(claims)
			return err
		}, `SELECT token, claims FROM postings WHERE block = ? AND token IN (`+storage.Marks(len(args))+`)`, append([]any{block}, args...)...)
		if err != nil {
			return err
		}
	}
	var rows, counts []any
	for _, at := range places {
		rows = append(rows, at.token, at.block, sets[at].encode())
	}
	for _, token := range slices.Sorted(maps.Keys(more)) {
		counts = append(counts, token, len(more[token]))
	}
	err := t.InsertRows(ctx, "postings (token, block, claims)", 3,
		" ON CONFLICT (token, block) DO UPDATE SET claims = excluded.claims", rows)
	if err != nil {
		return err
	}
	return t.InsertRows(ctx, "tokens (token, claims)", 2,
		" ON CONFLICT (token) DO UPDATE SET claims = tokens.claims + excluded.claims", counts)
}

// lookup returns where each of the tokens stands: of the blocks not below floor
// the newest, at most maxBlocks for a token. It reports whether there are more.
func (s *Store) lookup(ctx context.Context, tokens []string, floor int64) (map[posting]*claimSet, bool, error) {
	var args []any
	for _, token := range storage.Pad(storage.Anys(tokens), "_") { // which is no token
		args = append(args, token, floor, maxBlocks+1)
	}
	// The cast: as in attestations.
	const arm = `SELECT token, block, claims FROM (SELECT token, block, claims FROM postings
		WHERE token = ? AND block >= ? ORDER BY block DESC LIMIT CAST(? AS bigint)) AS t`
	sets, blocks, cut := map[posting]*claimSet{}, map[string]int{}, false
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var at posting
		var claims sql.RawBytes
		if err := r.Scan(&at.token, &at.block, &claims); err != nil {
			return err
		}
		if blocks[at.token]++; blocks[at.token] > maxBlocks {
			cut = true
			return nil
		}
		set := new(claimSet)
		set.merge(claims)
		sets[at] = set
		return nil
	}, arm+strings.Repeat(" UNION ALL "+arm, len(args)/3-1), args...)
	return sets, cut, err
}
