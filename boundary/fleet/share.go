// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// share makes one connection do for many sessions. Ids and progress tokens are its
// own; the server is greeted once, and every session is given that answer. What the
// server asks of a client is refused, for there is no telling of which.
type share struct {
	link *link
	ctx  context.Context
	late queue // to the server, when it reads

	mu       sync.Mutex
	over     bool
	sessions map[*sharer]bool
	last     int64 // id and progress token
	pending  map[wire.ID]*shared
	tokens   map[string]*shared
	watched  map[string]map[*sharer]bool // by URI
	tasks    sharedTasks
	greeting greeting
	lowest   int // level that the server logs at; -1: not said
}

// shared is a request of a session under way.
type shared struct {
	of     *sharer
	id     wire.ID // the session's
	ours   wire.ID
	route  wire.Route
	calls  bool   // a tool: it may be answered with a task
	token  string // the session's, raw
	sent   string // ours
	wanted string // revision, of initialize
}

// greeting is the one initialize.
type greeting struct {
	id      wire.ID
	asked   bool
	result  []byte // raw; nil: no answer yet
	version string
	waiting []*shared
}

// sharer is the Conn of one session. What comes for it waits in its queue, so that a session
// which is slow holds up no other.
type sharer struct {
	outlet
	queue queue
	s     *share
	who   string // principal of the session
	level int    // the least that it wants logged; -1: not said
}

const sharedVersion = "2025-11-25"

func newShare(l *link) *share {
	s := &share{link: l, ctx: l.ctx, sessions: map[*sharer]bool{},
		pending: map[wire.ID]*shared{}, tokens: map[string]*shared{}, watched: map[string]map[*sharer]bool{}, lowest: -1}
	s.late.hand = func(out *wire.Message) { _ = l.Write(s.ctx, out) } // it is gone, or does not read
	s.late.begin()
	l.Start(s)
	return s
}

// maxLate bounds what waits for a server that does not read; the rest is lost to it.
const maxLate = 1024

// tell sends the server a message to which no answer is expected.
func (s *share) tell(out *wire.Message) { s.late.put(out, maxLate) }

// session returns a new session on the shared connection. It ends at once if the connection has ended.
func (s *share) session(who string) *sharer {
	c := &sharer{s: s, who: who, level: -1}
	c.queue.hand = func(m *wire.Message) { c.message(m) }
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		c.end()
	}
	s.sessions[c] = true
	return c
}

// close returns when nothing is left of the connection.
func (s *share) close() {
	s.link.Close()
	<-s.link.done
}

// Ended implements wire.Receiver.
func (s *share) Ended(error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for c := range s.sessions {
		c.end()
	}
}

// Violation implements wire.Receiver.
func (s *share) Violation(v *wire.Violation) {
	if v.Kind != wire.Response && v.Kind != wire.ErrorResponse {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.take(v.ID); k != nil {
		k.of.say(constant(k.id, wire.CodeAbsent, textLost, v), ownWaiting)
	} else if !v.ID.IsZero() && v.ID == s.greeting.id {
		s.greeted(constant(v.ID, wire.CodeAbsent, textLost, v))
	}
}

// Message gives to the sessions what comes from the server.
func (s *share) Message(m *wire.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch m.Kind {
	case wire.Request:
		code, text := wire.CodeNoMethod, textShared
		out := refusal(m.ID, wire.ID{}, code, text)
		if m.Method == mcpmsg.Ping {
			out = wire.NewResult(m.ID, []byte("{}"))
		}
		m.Release()
		s.tell(out)
	case wire.Notification:
		s.notification(m)
	default:
		if !m.ID.IsZero() && m.ID == s.greeting.id {
			s.greeted(m)
			return
		}
		k := s.take(m.ID)
		if k == nil {
			m.Release()
			return
		}
		if sub := m.Result.Get("_meta").Get(mcpmsg.KeySubscriber); sub.Exists() {
			readdress(m, sub, k.id)
		}
		if k.calls {
			s.tasks.add(k.of.who, m.Result.Get("task").Get("taskId"))
			s.tasks.add(k.of.who, m.Result.Get("taskId"))
		}
		m.ID = k.id
		k.of.say(m, ownWaiting)
	}
}

// readdress puts the id of a subscription in the place of ours.
func readdress(m *wire.Message, at strictjson.Value, id wire.ID) {
	var e strictjson.Edits
	e.Replace(at, id.Append(nil))
	_ = m.Edit(&e) // an id is strict JSON
}

// take forgets a request and returns it. s.mu is held.
func (s *share) take(id wire.ID) *shared {
	k := s.pending[id]
	if k != nil {
		delete(s.pending, id)
		delete(s.tokens, k.sent)
	}
	return k
}

// greeted takes the answer to initialize. Those who wait for it get it once the
// server has been told that it is heard: what they ask must not come before. s.mu is
// held.
func (s *share) greeted(m *wire.Message) {
	if m.Kind != wire.Response {
		for _, k := range s.greeting.waiting {
			k.of.say(constant(k.id, wire.CodeAbsent, textAbsent, m.Cause), ownWaiting)
		}
		s.greeting = greeting{}
		m.Release()
		return
	}
	result := append([]byte(nil), m.Result.Raw()...)
	version := clone(m.Result.Get("protocolVersion").Text())
	m.Release()
	s.greeting.id = wire.ID{}
	go func() {
		err := s.link.Write(s.ctx, wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil))
		s.mu.Lock()
		defer s.mu.Unlock()
		waiting := s.greeting.waiting
		s.greeting.waiting = nil
		if err == nil {
			s.greeting.result, s.greeting.version = result, version
		} else {
			s.greeting = greeting{}
		}
		for _, w := range waiting {
			if err == nil {
				w.of.say(s.greeting.answer(w.id, w.wanted), ownWaiting)
			} else {
				w.of.say(constant(w.id, wire.CodeAbsent, textAbsent, err), ownWaiting)
			}
		}
	}()
}

// answer is the server's, in the older of two revisions.
func (g *greeting) answer(id wire.ID, wanted string) *wire.Message {
	m := own(wire.NewResult(id, g.result))
	if v := m.Result.Get("protocolVersion"); wire.IsLegacy(wanted) && wanted < g.version {
		var e strictjson.Edits
		e.ReplaceText(v, wanted)
		_ = m.Edit(&e) // a quoted string is strict JSON
	}
	return m
}

// notification gives a notification to the sessions that it concerns. s.mu is held.
func (s *share) notification(m *wire.Message) {
	m.Related = wire.ID{} // the connection's id: in a session it is another request's
	if sub := m.Params.Get("_meta").Get(mcpmsg.KeySubscriber); sub.Exists() {
		id, _ := wire.IDOf(sub)
		if k := s.pending[id]; k != nil {
			readdress(m, sub, k.id)
			k.of.say(m, maxNotes)
		}
		return
	}
	switch m.Method {
	case mcpmsg.Progress:
		token := m.Params.Get("progressToken")
		if k := s.tokens[string(token.Raw())]; k != nil {
			var e strictjson.Edits
			e.Replace(token, []byte(k.token))
			if m.Edit(&e) == nil {
				k.of.say(m, maxNotes)
				return
			}
		}
	case mcpmsg.Cancelled: // of a request that was refused
	case mcpmsg.ResourceUpdated:
		for c := range s.watched[m.Params.Get("uri").Text()] {
			c.say(m.Clone(), maxNotes)
		}
	case mcpmsg.TaskStatus, mcpmsg.TaskChanged:
		for c := range s.sessions {
			if s.tasks.isOf(c.who, m.Params.Get("taskId")) {
				c.say(m.Clone(), maxNotes)
			}
		}
	default:
		level := mcpmsg.LevelOf(m.Params.Get("level").Text())
		for c := range s.sessions {
			if m.Method == mcpmsg.LogMessage && level >= 0 && level < c.level {
				continue
			}
			c.say(m.Clone(), maxNotes)
		}
	}
	m.Release()
}

// maxNotes bounds what waits for a session that does not read; further
// notifications are lost to it.
const maxNotes = 1024
