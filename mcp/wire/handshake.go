// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
)

// Handshake is what a client has told a legacy server that the server has to be told again once it has
// forgotten the session: initialize, the log level and the subscriptions.
type Handshake struct {
	Params  []byte // of initialize
	Version string // that client and server have agreed upon; empty before that
	id      ID     // of initialize, while it is under way
	ready   bool   // the client has sent notifications/initialized
	level   []byte // params of the last logging/setLevel
	watched map[string][]byte
}

const maxWatched = 1024

// Note keeps what out says, if the server has to be told it again.
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

// Clone is a copy that stays as it is.
func (h *Handshake) Clone() *Handshake {
	c := *h
	c.watched = maps.Clone(h.watched)
	return &c
}

// A Greeted is a server that is told a Handshake again.
type Greeted interface {
	// Ask sends a request and returns the answer.
	Ask(ctx context.Context, method string, params []byte) (*Message, error)
	// Initialized sends notifications/initialized. version is what the server has answered.
	Initialized(ctx context.Context, version string, ready bool) error
}

var errNotInitialized = errors.New("wire: the server would not be initialized again")

// Replay brings a server to where it was. It returns the notifications by which the client
// learns that every list of the server may have changed.
func (h *Handshake) Replay(ctx context.Context, to Greeted) (changed []string, err error) {
	m, err := to.Ask(ctx, methodInitialize, h.Params)
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
	version := strings.Clone(m.Result.Get("protocolVersion").Text())
	m.Release()
	if err := to.Initialized(ctx, version, h.ready); err != nil || !h.ready {
		return changed, err
	}
	if h.level != nil {
		if err := h.again(ctx, to, methodSetLevel, h.level); err != nil {
			return nil, err
		}
	}
	for _, params := range h.watched {
		if err := h.again(ctx, to, methodSubscribe, params); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// again repeats a request. That the server refuses it changes nothing.
func (h *Handshake) again(ctx context.Context, to Greeted, method string, params []byte) error {
	m, err := to.Ask(ctx, method, params)
	m.Release()
	if _, refused := errors.AsType[StatusError](err); refused {
		return nil
	}
	return err
}
