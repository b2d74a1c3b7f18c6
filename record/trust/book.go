// SPDX-License-Identifier: Apache-2.0

package trust

import "sync"

// A Book is a State that is safe for concurrent use.
type Book struct {
	mu    sync.RWMutex
	state *State
}

// NewBook makes a Book of a State, which it owns from now on.
func NewBook(s *State) *Book { return &Book{state: s} }

// Apply counts an event.
func (b *Book) Apply(e Observation) []Change {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.Apply(e)
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

// Replace has the Book hold another State, which it owns from now on.
func (b *Book) Replace(s *State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
}

// Snapshot is that of the State.
func (b *Book) Snapshot() []byte {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.state.Snapshot()
}
