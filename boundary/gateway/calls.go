// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// An ask is a request of the server on its way to the client and back.
type ask struct {
	id    wire.ID // the server's
	n     int64   // ours
	human bool    // a person answers it
	born  time.Time
}

// calls are the requests under way in both directions, and what else has to end before a session can. It is
// safe for concurrent use.
type calls struct {
	begun func() // called when there is one more, without the lock; nil: not called
	limit int

	mu          sync.Mutex // guards what follows, and of each call what says so
	lastUp      int64
	lastDown    int64
	lastToken   int64
	up          map[int64]*call
	byID        map[wire.ID]*call
	byToken     map[string]*call
	byTaskToken map[string]*call // calls that were answered with a task: its progress bears their token
	down        map[int64]*ask
	askedBy     map[wire.ID]*ask

	waiting []*call // for the server's tools to be listed, in their order
	listing bool    // they are being listed, or those that waited are forwarded

	passing int       // messages on their way to the client, whose calls may be closed already
	spoke   time.Time // when the server has said something last
	writing int       // messages that are being written to the server
	since   time.Time // when that began to be more than none
	rests   []rest    // who waits for the end
}

// A rest is closed once no message is on its way to the client, and with all no call is waited for either.
type rest struct {
	all    bool
	closed chan struct{}
}

func newCalls(limit int) *calls {
	return &calls{limit: limit, up: map[int64]*call{}, byID: map[wire.ID]*call{}, byToken: map[string]*call{}, byTaskToken: map[string]*call{},
		down: map[int64]*ask{}, askedBy: map[wire.ID]*ask{}, spoke: time.Now(), lastDown: FirstQuestion()}
}

// maxFirst bounds the numbers from which questions are counted. Those of package era begin at twice as much.
const maxFirst = 1 << 29

// FirstQuestion is the number from which a session counts the requests of the server to the client: a random one.
// When a session comes back in another process, its client may still have open what the one before has asked: a
// late answer must not be taken for that to another question.
func FirstQuestion() int64 { return rand.Int64N(maxFirst) }

// open gives c its number, or says why it cannot be under way.
func (c *calls) open(n *call) *answer {
	defer c.oneMore() // once the lock is free
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID[n.id] != nil && !n.id.IsZero() {
		return &errDuplicate
	}
	if len(c.up) >= c.limit && !n.id.IsZero() {
		return &errBusy
	}
	c.lastUp++
	n.n = c.lastUp
	c.up[n.n] = n
	if !n.id.IsZero() {
		c.byID[n.id] = n
	}
	if n.token != "" {
		for c.byToken[n.wireToken()] != nil || c.byTaskToken[n.wireToken()] != nil {
			c.lastToken++
			n.sent = `"pellucid-` + strconv.FormatInt(c.lastToken, 10) + `"`
		}
		c.byToken[n.wireToken()] = n
	}
	return nil
}

func (c *calls) oneMore() {
	if c.begun != nil {
		c.begun()
	}
}

// none reports whether nothing is under way in either direction.
func (c *calls) none() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.up) == 0 && len(c.down) == 0 && c.writing == 0
}

// get returns the call that the server answers under id; nil if not found.
func (c *calls) get(id wire.ID) *call {
	n, isInt := id.Int()
	if !isInt {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up[n]
}

// answer returns the call that the server answers under id, which stays under way. It returns nil where there
// is none, the server has not been asked yet, or it has answered already.
func (c *calls) answer(id wire.ID) *call {
	n, isInt := id.Int()
	if !isInt {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.up[n]
	if k == nil || k.stage == fresh || k.stage == answered {
		return nil
	}
	k.stage, k.heard = answered, time.Now()
	return k
}

// close forgets the call with our number n and returns it; nil if not found.
func (c *calls) close(n int64) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closeLocked(c.up[n])
}

func (c *calls) closeLocked(old *call) *call {
	if old == nil {
		return nil
	}
	old.unawaited.Store(true)
	delete(c.up, old.n)
	if c.byID[old.id] == old {
		delete(c.byID, old.id)
	}
	if c.byToken[old.wireToken()] == old {
		delete(c.byToken, old.wireToken())
	}
	c.unholdLocked(old)
	c.restedLocked()
	return old
}

// cancel marks the client's request as one whose answer the client does not wait for. One that waits to be sent
// ends here.
func (c *calls) cancel(id wire.ID, now time.Time) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.byID[id]
	if found == nil {
		return nil
	}
	found.unawaited.Store(true)
	found.cancelled, found.endless, found.heard = true, false, now
	if found.held != nil {
		return c.closeLocked(found)
	}
	c.restedLocked()
	return found
}

// original returns the client's spelling of the id of a call under way.
func (c *calls) original(n int64) (raw []byte, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.up[n]
	if found == nil || found.id.IsZero() {
		return nil, false
	}
	return found.shown.Append(nil), true
}

// noteProgress notes that the server works on the call of token, and returns the call. It returns nil if the
// client does not wait for it. under is false for a call that was answered with a task.
func (c *calls) noteProgress(token string, now time.Time) (found *call, under bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found = c.byToken[token]; found == nil {
		return c.byTaskToken[token], false
	}
	if found.heard = now; found.cancelled {
		return nil, false
	}
	return found, true
}

// keepTaskToken keeps the token of a call that was answered with a task.
func (c *calls) keepTaskToken(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.token != "" && len(c.byTaskToken) < maxTasks {
		c.byTaskToken[k.wireToken()] = k
	}
}

// anyWantsLog reports whether a request under way wants log messages of the level.
func (c *calls) anyWantsLog(level int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.up {
		if k.wantsLog(level) {
			return true
		}
	}
	return false
}

func (k *call) wantsLog(level int) bool {
	return k.minLogLevel >= 0 && level >= k.minLogLevel && !k.cancelled
}

// only returns the one request that a client waits for; nil if no request waits, or several do.
func (c *calls) only() (one *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.up {
		if k.id.IsZero() || k.cancelled || k.endless {
			continue
		}
		if one != nil {
			return nil
		}
		one = k
	}
	return one
}

// idleLocked reports whether the client waits for nothing.
func (c *calls) idleLocked() bool {
	for _, k := range c.up {
		if !k.cancelled && !k.endless && !k.id.IsZero() {
			return false
		}
	}
	return true
}

// all forgets every call and returns those that a client waits for.
func (c *calls) all() (waiting []*call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.up {
		if !k.id.IsZero() && !k.cancelled {
			waiting = append(waiting, k)
		}
		c.closeLocked(k)
	}
	return waiting
}

// ask numbers a request of the server, or says why it cannot be under way.
func (c *calls) ask(id wire.ID, method string, now time.Time) (*ask, *answer) {
	defer c.oneMore()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.askedBy[id] != nil {
		return nil, &errDuplicate
	}
	if len(c.down) >= c.limit {
		return nil, &errBusy
	}
	c.lastDown++
	a := &ask{id: id, n: c.lastDown, born: now, human: method == mcpmsg.Elicit || method == mcpmsg.Sample}
	c.down[a.n] = a
	c.askedBy[id] = a
	return a, nil
}

// answered forgets the request of the server with our number n.
func (c *calls) answered(n int64, now time.Time) *ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.down[n]
	if a == nil {
		return nil
	}
	delete(c.down, n)
	delete(c.askedBy, a.id)
	if a.human { // the server could not go on before
		for _, k := range c.up {
			k.heard = now
		}
	}
	return a
}

// unanswered forgets and returns the requests of the server.
func (c *calls) unanswered() (list []*ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.down {
		list = append(list, a)
	}
	clear(c.down)
	clear(c.askedBy)
	return list
}

// asked returns our number of a request of the server's under way.
func (c *calls) asked(id wire.ID) (n int64, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.askedBy[id]
	if a == nil {
		return 0, false
	}
	return a.n, true
}

// expired forgets and returns what has taken too long. stuck means that the server neither takes messages
// nor says anything.
func (c *calls) expired(now time.Time, timeout time.Duration) (late []*call, unanswered []*ask, stuck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	human := false
	for _, a := range c.down {
		if now.Sub(a.born) >= timeout {
			unanswered = append(unanswered, a)
			delete(c.down, a.n)
			delete(c.askedBy, a.id)
			continue
		}
		human = human || a.human
	}
	for _, k := range c.up {
		limit := k.patience(timeout)
		silent := now.Sub(k.heard) >= limit
		old := now.Sub(k.born) >= k.longest(timeout)
		if !k.endless && (silent && !human || old) {
			late = append(late, c.closeLocked(k))
		}
	}
	stuck = c.writing > 0 && now.Sub(c.since) >= timeout && now.Sub(c.spoke) >= timeout
	return late, unanswered, stuck
}

// longest returns the longest time that any call that the client waits for may take.
func (c *calls) longest(timeout time.Duration) (d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.up {
		if !k.id.IsZero() && !k.cancelled && !k.endless {
			d = max(d, k.longest(timeout))
		}
	}
	return d
}
