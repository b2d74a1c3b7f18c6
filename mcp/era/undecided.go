// SPDX-License-Identifier: Apache-2.0

package era

import (
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// undecided stands before a server of which nothing is known yet. It tries the
// era of the client's first request; where that works, nothing needs translation.
type undecided struct {
	*sides
	first  *wire.Message   // what decides
	held   []*wire.Message // behind it
	asked  wire.ID         // the client's own request is the test
	due    time.Time       // for its answer, where the server may be deaf to it
	legacy bool            // first is initialize
	second bool            // the server has wanted to be asked again
	probes bool            // the server is asked before the client's first message
}

var _ translator = (*undecided)(nil)

// client takes a message of the client. The first request decides what to ask the server: the initialize
// of a legacy client goes to the server as it is; before the first request of a modern client the
// server is asked server/discover. Requests that come meanwhile wait.
func (u *undecided) client(out *wire.Message, now time.Time) {
	switch {
	case u.first != nil && u.legacy: // its client speaks like the server so far
		u.tell(out)
	case u.first != nil:
		u.held = u.delay(u.held, out)
	case u.probes:
		u.first = out
		u.ask(mcpmsg.Discover, u.discovery(), wire.Route{Version: modernVersion}, now, u.discovered)
	case out.Kind == wire.Request && isModern(out):
		u.first = out
		if out.Method == mcpmsg.Discover {
			u.asked, u.due = out.ID, now.Add(u.o.Patience)
			u.tell(out.Clone())
			return
		}
		u.ask(mcpmsg.Discover, u.discovery(), wire.Route{Version: modernVersion}, now, u.discovered)
	case out.Kind == wire.Request && out.Method == mcpmsg.Initialize:
		u.first, u.legacy, u.asked = out, true, out.ID
		u.tell(out.Clone())
	default:
		u.tell(out)
	}
}

// discovery is params for server/discover in the name of the client.
func (u *undecided) discovery() []byte {
	m := u.first
	if u.probes || m.Parse() != nil {
		return []byte(probeParams)
	}
	meta := m.Params.Get("_meta")
	r := requestMeta{caps: []byte("{}")}
	info, caps := meta.Get(mcpmsg.KeyClientInfo), meta.Get(mcpmsg.KeyClientCaps)
	if u.legacy {
		info, caps = m.Params.Get("clientInfo"), m.Params.Get("capabilities")
	}
	if info.Kind() == '{' {
		r.info = info.Raw()
	}
	if caps.Kind() == '{' {
		r.caps = u.clientCapabilities(caps)
	}
	return r.alone()
}

// server takes a message of the server. Its answer to the first request says which era it speaks.
func (u *undecided) server(m *wire.Message, now time.Time) {
	switch {
	case u.settle(m, now):
	case !u.asked.IsZero() && m.ID == u.asked && (m.Kind == wire.Response || m.Kind == wire.ErrorResponse):
		u.asked, u.due = wire.ID{}, time.Time{}
		if u.legacy {
			u.initialized(m, now)
		} else {
			u.answered(m, now)
		}
	case isOwn(m.ID):
		m.Release() // late
	case u.unasked() && m.Kind == wire.Request && m.Method == mcpmsg.Ping:
		u.reply(m.ID, []byte("{}"))
		m.Release()
	case u.unasked() && m.Kind == wire.Request:
		u.refuse(m.ID, errCannotAsk)
		m.Release()
	case u.unasked() && m.Kind == wire.Notification:
		m.Release()
	default:
		u.pass(m)
	}
}

// unasked reports whether the client is a modern one, which a server neither asks nor tells
// anything that it has not asked for.
func (u *undecided) unasked() bool { return u.probes || u.first != nil && !u.legacy }

// unreachable reports whether m says that the server cannot be reached, in either era.
func unreachable(m *wire.Message) bool {
	return m != nil && m.Local && (errors.Is(m.Cause, wire.ErrUnreachable) || errors.Is(m.Cause, wire.ErrSessionGone))
}

// answered takes the answer to the client's own server/discover.
func (u *undecided) answered(m *wire.Message, now time.Time) {
	switch {
	case isDiscovery(m):
		u.pass(m)
		u.become(newToModern(u.sides), nil, now)
	case unreachable(m), isModernRefusal(m): // it is the client's to ask again
		u.pass(m)
		u.again(now)
	default:
		m.Release()
		u.become(newToLegacy(u.sides), u.first, now)
	}
}

// discovered takes the answer to our own server/discover; m is nil if none came.
func (u *undecided) discovered(m *wire.Message, now time.Time) {
	switch {
	case isDiscovery(m):
		u.become(newToModern(u.sides), u.first, now)
	case isModernRefusal(m) && !u.second:
		u.second = true
		u.ask(mcpmsg.Discover, u.discovery(), wire.Route{Version: modernVersion}, now, u.discovered)
	case unreachable(m):
		if u.first.Kind == wire.Request {
			u.failLike(m, u.first.ID)
		}
		u.again(now)
	default:
		u.become(newToLegacy(u.sides), u.first, now)
	}
}

// failLike gives the client the error that we were given.
func (s *sides) failLike(m *wire.Message, id wire.ID) {
	like := m.Clone()
	like.ID = id
	s.pass(like)
}

// initialized takes the answer to the client's own initialize.
func (u *undecided) initialized(m *wire.Message, now time.Time) {
	if m.Kind == wire.Response && m.Result.Get("protocolVersion").Text() < modernVersion {
		t := newToLegacy(u.sides)
		t.native, t.phase = true, ready
		t.greeted(m)
		u.pass(m)
		u.next = t
		return
	}
	if unreachable(m) {
		u.pass(m)
		u.again(now)
		return
	}
	first := u.first
	u.ask(mcpmsg.Discover, u.discovery(), wire.Route{Version: modernVersion}, now, func(d *wire.Message, now time.Time) {
		if !isDiscovery(d) {
			u.pass(m)
			u.again(now)
			return
		}
		m.Release()
		t := newToModern(u.sides)
		t.discovered(d)
		u.become(t, first, now)
	})
}

// become lets t take over, from first on.
func (u *undecided) become(t translator, first *wire.Message, now time.Time) {
	u.next = t
	if first != nil {
		t.client(first, now)
	}
	for _, out := range u.held {
		t.client(out, now)
	}
	u.held = nil
}

// again begins anew with what was held.
func (u *undecided) again(now time.Time) {
	held := u.held
	u.first, u.held, u.legacy = nil, nil, false
	for _, out := range held {
		u.client(out, now)
	}
}

// violation takes bytes of the server that are not an acceptable message.
func (u *undecided) violation(v *wire.Violation, now time.Time) {
	if e := u.errands[v.ID]; e != nil {
		delete(u.errands, v.ID)
		e.then(nil, now)
		return
	}
	if !u.asked.IsZero() && v.ID == u.asked && !u.legacy && v.Kind != wire.Request {
		u.asked, u.due = wire.ID{}, time.Time{}
		u.become(newToLegacy(u.sides), u.first, now)
		return
	}
	u.down = append(u.down, item{v: v})
}

func (u *undecided) tick(now time.Time) {
	u.overdue(now)
	if !u.due.IsZero() && !now.Before(u.due) {
		u.asked, u.due = wire.ID{}, time.Time{}
		u.become(newToLegacy(u.sides), u.first, now)
	}
}

func (u *undecided) passage() passage { return noPassage }

func (u *undecided) pending() time.Time { return earlier(u.due, u.nextDue()) }
