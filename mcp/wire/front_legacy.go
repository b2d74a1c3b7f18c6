// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"slices"
)

// What the revisions before 2026-07-28 have beside messages that stand for themselves:
// sessions that begin with initialize, a stream to listen on, and an end.

// legacy answers one message of a session, or begins one.
func (x *exchange) legacy(m *Message, version string) {
	asked := m.ID
	if m.Kind != Request {
		asked = ID{}
	}
	_, has := x.r.Header[headerSession]
	if m.Kind == Request && m.Method == methodInitialize && !has {
		if version != "" && !slices.Contains(versions, version) {
			x.reject(asked, unsupported(version))
			m.Release()
			return
		}
		x.initialize(m)
		return
	}
	why := errFull // the session came back each time, and made room for others before the request reached it
	for range attempts {
		s, bad := x.session(version, m)
		if bad == nil && m.Kind == Request && m.Method == methodInitialize {
			bad = &errAgain
		}
		if bad == nil && m.Kind == Request && x.f.refuses() {
			bad = &errEnding
		}
		if bad == nil {
			bad = x.note(s, m)
		}
		if bad != nil {
			// A session that was open when the Forwarder looked may have ended here since: another process serves it then.
			if ended := x.f.isDraining() && !x.began; !ended || !x.forwardSession() {
				x.turnAway(asked, *bad)
			}
			m.Release()
			return
		}
		if s.isRepeated(m) {
			m.Release()
			x.w.WriteHeader(http.StatusAccepted)
			return
		}
		s.enter()
		done := x.converse(s, asked, m)
		s.leave()
		if done {
			return
		}
		if !s.survives() {
			why = errNoSession
			break
		}
		x.f.forget(s)                            // it comes back
		if x.began && x.f.opt.Forwarder != nil { // the answer of another process would stand in the midst of a stream
			m.Release()
			x.turnAway(asked, errNoOwner)
			return
		}
		if x.forwardSession() {
			m.Release()
			return
		}
	}
	m.Release()
	x.turnAway(asked, why)
}

// refuses reports whether a session takes no more requests.
func (f *Front) refuses() bool {
	return f.isDraining() && (f.opt.Registry == nil || f.refusing.Load())
}

// turnAway rejects a message of a session. Where the session may be brought back later the client must
// keep it: SDKs end a session after a status of failure, and not after a JSON-RPC error. A
// notification has no answer; the operator is told that it was lost.
func (x *exchange) turnAway(asked ID, why rejection) {
	if x.f.opt.Registry != nil && why.status == http.StatusServiceUnavailable {
		if why.status = http.StatusOK; asked.IsZero() {
			x.f.notice("a notification or answer of a client was dropped: " + why.text)
			x.w.WriteHeader(http.StatusAccepted)
			return
		}
	}
	x.reject(asked, why)
}

// turnListenerAway is turnAway for a client that wants to listen. It gets a stream that ends at once: SDKs then ask
// again after a while, and some end a session where the status is one of failure.
func (x *exchange) turnListenerAway(why rejection) {
	if x.f.opt.Registry == nil || why.status != http.StatusServiceUnavailable {
		x.reject(ID{}, why)
		return
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	_, _ = x.w.Write([]byte(retryWait + "\n"))
}

// isRepeated reports whether the client says again what was said for it when the session was brought
// back.
func (s *FrontSession) isRepeated(m *Message) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revived && m.Method == methodInitialized
}

// initialize begins a session; it is kept if the server agrees to a version.
func (x *exchange) initialize(m *Message) {
	asked := m.ID
	if x.f.opt.Forwarder != nil && len(m.Params.Raw()) > maxOpening { // no other process could serve the session
		m.Release()
		x.reject(asked, errTooLong)
		return
	}
	if x.forward(Forwardable{Begins: true}) {
		m.Release()
		return
	}
	s := x.f.begin(x.principal)
	if s == nil {
		m.Release()
		x.reject(asked, x.noRoom())
		return
	}
	s.enter()
	defer s.leave()
	if !x.converse(s, asked, m) {
		m.Release()
		x.reject(asked, errNoServer)
	}
	if s.negotiated() == "" {
		x.f.forget(s)
		s.end()
	}
}

// session finds the legacy session that the headers name. m is the request that is for it, if it is one.
func (x *exchange) session(version string, m *Message) (*FrontSession, *rejection) {
	id, once := single(x.r.Header, headerSession)
	if !once {
		return nil, &errRepeated
	}
	if id == "" {
		return nil, &errNoID
	}
	s := x.f.lookup(id, x.principal)
	if s == nil && x.f.opt.Registry != nil {
		var bad *rejection
		if s, bad = x.revive(id, version, m); bad != nil {
			return nil, bad
		}
	}
	if s == nil {
		return nil, &errNoSession
	}
	if version != "" && !slices.Contains(versions, version) && version != s.negotiated() {
		u := unsupported(version)
		return nil, &u
	}
	return s, nil
}

// get lets a legacy client listen, or go on with a stream that broke.
func (x *exchange) get() {
	if _, streamOK := accepts(x.r.Header["Accept"]); !streamOK {
		x.reject(ID{}, errAcceptGet)
		return
	}
	if x.forwardSession() {
		return
	}
	version, _ := single(x.r.Header, headerVersion)
	s, bad := x.session(version, nil)
	if bad != nil {
		x.turnListenerAway(*bad)
		return
	}
	event := eventID{life: s.life}
	header, once := single(x.r.Header, headerEvent)
	if header != "" || !once {
		var ok bool
		if event, ok = parseEventID(header); !ok || !once {
			x.reject(ID{}, errEvent)
			return
		}
		event.given = true
	}
	st, turn, ok := x.resume(s, event)
	if !ok {
		return
	}
	s.enter()
	defer s.leave()
	p := pump{exchange: x, st: st, turn: turn, stream: true}
	_ = p.begin(-1) // the session has its name
	_ = p.flush()   // the client learns that the stream goes on
	p.run()
}

// delete ends a legacy session.
func (x *exchange) delete() {
	if x.forwardSession() {
		return
	}
	version, _ := single(x.r.Header, headerVersion)
	if id, once := single(x.r.Header, headerSession); x.f.opt.Registry != nil && once && id != "" {
		if bad := x.finishSession(id); bad != nil {
			x.reject(ID{}, *bad)
		}
		return
	}
	s, bad := x.session(version, nil)
	if bad != nil {
		x.reject(ID{}, *bad)
		return
	}
	x.f.forget(s)
	s.end()
	x.w.WriteHeader(http.StatusNoContent)
}
