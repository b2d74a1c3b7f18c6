// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A Store keeps one snapshot. It may lose it: then the events are replayed, or
// everything is at rest again.
type Store interface {
	// LoadTrust returns the snapshot that was saved last, nil if not found.
	LoadTrust(ctx context.Context) ([]byte, error)
	// SaveTrust replaces it; it is durable when SaveTrust returns nil.
	SaveTrust(ctx context.Context, snapshot []byte) error
}

// A Book is a State that is safe for concurrent use.
type Book struct {
	mu    sync.RWMutex
	state *State
	dirty bool
}

// NewBook makes a Book of a State, which it owns from now on.
func NewBook(s *State) *Book { return &Book{state: s} }

// Open makes a Book of what a Store has kept, or an empty one. An error that is
// ErrSnapshot comes with an empty Book: the caller can replay into it.
func Open(ctx context.Context, st Store, o Options) (*Book, error) {
	snapshot, err := st.LoadTrust(ctx)
	if err != nil {
		return nil, fmt.Errorf("trust: load: %w", err)
	}
	if snapshot == nil {
		return NewBook(New(o)), nil
	}
	s, err := Restore(snapshot, o)
	if errors.Is(err, ErrSnapshot) {
		s = New(o)
	}
	return NewBook(s), err
}

// Apply counts an event.
func (b *Book) Apply(e Observation) []Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.state.Apply(e)
	b.dirty = b.dirty || out != nil
	return out
}

// Scores returns those of a server and one of its tools at a time.
func (b *Book) Scores(o Origin, now int64) (server, tool Score) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.Score(Origin{Server: o.Server}, now), b.state.Score(o, now)
}

// Score returns that of an origin at a time.
func (b *Book) Score(o Origin, now int64) Score {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.Score(o, now)
}

// Replace has the Book hold another State, which it owns from now on and which the
// next Save writes.
func (b *Book) Replace(s *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state, b.dirty = s, true
}

// Snapshot is that of the State.
func (b *Book) Snapshot() []byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.Snapshot()
}

// Save gives a Store the snapshot, if anything has changed since the last Save.
func (b *Book) Save(ctx context.Context, st Store) error {
	b.mu.Lock()
	if !b.dirty {
		b.mu.Unlock()
		return nil
	}
	snapshot := b.state.Snapshot()
	b.dirty = false
	b.mu.Unlock()
	err := st.SaveTrust(ctx, snapshot)
	if err != nil {
		b.mu.Lock()
		b.dirty = true
		b.mu.Unlock()
		return fmt.Errorf("trust: save: %w", err)
	}
	return nil
}
