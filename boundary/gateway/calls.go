// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// A call is a request on its way to the server and back.
type call struct {
	id     wire.ID // the client's; zero if the request is our own
	shown  wire.ID // how the client spells it
	n      int64   // ours
	method string
	tool   string // name as the client gave it; a label only if it was listed
	cursor string
	token  string         // raw progressToken
	meta   []byte         // of a request of our own
	task   hold.Digest    // that it is about; zero: none
	digest hold.Digest    // of the question, where results may be held
	facts  *policy.Facts  // what rules read of it; nil: nothing
	asked  *hold.Question // what is kept of the arguments for a reviewer; nil: nothing
	limit  time.Duration  // of silence; 0: the server's
	sent   string         // token that the server gets instead, because another request bears the same
	claim  *wire.Claim    // what the client's headers say
	item   surface.Key    // what it is about; without a name if that is nothing a server lists
	wants  uint32         // of a subscription: bits of changing
	watched
	store          storeTime
	restored       restoring // of its params; set before it is sent
	paramsToRepeat []byte    // that the server gets, where it may have to get them again; set before it is sent
	repeated       bool      // they were sent before, in a session that the server had forgotten

	revision    string      // that the request names; "": that of the session
	unawaited   atomic.Bool // nobody waits for the answer any more
	minLogLevel int         // from which on its client wants log messages, by place in mcpmsg.Levels; -1: none
	abilities   mcpmsg.Abilities
	born        time.Time

	// Guarded by the lock of calls while the call is under way; not changed once it is not, but for next.
	stage     stage
	heard     time.Time
	endless   bool          // a subscription: silence is no fault
	cancelled bool          // by the client, who waits no longer
	held      *wire.Message // waits for the server's tools to be listed
	next      *wire.Message // to be sent behind the request, which is being sent
}

// A stage is how far a call is on its way.
type stage uint8

const (
	fresh    stage = iota // nothing of it goes to the server yet
	sending               // it is being written
	sent                  // the server has it
	answered              // the server has answered it
)

// A callContext ends with the session, and when the client does not wait for the answer to a call.
type callContext struct {
	context.Context
	k *call
}

// Err implements context.Context.
func (c callContext) Err() error {
	if c.k.unawaited.Load() {
		return context.Canceled
	}
	return c.Context.Err()
}

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
	byTaskToken map[string]*call // by token: answered with a task, whose progress is told by it
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

// cancel marks the client's request as one that nobody waits for any longer. One that waits to be sent ends
// here.
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

// progress notes that the server works on what token stands for, and returns it; nil if the client does
// not wait for it. under reports that it is under way, and not a task.
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

// keepToken lets progress be told of the task by which a call was answered.
func (c *calls) keepTaskToken(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.token != "" && len(c.byTaskToken) < maxTasks {
		c.byTaskToken[k.wireToken()] = k
	}
}

// wantLog reports whether a request under way wants log messages of the level.
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

// longest is for how long at most a call that the client waits for goes on.
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

// longest is for how long at most the call goes on.
func (k *call) longest(timeout time.Duration) time.Duration {
	return longestFactor * max(k.patience(timeout), timeout)
}

// Patience with calls that nobody, or only this package, waits for.
const (
	cancelPatience = 30 * time.Second
	listPatience   = 10 * time.Second
)

func (k *call) patience(timeout time.Duration) time.Duration {
	switch {
	case k.limit > 0 && !k.cancelled:
		return k.limit
	case k.id.IsZero():
		return min(timeout, listPatience)
	case k.cancelled:
		return min(timeout, cancelPatience)
	}
	return timeout
}

// newCall notes of a client's request what its answer will need.
func newCall(m *wire.Message, now time.Time) *call {
	k := &call{id: m.ID, shown: m.ID, claim: m.Claim, method: m.Method, born: now, heard: now, endless: m.Method == mcpmsg.Listen}
	if !m.Alias.IsZero() {
		k.shown = m.Alias
	}
	k.item, k.wants = itemOf(m), wants(m)
	meta := m.Params.Get("_meta")
	k.revision = revision(meta.Get(mcpmsg.KeyVersion).Text())
	k.abilities, k.minLogLevel = mcpmsg.AbilitiesOf(meta.Get(mcpmsg.KeyClientCaps), true), mcpmsg.LevelOf(meta.Get(mcpmsg.KeyLogLevel).Text())
	switch m.Method {
	case mcpmsg.Initialize:
		k.abilities = mcpmsg.AbilitiesOf(m.Params.Get("capabilities"), true)
	case mcpmsg.SetLevel:
		k.minLogLevel = mcpmsg.LevelOf(m.Params.Get("level").Text())
	case mcpmsg.CallTool:
		k.tool = clip(k.item.Name)
	case mcpmsg.ListTools, mcpmsg.ListPrompts, mcpmsg.ListResources, mcpmsg.ListTemplates, mcpmsg.ListTasks:
		k.cursor = strings.Clone(m.Params.Get("cursor").Text())
	}
	if token := meta.Get("progressToken").Raw(); len(token) <= maxToken {
		k.token = string(token)
	}
	return k
}

// wireToken is the token by which the server knows the call.
func (k *call) wireToken() string {
	if k.sent != "" {
		return k.sent
	}
	return k.token
}

// applyEdits makes m, the client's request, what the server gets. e has what is changed beside.
func (k *call) applyEdits(m *wire.Message, e *strictjson.Edits) error {
	if k.sent != "" {
		e.Replace(m.Params.Get("_meta").Get("progressToken"), []byte(k.sent))
	}
	if k.restored.tokens > 0 {
		k.restored.came = digestOf(m.Params.Raw())
	}
	if err := m.Edit(e); err != nil {
		return err
	}
	if k.restored.tokens > 0 {
		k.restored.went = digestOf(m.Params.Raw())
	}
	return nil
}

// addressed makes m the answer to the call.
func (k *call) addressed(m *wire.Message) *wire.Message {
	m.ID, m.Alias = k.id, wire.ID{}
	if k.shown != k.id {
		m.Alias = k.shown
	}
	return m
}

const (
	maxToken = 1 << 10
	maxTool  = 1 << 10
)

// clip copies a name; one that is too long for any tool is none.
func clip(s string) string {
	if len(s) > maxTool {
		return ""
	}
	return strings.Clone(s)
}
