// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Start implements wire.Conn.
func (c *sharer) Start(r wire.Receiver) {
	c.outlet.Start(r)
	c.queue.begin()
}

// say has the session told something, if less than limit waits for it. It does not wait.
func (c *sharer) say(m *wire.Message, limit int) { c.queue.put(m, limit) }

// end ends the session behind what waits for it.
func (c *sharer) end() { c.queue.end(func() { c.outlet.end(io.EOF) }) }

// Write gives the server a message of the session.
func (c *sharer) Write(ctx context.Context, out *wire.Message) error {
	if c.isOff() {
		return wire.ErrClosed
	}
	switch out.Kind {
	case wire.Request:
		if out = c.request(out); out == nil {
			return nil
		}
	case wire.Notification:
		if out = c.note(out); out == nil {
			return nil
		}
	default:
		return nil // the server has asked for nothing
	}
	id := out.ID
	err := c.s.link.Write(ctx, out)
	if err != nil && !id.IsZero() { // who has asked is told by the error
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.take(id)
	}
	return err
}

// request gives the request an id of ours; nil if it is answered already.
func (c *sharer) request(m *wire.Message) *wire.Message {
	if m.Parse() != nil {
		c.say(constant(m.ID, wire.CodeInvalid, textBusy, nil), ownWaiting)
		return nil
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	k := &shared{of: c, id: m.ID, ours: wire.IntID(s.last), route: wire.Route{Version: m.Route.Version}, calls: m.Method == mcpmsg.CallTool}
	if id := m.Params.Get("taskId"); strings.HasPrefix(m.Method, mcpmsg.Tasks) && m.Method != mcpmsg.ListTasks && !s.tasks.isOf(c.who, id) {
		c.say(constant(k.id, wire.CodeParams, textNoTask, nil), ownWaiting)
		return nil
	}
	switch m.Method {
	case mcpmsg.Initialize:
		s.greet(k, m)
		return nil
	case mcpmsg.ListTasks: // those of other sessions are among them
		c.say(constant(k.id, wire.CodeNoMethod, textNoMethod, nil), ownWaiting)
		return nil
	case mcpmsg.SetLevel:
		if !s.setLevel(c, m) {
			c.say(own(wire.NewResult(k.id, []byte("{}"))), ownWaiting)
			return nil
		}
	case mcpmsg.Subscribe:
		s.watch(c, clone(m.Params.Get("uri").Text()))
	case mcpmsg.Unsubscribe:
		if !s.unwatch(c, m.Params.Get("uri").Text()) {
			c.say(own(wire.NewResult(k.id, []byte("{}"))), ownWaiting)
			return nil
		}
	}
	if token := m.Params.Get("_meta").Get("progressToken"); token.Exists() {
		k.token, k.sent = string(token.Raw()), strconv.FormatInt(s.last, 10)
		var e strictjson.Edits
		e.Replace(token, []byte(k.sent))
		_ = m.Edit(&e) // a number is strict JSON
		s.tokens[k.sent] = k
	}
	s.pending[k.ours] = k
	m.ID = k.ours
	return m
}

// greet answers initialize, or has the server asked. s.mu is held.
func (s *share) greet(k *shared, m *wire.Message) {
	g := &s.greeting
	wanted := clone(m.Params.Get("protocolVersion").Text())
	if g.result != nil {
		k.of.say(g.answer(k.id, wanted), ownWaiting)
		return
	}
	k.wanted = wanted
	g.waiting = append(g.waiting, k)
	if g.asked {
		return
	}
	g.asked, g.id = true, k.ours
	// No capabilities: whatever the server asked of a client would be refused.
	params := []byte(`{"protocolVersion":"` + sharedVersion + `","capabilities":{},"clientInfo":{"name":"pellucid","version":"1"}}`)
	go s.hail(wire.NewRequest(g.id, mcpmsg.Initialize, params))
}

// hail gives the server initialize. Others wait for the answer than the session that came first, so it does
// not end with that.
func (s *share) hail(m *wire.Message) {
	id := m.ID
	err := s.link.Write(s.ctx, m)
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.greeting.id == id { // else the link has answered it already
		s.greeted(constant(id, wire.CodeAbsent, textAbsent, err))
	}
}

// setLevel reports whether the server is to be told: it logs at the lowest level
// that any session wants. s.mu is held.
func (s *share) setLevel(c *sharer, m *wire.Message) bool {
	level := mcpmsg.LevelOf(m.Params.Get("level").Text())
	if level < 0 {
		return true // the server will say what is wrong
	}
	c.level = level
	if s.lowest >= 0 && level >= s.lowest {
		return false
	}
	s.lowest = level
	return true
}

func (s *share) watch(c *sharer, uri string) {
	if s.watched[uri] == nil {
		if len(s.watched) >= maxWatched {
			return
		}
		s.watched[uri] = map[*sharer]bool{}
	}
	s.watched[uri][c] = true
}

// unwatch reports whether no session watches uri any more.
func (s *share) unwatch(c *sharer, uri string) bool {
	delete(s.watched[uri], c)
	last := len(s.watched[uri]) == 0
	if last {
		delete(s.watched, uri)
	}
	return last
}

// note passes a notification on that means something to the server.
func (c *sharer) note(out *wire.Message) *wire.Message {
	if out.Method != mcpmsg.Cancelled || out.Route.Cancels.IsZero() {
		return nil // what concerns this session alone means nothing to the server
	}
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, k := range s.pending {
		if k.of != c || k.id != out.Route.Cancels {
			continue
		}
		s.take(id)
		return cancellation(k)
	}
	return nil
}

func cancellation(k *shared) *wire.Message {
	m := wire.NewCancellation(k.ours, "", false)
	m.Route = k.route
	m.Route.Cancels = k.ours
	return m
}

// Close ends the session; what it waits for is cancelled.
func (c *sharer) Close() error {
	c.off()
	c.queue.drop(func() { c.outlet.end(wire.ErrClosed) })
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
	var late []*wire.Message
	for id, k := range s.pending {
		if k.of == c {
			s.take(id)
			late = append(late, cancellation(k))
		}
	}
	for uri := range s.watched {
		if s.watched[uri][c] && s.unwatch(c, uri) {
			s.last++
			params := append(strictjson.AppendQuote([]byte(`{"uri":`), uri), '}')
			id := wire.IntID(s.last)
			late = append(late, wire.NewRequest(id, mcpmsg.Unsubscribe, params))
		}
	}
	for _, out := range late {
		s.tell(out)
	}
	return nil
}
