// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"bytes"
	"context"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// An Opening is the beginning of a client's conversation with a server, in which the
// server's surface is collected before the client hears anything: so that a server
// that is a process need not be started a second time. The requests are the client's
// own as far as it has any; the others have numbers that no client comes to.
type Opening struct {
	// Answer is the server's to the client's initialize, once Initialize has returned.
	// It is the caller's to release.
	Answer *wire.Message
	// Kept are the requests and notifications of the server that came meanwhile, but for
	// ping, in order. They are the caller's.
	Kept []*wire.Message

	conn wire.ReadConn
	opt  CollectOptions
	last int64
}

const (
	// firstOwn is the first number of requests of our own. None is used twice in a
	// conversation, and a client would have to ask a thousand million times before.
	firstOwn = 1 << 30
	// maxKept bounds what a server has to say before it was heard. More requests are
	// refused, and more notifications lost.
	maxKept = 64
)

// NewOpening returns the Opening of a conversation over a fresh Conn.
func NewOpening(c wire.ReadConn, opt CollectOptions) *Opening {
	if opt.Timeout <= 0 {
		opt.Timeout = 30 * time.Second
	}
	return &Opening{conn: c, opt: opt, last: firstOwn}
}

func (o *Opening) talk(modern bool) *talk {
	t := &talk{conn: o.conn, opt: o.opt, modern: modern, id: o.last}
	t.others = func(ctx context.Context, m *wire.Message) error {
		if len(o.Kept) >= maxKept || m.Kind == wire.Request && m.Method == mcpmsg.Ping {
			return t.declined(ctx, m)
		}
		o.Kept = append(o.Kept, m)
		return nil
	}
	return t
}

// Discover asks the server whether it speaks the modern era, and collects its surface
// if it does. Else both are nil, and the server has yet to be greeted. The error is as
// Collect's: the Conn is of no further use then.
func (o *Opening) Discover(ctx context.Context) (*Surface, error) {
	t := o.talk(true)
	defer func() { o.last = t.id }()
	hello, err := t.discover(ctx)
	if err != nil || !t.modern {
		return nil, err
	}
	return t.gather(ctx, mcpmsg.Discover, hello)
}

// Initialize sends the client's initialize, keeps its Answer, greets the server, and
// collects its surface. The client's own greeting must not reach the server any more.
// The error is as Collect's.
func (o *Opening) Initialize(ctx context.Context, initialize *wire.Message) (*Surface, error) {
	t := o.talk(false)
	defer func() { o.last = t.id }()
	one, stop := context.WithTimeout(ctx, o.opt.Timeout)
	defer stop()
	m, err := t.exchange(one, ctx, initialize.Clone())
	if err != nil {
		return nil, err
	}
	o.Answer = m
	if m.Kind == wire.ErrorResponse {
		said := answerError(m)
		return nil, &RefusedError{NoServer, mcpmsg.Initialize, wire.RefusedWith(said.code, said.message, said)}
	}
	if err := t.write(one, wire.NewRequest(wire.ID{}, mcpmsg.Initialized, nil)); err != nil {
		return nil, err
	}
	s, err := gather(ctx, mcpmsg.Initialize, bytes.Clone(m.Result.Raw()), t.ask, o.opt)
	if err == nil {
		s.able = declared(initialize)
	}
	return s, err
}
