// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// A tile has 256 hashes: 8 levels of the tree.
const (
	tileHeight = 8
	tileWidth  = 1 << tileHeight
	hashSize   = tlog.HashSize
)

// A Tree is the right edge of a log: what is needed to append to it. The zero
// value is the empty log. It is not safe for concurrent use.
type Tree struct {
	size  int64
	edges [][]Hash // by level: the hashes of the tile that is not full yet
}

// A TileData is a tile as it stands now. A later, wider version of the same tile
// begins with the same bytes, so a store keeps one row for (Level, N) and
// replaces its data; every narrower tile that was ever served is a prefix of it.
type TileData struct {
	Level int
	N     int64
	Data  []byte // 32 bytes a hash, 1 to 256 hashes
}

// width is how many hashes the tile n of a level has in a log of some size.
func width(size int64, level int, n int64) int {
	have := size>>(tileHeight*level) - n*tileWidth
	return int(max(0, min(have, tileWidth)))
}

// OpenTree reads the right edge of a log of that size. tile returns the stored data
// of a tile, at least as wide as asked for. The data is believed: compare Root with
// the checkpoint.
func OpenTree(size int64, tile func(level int, n int64, width int) ([]byte, error)) (*Tree, error) {
	if size < 0 || size > maxSize {
		return nil, errors.New("ledger: tree: no such size")
	}
	t := &Tree{size: size}
	for level := 0; size>>(tileHeight*level) > 0; level++ {
		n := size >> (tileHeight * (level + 1))
		w := width(size, level, n)
		edge := make([]Hash, w)
		if w > 0 {
			data, err := tile(level, n, w)
			if err != nil {
				return nil, fmt.Errorf("ledger: tree: tile %d/%d: %w", level, n, err)
			}
			if len(data) < w*hashSize {
				return nil, fmt.Errorf("ledger: tree: tile %d/%d is too narrow", level, n)
			}
			for i := range edge {
				copy(edge[i][:], data[i*hashSize:])
			}
		}
		t.edges = append(t.edges, edge)
	}
	return t, nil
}

// Size is the number of leaves.
func (t *Tree) Size() int64 { return t.size }

// Append adds leaves (LeafHash of each envelope, in order) and returns every tile
// that is new or has grown, to be stored in one transaction with the leaves and
// the checkpoint. A tile comes once, as it is at the end.
func (t *Tree) Append(leaves []Hash) []TileData {
	var out []TileData
	old := t.size
	for _, leaf := range leaves {
		t.size++
		for level, h := 0, leaf; ; level++ {
			if level == len(t.edges) {
				t.edges = append(t.edges, nil)
			}
			t.edges[level] = append(t.edges[level], h)
			if len(t.edges[level]) < tileWidth {
				break
			}
			out = append(out, TileData{level, t.size>>(tileHeight*(level+1)) - 1, joined(t.edges[level])})
			h = perfect(t.edges[level])
			t.edges[level] = t.edges[level][:0]
		}
	}
	for level, edge := range t.edges {
		if len(edge) > 0 && old>>(tileHeight*level) != t.size>>(tileHeight*level) {
			out = append(out, TileData{level, t.size >> (tileHeight * (level + 1)), joined(edge)})
		}
	}
	return out
}

func joined(hashes []Hash) []byte {
	out := make([]byte, 0, len(hashes)*hashSize)
	for _, h := range hashes {
		out = append(out, h[:]...)
	}
	return out
}

// perfect is the root over 2^k hashes.
func perfect(hashes []Hash) Hash {
	if len(hashes) == 1 {
		return hashes[0]
	}
	half := len(hashes) / 2
	return tlog.NodeHash(perfect(hashes[:half]), perfect(hashes[half:]))
}

// Root is the Merkle tree hash (RFC 6962, section 2.1).
func (t *Tree) Root() Hash {
	if t.size == 0 {
		return sha256.Sum256(nil)
	}
	// The leaves fall into perfect subtrees, the greatest first; they are joined
	// from the right.
	var subtrees []Hash
	for level := len(t.edges) - 1; level >= 0; level-- {
		for edge := t.edges[level]; len(edge) > 0; {
			k := 1 << (bits.Len(uint(len(edge))) - 1)
			subtrees = append(subtrees, perfect(edge[:k]))
			edge = edge[k:]
		}
	}
	root := subtrees[len(subtrees)-1]
	for i := len(subtrees) - 2; i >= 0; i-- {
		root = tlog.NodeHash(subtrees[i], root)
	}
	return root
}

// A Source is what a log is read from: a database, a directory, a server. Its
// methods may be called at the same time. The verifier does not trust its answers.
type Source interface {
	// Checkpoint returns the latest checkpoint; ErrNotFound before the first.
	Checkpoint(ctx context.Context) ([]byte, error)
	// Tile returns the data of a tile, at least as wide as asked for; ErrNotFound if
	// it is not so wide.
	Tile(ctx context.Context, level int, n int64, width int) ([]byte, error)
	// Entries returns n envelopes from index first on, in order; fewer only at the
	// end of the log, ErrNotFound behind it.
	Entries(ctx context.Context, first int64, n int) ([][]byte, error)
}

// ErrNotFound is a Source's answer when something is not there.
var ErrNotFound = errors.New("ledger: not found")
