// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"crypto/sha256"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A state is good for one retry. spentStates remembers which have been used, by this
// process, and for what: the same retry again gets the same answer until the state expires,
// another retry is refused.
type spentStates struct {
	mu    sync.Mutex
	used  map[[sha256.Size]byte]*spent // by digest of the sealed state
	order [][sha256.Size]byte          // of used, the oldest first
	bytes int                          // of answers
}

// A spent is a state that was used.
type spent struct {
	retry   [sha256.Size]byte // what the client said with it
	until   time.Time
	answer  []byte // result or error, as a member of a response; nil: under way, or too long to keep
	isError bool
	done    bool
	waiting []func(*spent) // the same retry, presented again meanwhile
}

const (
	maxSpent       = 1 << 16
	maxSpentAnswer = 4 << 20  // bytes of one answer
	maxSpentBytes  = 32 << 20 // of all
)

// retryOf is what a client says with a state: another attempt says the same.
func retryOf(m *wire.Message) [sha256.Size]byte {
	raw := m.Params.Get("inputResponses").Raw()
	if c, err := strictjson.Canonical(nil, raw, strictjson.Limits{MendSurrogates: true}); err == nil {
		raw = c
	}
	return sha256.Sum256(raw)
}

// spend uses a state. fresh says that this is the first time; ok that it is the same retry.
// again is called with the answer of the same retry once there is one.
func (s *spentStates) spend(sealed string, retry [sha256.Size]byte, now time.Time, again func(*spent)) (of *spent, fresh, ok bool) {
	key := sha256.Sum256([]byte(sealed))
	s.mu.Lock()
	of = s.used[key]
	if of == nil {
		for len(s.order) > 0 && (len(s.order) >= maxSpent || s.used[s.order[0]] == nil || !now.Before(s.used[s.order[0]].until)) {
			if old := s.used[s.order[0]]; old != nil {
				s.bytes -= len(old.answer)
			}
			delete(s.used, s.order[0])
			s.order = s.order[1:]
		}
		of = &spent{retry: retry, until: now.Add(sealWait)}
		if s.used == nil {
			s.used = map[[sha256.Size]byte]*spent{}
		}
		s.used[key] = of
		s.order = append(s.order, key)
		s.mu.Unlock()
		return of, true, true
	}
	switch {
	case of.retry != retry, of.done && of.answer == nil:
		s.mu.Unlock()
		return of, false, false
	case !of.done:
		if ok = len(of.waiting) < maxAsks; ok {
			of.waiting = append(of.waiting, again)
		}
		s.mu.Unlock()
		return of, false, ok
	}
	s.mu.Unlock()
	again(of)
	return of, false, true
}

// settle keeps the answer to the retry that has used a state. A nil answer says that the
// client withdrew or went: then the state may be used again.
func (s *spentStates) settle(of *spent, raw []byte, isError bool) {
	s.mu.Lock()
	if raw == nil && !of.done {
		for key, v := range s.used {
			if v == of {
				delete(s.used, key)
			}
		}
	}
	if raw != nil && !of.done && len(raw) <= maxSpentAnswer && s.bytes+len(raw) <= maxSpentBytes {
		of.answer, of.isError = bytes.Clone(raw), isError
		s.bytes += len(raw)
	}
	of.done = true
	waiting := of.waiting
	of.waiting = nil
	s.mu.Unlock()
	for _, again := range waiting {
		go again(of) // its client may not read, and must not delay this one
	}
}

// to answers a request with the stored answer.
func (of *spent) to(alias, id wire.ID) *wire.Message {
	m := wire.NewError(id, of.answer)
	switch {
	case of.answer == nil:
		m = wire.NewError(id, errState.raw(nil))
	case !of.isError:
		m = wire.NewResult(id, of.answer)
	}
	m.Alias, m.Whole = alias, true
	return m
}

// spend notes the use of the state of a request, which is opened. It reports whether the
// request goes on to the server; otherwise it is answered here.
func (c *sealing) spend(m *wire.Message) bool {
	alias, id := m.Alias, m.ID
	again := func(of *spent) { c.say(of.to(alias, id)) }
	of, fresh, ok := c.s.spent.spend(m.Params.Get("requestState").Text(), retryOf(m), c.s.now(), again)
	if fresh {
		c.mu.Lock()
		open := c.using != nil
		if open {
			c.using[string(id.Append(nil))] = of
		}
		c.mu.Unlock()
		if !open { // the client has gone meanwhile
			c.s.spent.settle(of, nil, false)
		}
		return open
	}
	c.answered(id)
	if !ok {
		again(new(spent))
	}
	return false
}

// used is the state that the request of that id has used, and is forgotten; nil: none.
func (c *sealing) used(id string) *spent {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.using[id]
	delete(c.using, id)
	return of
}

// Close ends the connection. A state whose retry has no answer yet may be used again.
func (c *sealing) Close() error {
	c.mu.Lock()
	using := c.using
	c.using = nil
	c.mu.Unlock()
	for _, of := range using {
		c.s.spent.settle(of, nil, false)
	}
	return c.Conn.Close()
}
