// SPDX-License-Identifier: Apache-2.0

// Package ledgertest holds a log in memory for tests. Its records are any bytes.
package ledgertest

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// A Log is a log in memory. It is a ledger.Source, and safe for concurrent use.
type Log struct {
	Signer *ledger.Signer

	mu         sync.Mutex
	tree       ledger.Tree
	tiles      map[[2]int64][]byte
	records    [][]byte
	checkpoint []byte
}

// New makes an empty log with a key that is made of the origin and seed.
func New(t testing.TB, origin string, seed byte) *Log {
	t.Helper()
	b := make([]byte, ed25519.SeedSize)
	b[0] = seed
	s, err := ledger.NewSigner(origin, ed25519.NewKeyFromSeed(b))
	if err != nil {
		t.Fatal(err)
	}
	return &Log{Signer: s, tiles: map[[2]int64][]byte{}}
}

// Grow adds n records, which say text, and returns the new checkpoint.
func (l *Log) Grow(t testing.TB, n int, text string) []byte {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	leaves := make([]ledger.Hash, n)
	for i := range leaves {
		l.records = append(l.records, fmt.Appendf(nil, "%s %d", text, len(l.records)))
		leaves[i] = ledger.LeafHash(l.records[len(l.records)-1])
	}
	for _, tile := range l.tree.Append(leaves) {
		l.tiles[[2]int64{int64(tile.Level), tile.N}] = tile.Data
	}
	msg, err := ledger.SignCheckpoint(l.tree.Size(), l.tree.Root(), l.Signer)
	if err != nil {
		t.Fatal(err)
	}
	l.checkpoint = msg
	return msg
}

// Checkpoint implements ledger.Source.
func (l *Log) Checkpoint(context.Context) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.checkpoint == nil {
		return nil, ledger.ErrNotFound
	}
	return l.checkpoint, nil
}

// Tile implements ledger.Source.
func (l *Log) Tile(_ context.Context, level int, n int64, width int) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data := l.tiles[[2]int64{int64(level), n}]
	if len(data) < width*len(ledger.Hash{}) {
		return nil, ledger.ErrNotFound
	}
	return data, nil
}

// Entries implements ledger.Source.
func (l *Log) Entries(_ context.Context, first int64, n int) ([][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first >= int64(len(l.records)) {
		return nil, ledger.ErrNotFound
	}
	return l.records[first:min(first+int64(n), int64(len(l.records)))], nil
}
