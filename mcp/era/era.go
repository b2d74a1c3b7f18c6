// SPDX-License-Identifier: Apache-2.0

// Package era lets an MCP client of one era speak to a server of the other.
//
// The legacy era (2024-11-05 to 2025-11-25) begins with initialize, keeps a
// session, and its servers send requests of their own. In the modern era
// (2026-07-28) every request names its revision and the client's capabilities in
// _meta, a server asks by answering that it needs input (MRTR), and notifies only
// those who listen.
//
//	legacy                                modern
//	initialize, initialized               server/discover
//	clientInfo, capabilities, once        _meta of every request
//	logging/setLevel                      _meta logLevel of every request
//	elicitation, sampling, roots          inputRequests → inputResponses, requestState
//	resources/subscribe, list_changed     subscriptions/listen
//	ping                                  –
//	–                                     resultType, ttlMs, cacheScope
//
// The translation stands around the Conn of the server, so that the boundary inspects the
// translated messages like any other message of a server. A message that needs no translation
// passes unchanged. In a translated message only the translated members change; all other
// bytes stay.
package era

import (
	"crypto/rand"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Options bounds a translation. The zero value is strict.
type Options struct {
	// DangerouslyAllowSampling lets servers of the other era send text to the
	// client's model. Otherwise they get the error that the client cannot sample.
	DangerouslyAllowSampling bool

	Patience time.Duration    // for the answer to a request that this package sends; 0 = 10 s
	hold     time.Duration    // for the client to give the input that a call needs; 0 = 10 min
	parked   int              // calls that wait for input at the same time; 0 = 64
	rounds   int              // of input for one call; 0 = 10
	rand     io.Reader        // of handles; nil = crypto/rand
	now      func() time.Time // nil = time.Now
}

const (
	defaultPatience = 10 * time.Second
	defaultHold     = 10 * time.Minute
	defaultParked   = 64
	defaultRounds   = 10
)

func (o Options) orDefault() Options {
	if o.Patience <= 0 {
		o.Patience = defaultPatience
	}
	if o.hold <= 0 {
		o.hold = defaultHold
	}
	if o.parked <= 0 {
		o.parked = defaultParked
	}
	if o.rounds <= 0 {
		o.rounds = defaultRounds
	}
	if o.rand == nil {
		o.rand = rand.Reader
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// Adapt returns a Conn to the server at up for one client of either era. The
// server is first spoken to in the era that the client's first message shows,
// and only if it does not answer acceptably in the other.
func Adapt(up wire.Conn, o Options) *Conn {
	c := newConn(up, o)
	c.t = &undecided{sides: c.s}
	return c
}

// Upstream is Adapt for a client of the modern era, which may begin with any request: before
// the first of them the server is asked by server/discover of which era it is. Whatever is not
// a modern server's answer, silence included, means legacy, unless the server cannot be
// reached: then it is asked again with the client's next request.
func Upstream(up wire.Conn, o Options) *Conn {
	c := newConn(up, o)
	c.t = &undecided{sides: c.s, probes: true}
	return c
}
