// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Handshake holds the messages of a client that a legacy server needs again after it has forgotten
// the session: initialize, the log level and the subscriptions.
type Handshake struct {
	Params  []byte // of initialize
	Version string // that client and server have agreed upon
	id      ID     // of initialize, while it is under way
	ready   bool   // the client has sent notifications/initialized
	level   []byte // params of the last logging/setLevel
	watched map[string][]byte
}

const maxWatched = 1024

// Note keeps out if a new session of the server needs it.
func (h *Handshake) Note(out *Message) {
	switch out.Method {
	case methodInitialize, methodSetLevel, methodSubscribe, methodUnsubscribe:
	case methodInitialized:
		h.ready = true
		return
	default:
		return
	}
	if out.Parse() != nil {
		return
	}
	params := bytes.Clone(out.Params.Raw())
	uri := out.Params.Get("uri").Text()
	switch out.Method {
	case methodInitialize:
		*h = Handshake{id: out.ID, Params: params}
	case methodSetLevel:
		h.level = params
	case methodSubscribe:
		if h.watched == nil {
			h.watched = map[string][]byte{}
		}
		if len(h.watched) < maxWatched {
			h.watched[strings.Clone(uri)] = params
		}
	case methodUnsubscribe:
		delete(h.watched, uri)
	}
}

// Answered takes the server's answer to initialize, and reports whether m is it.
func (h *Handshake) Answered(m *Message) bool {
	if m.Kind != Response || m.ID.IsZero() || m.ID != h.id {
		return false
	}
	h.id, h.Version = ID{}, strings.Clone(m.Result.Get("protocolVersion").Text())
	return true
}

// UnderWay reports whether initialize has no answer yet.
func (h *Handshake) UnderWay() bool { return !h.id.IsZero() }

// Clone returns a copy that later messages do not change.
func (h *Handshake) Clone() *Handshake {
	c := *h
	c.watched = maps.Clone(h.watched)
	return &c
}

// A Greeted is a server with which a Handshake is repeated.
type Greeted interface {
	// Ask sends a request and returns the answer.
	Ask(ctx context.Context, request *Message) (*Message, error)
	// Notify sends a notification.
	Notify(ctx context.Context, m *Message) error
}

var errNotInitialized = errors.New("wire: the server would not be initialized again")

// ErrChangedVersion means that the server answers initialize with another version than before.
var ErrChangedVersion = errors.New("wire: the server speaks another revision than before")

// Replay repeats the handshake with a server. It returns the notifications by which the client
// learns that every list of the server may have changed. Without sameVersion the server may have
// learned another legacy version.
func (h *Handshake) Replay(ctx context.Context, to Greeted, sameVersion bool) (changed []string, err error) {
	asked := 0
	ask := func(method string, params []byte) (*Message, error) {
		asked++
		return to.Ask(ctx, NewRequest(StringID("pellucid-"+strconv.Itoa(asked)), method, params))
	}
	m, err := ask(methodInitialize, h.Params)
	if err != nil {
		return nil, err
	}
	if m.Kind != Response {
		return nil, errNotInitialized
	}
	for _, kind := range [...]string{"tools", "prompts", "resources"} {
		if m.Result.Get("capabilities").Get(kind).Exists() {
			changed = append(changed, "notifications/"+kind+"/list_changed")
		}
	}
	version := m.Result.Get("protocolVersion").Text()
	accepted := version == h.Version || !sameVersion && IsLegacy(version)
	m.Release()
	if !accepted {
		return nil, ErrChangedVersion
	}
	if !h.ready {
		return changed, nil
	}
	if err := to.Notify(ctx, NewRequest(ID{}, methodInitialized, nil)); err != nil {
		return nil, err
	}
	repeat := func(method string, params []byte) error {
		m, err := ask(method, params)
		m.Release()
		if _, refused := errors.AsType[StatusError](err); refused {
			return nil // the session works without it
		}
		return err
	}
	if h.level != nil {
		if err := repeat(methodSetLevel, h.level); err != nil {
			return nil, err
		}
	}
	for _, params := range h.watched {
		if err := repeat(methodSubscribe, params); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// serverSession is the part of a session that a Conn needs when a new session takes its place.
type serverSession struct {
	past  Handshake
	asked map[ID]bool // requests of the server without an answer
}

// noteSent notes a message to the server. It reports false for an answer to a request that the
// server does not know any more.
func (s *serverSession) noteSent(m *Message) bool {
	if m.answers() {
		asked := s.asked[m.ID]
		delete(s.asked, m.ID)
		return asked
	}
	if !modern(m.Route.Version) {
		s.past.Note(m)
	}
	return true
}

// noteReceived notes a message from the server. A request beyond maxAsked gets no answer.
func (s *serverSession) noteReceived(m *Message) {
	switch {
	case m.answers():
		s.past.Answered(m)
	case m.Kind == Request && len(s.asked) < maxAsked:
		s.asked[m.ID] = true
	}
}

// dropRequests forgets the requests of the server and returns their ids.
func (s *serverSession) dropRequests() []ID {
	ids := slices.Collect(maps.Keys(s.asked))
	clear(s.asked)
	return ids
}
