// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"
)

// A Share has several processes hold a principal to one rate together, approximately: each tells the
// others once in a while how many requests it has let pass, and the others take that from the principal's
// allowance. In between each process goes by what it knows, so that a principal that begins to ask all of
// N processes at once may make up to N times Limits.Burst requests, and waits the longer afterwards.
// Limits.Concurrent is held by each process alone.
//
// Principals are named by the first 8 bytes of HMAC-SHA-256(key, ID).
type Share struct {
	key []byte

	mu    sync.Mutex
	table *table // of the Limit in force
	spent map[mark]uint32
	no    uint64            // of what was told last
	seen  map[string]uint64 // by process: the number of what it has told last
}

type mark [8]byte

// maxShared bounds the principals that one process tells of at a time.
const maxShared = 1000

// maxDebt bounds what is taken from an allowance at once, in bursts.
const maxDebt = 32

// NewShare returns a Share. All processes need the same key.
func NewShare(key []byte) *Share {
	return &Share{key: key, spent: map[mark]uint32{}, seen: map[string]uint64{}}
}

func (s *Share) mark(id string) (m mark) {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(id))
	copy(m[:], mac.Sum(nil))
	return m
}

// passed notes a request of a principal. A nil Share notes nothing.
func (s *Share) passed(a *allowance) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.spent[a.mark]; there || len(s.spent) < maxShared {
		s.spent[a.mark]++
	}
}

// of is the mark of a new allowance.
func (s *Share) of(key string) (m mark) {
	if s == nil {
		return m
	}
	return s.mark(key)
}

// Exchange takes what other processes have told, by the name of the process, and returns what this one
// tells: a number of 8 bytes, and for each principal its mark and the requests since the last Exchange in
// 4 bytes. What a process has told is taken once.
func (s *Share) Exchange(told map[string][]byte) []byte {
	s.mu.Lock()
	taken := map[mark]uint32{}
	for process, b := range told {
		if len(b) < 8 {
			continue
		}
		if no := binary.BigEndian.Uint64(b); s.seen[process] != no {
			s.seen[process] = no
			for b = b[8:]; len(b) >= 12; b = b[12:] {
				taken[mark(b)] += binary.BigEndian.Uint32(b[8:])
			}
		}
	}
	for process := range s.seen {
		if _, there := told[process]; !there {
			delete(s.seen, process)
		}
	}
	s.no++
	out := binary.BigEndian.AppendUint64(nil, s.no)
	for m, n := range s.spent {
		out = binary.BigEndian.AppendUint32(append(out, m[:]...), n)
	}
	clear(s.spent)
	t := s.table
	s.mu.Unlock()
	if t != nil && len(taken) > 0 {
		t.take(taken, time.Now())
	}
	return out
}

// take takes from the allowances what was spent elsewhere.
func (t *table) take(spent map[mark]uint32, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		n := min(int(spent[a.mark]), maxDebt*t.limits.Burst)
		if n > 0 {
			a.used = now
		}
		for ; n > 0; n -= t.limits.Burst {
			a.rate.ReserveN(now, min(n, t.limits.Burst)) // a debt, which time pays
		}
	}
}
