// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// A connection is one of a Conn to its server. Until the server is admitted it is read, by the check;
// what is not read waits, and so does the server. Then what comes goes to the client.
type connection struct {
	wire.Conn
	c      *Conn
	in     chan received
	opened chan struct{} // closed once what comes goes to the client
	ended  chan struct{} // closed once over is set
	over   error         // why nothing comes any more
	life   context.Context
	end    context.CancelFunc // of life: the Conn has left the connection
}

// received is what Read returns.
type received struct {
	m *wire.Message
	v *wire.Violation
}

var (
	_ wire.ReadConn = (*connection)(nil)
	_ wire.Receiver = (*connection)(nil)
)

func newConnection(c *Conn, conn wire.Conn) *connection {
	l := &connection{Conn: conn, c: c, in: make(chan received), opened: make(chan struct{}), ended: make(chan struct{})}
	l.life, l.end = context.WithCancel(c.ctx)
	return l
}

// Read is for the check.
func (l *connection) Read(ctx context.Context) (*wire.Message, error) {
	select {
	case in := <-l.in:
		if in.v != nil {
			return nil, in.v
		}
		return in.m, nil
	case <-l.ended:
		return nil, l.over
	case <-l.life.Done():
		return nil, wire.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements wire.Conn. That the server has closed the connection is not taken for an end by this side.
func (l *connection) Write(ctx context.Context, out *wire.Message) error {
	err := l.Conn.Write(ctx, out)
	if errors.Is(err, wire.ErrClosed) && l.life.Err() == nil {
		return wire.ErrPeerClosed
	}
	return err
}

// Close ends the connection. What waits to be read is lost.
func (l *connection) Close() error {
	l.end()
	return l.Conn.Close()
}

// passes waits until what has come may go to the client; false if the check has taken it, or the
// connection was left.
func (l *connection) passes(in received) bool {
	select {
	case l.in <- in: // which is not read any more once the connection is opened
		return false
	case <-l.opened:
	case <-l.life.Done():
	}
	return l.life.Err() == nil
}

// Message implements wire.Receiver.
func (l *connection) Message(m *wire.Message) {
	if l.passes(received{m: m}) {
		l.c.r.Message(m)
	}
}

// Violation implements wire.Receiver.
func (l *connection) Violation(v *wire.Violation) {
	if l.passes(received{v: v}) {
		l.c.r.Violation(v)
	}
}

// Ended implements wire.Receiver.
func (l *connection) Ended(err error) {
	l.over = err
	close(l.ended)
	select {
	case <-l.opened:
		l.c.end(err)
	default: // open sees to it, if the server is admitted
	}
}

// open gives the client what the server has said meanwhile: the answer at once, and the rest when
// met is closed, if it is set. Then everything that comes goes there.
func (l *connection) open(answer *wire.Message, kept []*wire.Message, met <-chan struct{}) {
	if answer != nil {
		l.c.r.Message(answer)
	}
	if len(kept) > 0 && met != nil {
		select {
		case <-met:
		case <-l.life.Done():
		}
	}
	for _, m := range kept {
		if l.life.Err() == nil {
			l.c.r.Message(m)
		}
	}
	close(l.opened)
	select {
	case <-l.ended:
		l.c.end(l.over)
	default: // Ended will
	}
}
