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
	s, bad := x.session(version)
	switch {
	case bad != nil:
	case m.Kind == Request && m.Method == methodInitialize:
		bad = &errAgain
	case m.Kind == Request && x.f.isDraining():
		bad = &errEnding
	}
	if bad != nil {
		x.reject(asked, *bad)
		m.Release()
		return
	}
	s.enter()
	defer s.leave()
	if !x.converse(s, asked, m) {
		m.Release()
		x.reject(asked, errNoSession)
	}
}

// initialize begins a session; it is kept if the server agrees to a version.
func (x *exchange) initialize(m *Message) {
	asked := m.ID
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

// session finds the legacy session that the headers name.
func (x *exchange) session(version string) (*FrontSession, *rejection) {
	id, once := single(x.r.Header, headerSession)
	if !once {
		return nil, &errRepeated
	}
	if id == "" {
		return nil, &errNoID
	}
	s := x.f.lookup(id, x.principal)
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
	version, _ := single(x.r.Header, headerVersion)
	s, bad := x.session(version)
	if bad != nil {
		x.reject(ID{}, *bad)
		return
	}
	var no, last int64
	id, once := single(x.r.Header, headerEvent)
	resume := id != ""
	if resume || !once {
		var ok bool
		if no, last, ok = parseEventID(id); !ok || !once {
			x.reject(ID{}, errEvent)
			return
		}
	}
	st, turn, ok := s.attach(no, last, resume)
	if !ok {
		x.reject(ID{}, errEvent)
		return
	}
	s.enter()
	defer s.leave()
	p := pump{exchange: x, st: st, turn: turn, stream: true}
	p.begin(-1)
	p.run()
}

// delete ends a legacy session.
func (x *exchange) delete() {
	version, _ := single(x.r.Header, headerVersion)
	s, bad := x.session(version)
	if bad != nil {
		x.reject(ID{}, *bad)
		return
	}
	x.f.forget(s)
	s.end()
	x.w.WriteHeader(http.StatusNoContent)
}
