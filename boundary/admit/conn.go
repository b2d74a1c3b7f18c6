// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Conn is a wire.ReadConn to a server that is checked over the very connection which its
// one client uses afterwards, so that a server that is a process starts once. The
// client's own first request opens the conversation, and its answer waits until the
// server is admitted. Where that cannot be, the server is checked over a connection of
// its own (Config.Collect) and reached anew:
//
//   - the first thing that it was asked made it end;
//   - it answers no list before the client has answered it;
//   - it speaks the older era and its client asks for something without a handshake, so
//     that there is no client's to use.
type Conn struct {
	server *Server
	dial   func(context.Context) (wire.ReadConn, error)
	opt    surface.CollectOptions
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	done   chan struct{} // run has returned

	early chan *wire.Message // for the client, before the server is admitted
	more  chan struct{}      // something waits
	ready chan struct{}      // closed once the server may be used, or err is set
	met   chan struct{}      // closed once the client has heard the answer and says more

	mu      sync.Mutex
	waiting []*wire.Message // what the client has said before ready
	conn    wire.ReadConn   // nil: none yet, or none any more
	closed  bool
	open    bool
	greeted bool // the client's greeting must not reach the server a second time
	meet    sync.Once

	err  error           // of ready
	said []*wire.Message // of the server, before ready; of Read
	kept int             // how many of the last of said wait for met
}

// maxWaiting bounds what a client says before the server is admitted; then it waits.
const maxWaiting = 16

// errCut: the sessions of the server must end.
var errCut = errors.New("admit: rejected after all")

// Conn dials, and begins the check with the client's first request. Reading returns the
// reason why a server is not admitted, see Verify. version is the client's that
// collects. The error is dial's.
func (s *Server) Conn(ctx context.Context, dial func(context.Context) (wire.ReadConn, error), version string) (*Conn, error) {
	c := &Conn{server: s, dial: dial, opt: surface.CollectOptions{Version: version}, done: make(chan struct{}),
		early: make(chan *wire.Message), more: make(chan struct{}, 1), ready: make(chan struct{}), met: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(ctx)
	if err := c.redial(ctx); err != nil {
		c.stop()
		return nil, err
	}
	go func() {
		defer close(c.done)
		defer close(c.ready)
		c.err = c.run()
	}()
	return c, nil
}

// Err is why the server was not admitted; nil if it was, or was not asked to the end.
func (c *Conn) Err() error {
	select {
	case <-c.ready:
	default:
		return nil
	}
	if errors.Is(c.err, context.Canceled) || errors.Is(c.err, wire.ErrClosed) {
		return nil
	}
	return c.err
}

// run has the server checked.
func (c *Conn) run() error {
	for {
		first, err := c.first()
		if err != nil {
			return err
		}
		limit := c.server.config().Policy.Timeout
		ctx, stop := context.WithTimeoutCause(c.ctx, limit, late(limit))
		s, o, err := c.collect(ctx, first)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		stop()
		if errors.Is(err, errLegacy) {
			if err := c.refuse(first, wire.CodeNoMethod, textNoMethod); err != nil {
				return err
			}
			continue
		}
		collected := err
		err = c.server.verifyBy(c.ctx, func(context.Context) (*surface.Surface, error) { return s, collected })
		if errors.Is(err, ErrRejected) {
			_ = c.refuse(first, wire.CodeRejected, textRejected)
		}
		if err != nil {
			return err
		}
		return c.admitted(first, o)
	}
}

// errLegacy: the server does not know what the client has asked of it, and the client
// will greet it in the older way.
var errLegacy = errors.New("admit: the server is of the older era")

// collect lists the surface in the way that a request of the client begins. o is nil if
// the connection is a new one by then.
func (c *Conn) collect(ctx context.Context, first *wire.Message) (s *surface.Surface, o *surface.Opening, err error) {
	conn := c.current()
	if conn == nil {
		return nil, nil, wire.ErrClosed
	}
	o = surface.NewOpening(conn, c.opt)
	switch first.Method {
	case mcpmsg.Initialize:
		s, err = o.Initialize(ctx, first)
	default:
		s, err = o.Discover(ctx)
	}
	switch {
	case c.mayAgain(ctx, first, o, err):
	case err != nil || s != nil:
		return s, o, err
	case first.Method == mcpmsg.Discover:
		return nil, nil, errLegacy
	}
	c.drop()
	if first.Method == mcpmsg.Discover { // it has ended
		if err := c.redial(ctx); err != nil {
			return nil, nil, err
		}
		return nil, nil, errLegacy
	}
	if s, err = c.server.config().Collect(ctx, false); err != nil {
		return nil, nil, err
	}
	return s, nil, c.redial(ctx)
}

// mayAgain reports whether a new connection may have what this one has not.
func (c *Conn) mayAgain(ctx context.Context, first *wire.Message, o *surface.Opening, err error) bool {
	var refused *surface.RefusedError
	if !errors.As(err, &refused) || refused.Reason != surface.NoAnswer || ctx.Err() != nil || errors.Is(err, wire.ErrUnreachable) {
		return false
	}
	return first.Method != mcpmsg.Initialize ||
		slices.ContainsFunc(o.Kept, func(m *wire.Message) bool { return m.Kind == wire.Request })
}

// admitted lets the client and the server talk.
func (c *Conn) admitted(first *wire.Message, o *surface.Opening) error {
	c.mu.Lock()
	if o != nil {
		if o.Answer != nil {
			c.said, c.greeted = append(c.said, o.Answer), true
		}
		c.said, c.kept = append(c.said, o.Kept...), len(o.Kept)
	}
	if !c.greeted {
		c.waiting = append([]*wire.Message{first}, c.waiting...)
		c.kept = 0
	}
	c.mu.Unlock()
	for {
		conn, waiting := c.turn()
		if conn == nil {
			return wire.ErrClosed
		}
		if waiting == nil {
			return nil
		}
		for _, out := range waiting {
			if err := c.forward(c.ctx, conn, out); err != nil {
				return err
			}
		}
	}
}

// turn takes what waits; where nothing does, Write goes to the connection from now on.
// The lock is not held while the server is written to: one that does not read must not
// keep anybody from closing the connection.
func (c *Conn) turn() (wire.ReadConn, []*wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.waiting = nil
	c.open = waiting == nil
	return c.conn, waiting
}

// first waits for the first request of the client, which may be any but is most often
// initialize. What comes before has no meaning yet.
func (c *Conn) first() (*wire.Message, error) {
	for {
		c.mu.Lock()
		for len(c.waiting) > 0 {
			out := c.waiting[0]
			c.waiting = c.waiting[1:]
			if out.Kind == wire.Request {
				c.mu.Unlock()
				return out, nil
			}
		}
		c.mu.Unlock()
		select {
		case <-c.more:
		case <-c.ctx.Done():
			return nil, c.ctx.Err()
		}
	}
}

// What a client is told without a word of the server's.
const (
	textNoMethod = "pellucid: method not found"
	textRejected = "pellucid: the server is rejected, its operator knows why"
)

// refuse answers the client in the server's place.
func (c *Conn) refuse(out *wire.Message, code int, text string) error {
	m := wire.NewError(out.ID, fmt.Appendf(nil, `{"code":%d,"message":%q}`, code, text))
	if err := m.Parse(); err != nil {
		return err
	}
	select {
	case c.early <- m:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (c *Conn) current() wire.ReadConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn
}

// redial makes a new connection the current one.
func (c *Conn) redial(ctx context.Context) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return wire.ErrClosed
	}
	c.conn = conn
	return nil
}

// drop closes the current connection.
func (c *Conn) drop() {
	c.mu.Lock()
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	if conn != nil {
		_ = conn.Close()
	}
}

// forward writes what the client says, but for its greeting where the server was
// greeted.
func (c *Conn) forward(ctx context.Context, conn wire.ReadConn, out *wire.Message) error {
	c.meet.Do(func() { close(c.met) })
	if c.greeted && out.Method == mcpmsg.Initialized {
		return nil
	}
	return conn.Write(ctx, out)
}

// Write implements wire.ReadConn.
func (c *Conn) Write(ctx context.Context, out *wire.Message) error {
	c.mu.Lock()
	if !c.open && !c.closed && len(c.waiting) < maxWaiting {
		c.waiting = append(c.waiting, out)
		c.mu.Unlock()
		select {
		case c.more <- struct{}{}:
		default:
		}
		return nil
	}
	c.mu.Unlock()
	select {
	case <-c.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.err != nil {
		return c.err
	}
	conn := c.current()
	if conn == nil {
		return wire.ErrClosed
	}
	return c.forward(ctx, conn, out)
}

// Read implements wire.ReadConn.
func (c *Conn) Read(ctx context.Context) (*wire.Message, error) {
	select {
	case m := <-c.early:
		return m, nil
	case <-c.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.err != nil {
		return nil, over{c.err}
	}
	if len(c.said) > 0 {
		if len(c.said) <= c.kept {
			select {
			case <-c.met:
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-c.ctx.Done():
				return nil, wire.ErrClosed
			}
		}
		m := c.said[0]
		c.said = c.said[1:]
		return m, nil
	}
	conn := c.current()
	if conn == nil {
		return nil, errCut
	}
	return conn.Read(ctx)
}

// over is the reason for which there is no connection, or none any more. A reader goes on
// after a *wire.Violation, so that none may be found in it.
type over struct{ reason error }

func (o over) Error() string { return o.reason.Error() }

func (o over) Is(target error) bool { return errors.Is(o.reason, target) }

// Cut closes the connection: the client is told that the server is gone.
func (c *Conn) Cut() { c.drop() }

// Close implements wire.ReadConn. It ends the check too.
func (c *Conn) Close() error {
	c.stop()
	c.mu.Lock()
	c.closed = true
	conn := c.conn
	c.conn = nil
	c.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Close()
	}
	<-c.done
	return err
}

// AllowBatches admits arrays of messages: one revision has them.
func (c *Conn) AllowBatches(on bool) {
	wire.AllowBatches(c.current(), on)
}
