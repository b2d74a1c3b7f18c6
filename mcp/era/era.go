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
// A wrapper stands around the Conn of the server, so that what it makes of the
// server's messages is inspected like anything else that a server sends. What
// needs no translation passes as it is; what does keeps its bytes but for what
// the translation changes.
package era

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Options bounds a translation. The zero value is strict.
type Options struct {
	// DangerouslyAllowSampling lets servers of the other era put words before
	// the client's model. Otherwise they are told that the client cannot sample.
	DangerouslyAllowSampling bool

	Patience time.Duration    // with a server that owes an answer to a request of ours; 0 = 10 s
	hold     time.Duration    // of a call whose client was asked for input; 0 = 10 min
	parked   int              // such calls at once; 0 = 64
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
func Adapt(up wire.ReadConn, o Options) *Conn {
	c := newConn(up, o)
	c.t = &undecided{sides: c.s}
	return c
}

// Upstream asks the server at up, by server/discover, of which era it is, and
// returns a Conn to it for one client of either era. Whatever is not a modern
// server's answer, silence included, means legacy. The error is that of up, or
// ctx's; up is not closed then.
func Upstream(ctx context.Context, up wire.ReadConn, o Options) (*Conn, wire.Era, error) {
	o = o.orDefault()
	c := newConn(up, o)
	modern, err := probe(ctx, c)
	switch {
	case err != nil:
		return nil, wire.Legacy, err
	case modern:
		c.t = newToModern(c.s)
		return c, wire.Modern, nil
	}
	c.t = newToLegacy(c.s)
	return c, wire.Legacy, nil
}

const maxEarly = 64 // messages that a server may send before it answers the probe

func probe(ctx context.Context, c *Conn) (modern bool, err error) {
	within, stop := context.WithTimeout(ctx, c.s.o.Patience)
	defer stop()
	id, err := c.sayHello(within)
	if err != nil {
		return false, err
	}
	for again := true; ; {
		m, err := c.up.Read(within)
		var v *wire.Violation
		switch {
		case errors.As(err, &v) && v.ID == id:
			return false, nil
		case errors.As(err, &v):
			c.early = append(c.early, item{err: err})
		case err != nil && within.Err() != nil && ctx.Err() == nil:
			return false, nil
		case err != nil:
			return false, err
		case m.ID == id && m.Kind == wire.ErrorResponse && m.Local && errors.Is(m.Cause, wire.ErrUnreachable):
			return false, m.Cause
		case m.ID == id && again && isModernRefusal(m):
			m.Release()
			again = false
			if id, err = c.sayHello(within); err != nil {
				return false, err
			}
		case m.ID == id && (m.Kind == wire.Response || m.Kind == wire.ErrorResponse):
			modern = isDiscovery(m)
			m.Release()
			return modern, nil
		default:
			c.early = append(c.early, item{m: m})
		}
		if len(c.early) > maxEarly {
			return false, errors.New("era: server does not answer the first request")
		}
	}
}

// sayHello asks the server what it is.
func (c *Conn) sayHello(ctx context.Context) (wire.ID, error) {
	id := c.s.ownID()
	m := wire.NewRequest(id, mcpmsg.Discover, []byte(probeParams))
	m.Route.Version = modernVersion
	return id, c.up.Write(ctx, m)
}
