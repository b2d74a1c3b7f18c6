// SPDX-License-Identifier: Apache-2.0

// Package intake bounds the memory of all request bodies and messages under way, and shares it among the callers.
package intake

import (
	"errors"
	"sync"
)

// Why there is no room, to be compared with errors.Is.
var (
	ErrFull   = errors.New("intake: the room for all callers is used up")
	ErrGreedy = errors.New("intake: this caller has used up its share")
)

// A Share parts what there is of something, places or bytes, among those who ask. Each
// may have as much as is left for others then: one alone half of it, two a third each. So
// whoever comes finds something, however much somebody hoards. The zero Share has nothing.
type Share struct {
	mu    sync.Mutex
	total int64
	used  int64
	by    map[string]int64 // of those who have anything
}

// NewShare returns a Share of so much.
func NewShare(total int64) *Share { return &Share{total: total, by: map[string]int64{}} }

// Take gives who n more; the error is ErrFull or ErrGreedy. Whoever has nothing yet gets it
// as long as it is there; nobody in particular ("") may have all of it.
func (s *Share) Take(who string, n int64) error {
	if n <= 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	left, has := s.total-s.used-n, s.by[who]
	switch {
	case left < 0:
		return ErrFull
	case who != "" && has > 0 && has+n > left:
		return ErrGreedy
	}
	s.used += n
	s.by[who] = has + n
	return nil
}

// Give takes n back from who.
func (s *Share) Give(who string, n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used -= n
	if s.by[who] -= n; s.by[who] == 0 {
		delete(s.by, who)
	}
}
