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

// Conn is a wire.Conn to a server that is checked over the very connection which its
// one client uses afterwards, so that a server that is a process starts once. The
// client's own first request opens the conversation, and its answer waits until the
// server is admitted. Where that cannot be, the server is checked over a connection of
// its own (Config.Collect) and reached anew:
//
//   - the first thing that it was asked made it end;
//   - it answers no list before the client has answered it;
//   - it speaks the older era and its client asks for something without a handshake, so
//     that there is no client's to use.
//
// A goroutine works from a request of the client until the server is admitted, or the request is
// answered here. Until then maxWaiting messages of the client wait, after which Write does. Afterwards
// a Conn has no goroutine, and nothing waits in it: Write returns when the server's has, and what the
// server says goes to the Receiver on the goroutine on which it comes.
type Conn struct {
	server *Server
	dial   func(context.Context) (wire.Conn, error)
	opt    surface.CollectOptions
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	ready  chan struct{} // closed once the server may be used, or err is set
	met    chan struct{} // closed once the client has heard the answer and says more
	meet   sync.Once     // closes met

	mu      sync.Mutex
	r       wire.Receiver   // of Start
	waiting []*wire.Message // what the client has said before ready
	conn    *connection     // nil: none any more
	last    *connection     // the one made last, also where it was left
	running bool            // run is under way
	closed  bool
	ended   bool // the Receiver has been told
	opening bool // the server is admitted: conn tells the end
	open    bool // nothing has to wait any more
	greeted bool // the client's greeting must not reach the server a second time
	err     error
}

// maxWaiting bounds what a client says before the server is admitted; then it waits.
const maxWaiting = 16

// errCut: the sessions of the server must end.
var errCut = errors.New("admit: rejected after all")

// Conn dials. The check begins with the client's first request. The Receiver is told at the end
// why a server is not admitted, see Verify. version is the client's that collects. The error is
// dial's.
func (s *Server) Conn(ctx context.Context, dial func(context.Context) (wire.Conn, error), version string) (*Conn, error) {
	c := &Conn{server: s, dial: dial, opt: surface.CollectOptions{Version: version}, ready: make(chan struct{}), met: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(ctx)
	if err := c.redial(ctx); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// Start implements wire.Conn.
func (c *Conn) Start(r wire.Receiver) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.r = r
	c.begin()
}

// Err is why the server was not admitted; nil if it was, or was not asked to the end. It is
// asked after Close, and waits for the end of a check.
func (c *Conn) Err() error {
	c.mu.Lock()
	ends := c.running && c.closed
	c.mu.Unlock()
	if ends {
		<-c.ready
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.err, context.Canceled) || errors.Is(c.err, wire.ErrClosed) {
		return nil
	}
	return c.err
}

// begin has the server checked if the client has asked for something, which may be anything
// but is most often initialize. What comes before has no meaning yet. c.mu is held.
func (c *Conn) begin() {
	if c.r == nil || c.running || c.closed {
		return
	}
	for len(c.waiting) > 0 {
		first := c.waiting[0]
		c.waiting = c.waiting[1:]
		if first.Kind == wire.Request {
			c.running = true
			go c.run(first)
			return
		}
	}
}

// run has the server checked.
func (c *Conn) run(first *wire.Message) {
	err := c.check(first)
	if errors.Is(err, errLegacy) {
		if err = c.refuse(first, wire.CodeNoMethod, textNoMethod); err == nil {
			c.mu.Lock()
			c.running = false
			c.begin()
			closed := c.closed
			c.mu.Unlock()
			if !closed {
				return
			}
			err = wire.ErrClosed
		}
	}
	c.mu.Lock()
	c.err, c.running = err, false
	opening, last := c.opening, c.last
	c.mu.Unlock()
	close(c.ready)
	if err == nil {
		return
	}
	c.drop()
	if !opening { // or the connection tells, once all has been said
		<-last.ended
		c.end(err)
	}
}

// check has the server checked by a request of the client.
func (c *Conn) check(first *wire.Message) error {
	limit := c.server.config().Settings.Timeout
	ctx, stop := context.WithTimeoutCause(c.ctx, limit, late(limit))
	s, o, err := c.collect(ctx, first)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	stop()
	if errors.Is(err, errLegacy) {
		return err
	}
	collected := err
	err = c.server.verifyBy(c.ctx, func(context.Context) (*surface.Surface, error) { return s, collected })
	switch {
	case err == nil:
		return c.admitted(first, o)
	case errors.Is(err, ErrRejected):
		_ = c.refuse(first, wire.CodeRejected, textRejected)
	case o != nil && o.Answer != nil && o.Answer.Kind == wire.ErrorResponse: // the versions that it speaks, say
		c.r.Message(o.Answer)
	}
	return err
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
	select {
	case <-conn.ended: // a process is not started beside the one before
	case <-ctx.Done():
	}
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
	if !errors.As(err, &refused) || refused.Reason != surface.NoAnswer || ctx.Err() != nil || errors.Is(err, wire.ErrUnreachable) || surface.WantsLogin(err) {
		return false
	}
	return first.Method != mcpmsg.Initialize ||
		slices.ContainsFunc(o.Kept, func(m *wire.Message) bool { return m.Kind == wire.Request })
}

// admitted lets the client and the server talk. Neither waits for the other: the server is
// told what waits while the client hears what the server has said.
func (c *Conn) admitted(first *wire.Message, o *surface.Opening) error {
	var answer *wire.Message
	var kept []*wire.Message
	c.mu.Lock()
	if o != nil {
		if o.Answer != nil {
			answer, c.greeted = o.Answer, true
		}
		kept = o.Kept
	}
	met := c.met
	if !c.greeted {
		c.waiting = append([]*wire.Message{first}, c.waiting...)
		met = nil // there is no answer that the client would have to hear first
	}
	conn := c.conn
	c.opening = conn != nil
	c.mu.Unlock()
	if conn == nil {
		return wire.ErrClosed
	}
	go conn.open(answer, kept, met)
	for waiting := c.turn(); waiting != nil; waiting = c.turn() {
		for _, out := range waiting {
			if err := c.forward(c.ctx, conn, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn takes what waits; where nothing does, Write goes to the connection from now on.
// The lock is not held while the server is written to: one that does not read must not
// keep the connection from being closed.
func (c *Conn) turn() []*wire.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting
	c.waiting = nil
	c.open = waiting == nil
	return waiting
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
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.r.Message(m)
	return nil
}

func (c *Conn) current() *connection {
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
	l := newConnection(c, conn)
	conn.Start(l)
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.conn, c.last = l, l
	}
	c.mu.Unlock()
	if closed {
		_ = l.Close()
		return wire.ErrClosed
	}
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
func (c *Conn) forward(ctx context.Context, conn *connection, out *wire.Message) error {
	c.meet.Do(func() { close(c.met) })
	if c.greeted && out.Method == mcpmsg.Initialized {
		return nil
	}
	return conn.Write(ctx, out)
}

// Write implements wire.Conn.
func (c *Conn) Write(ctx context.Context, out *wire.Message) error {
	c.mu.Lock()
	if !c.open && !c.closed && c.err == nil && len(c.waiting) < maxWaiting {
		c.waiting = append(c.waiting, out)
		c.begin()
		c.mu.Unlock()
		return nil
	}
	c.mu.Unlock()
	select {
	case <-c.ready:
	case <-c.ctx.Done():
		return wire.ErrClosed
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

// end tells the Receiver that nothing comes any more: because of err, unless there is a better
// reason.
func (c *Conn) end(err error) {
	c.mu.Lock()
	r, told := c.r, c.ended
	c.ended = true
	switch {
	case c.closed:
		err = wire.ErrClosed
	case c.err != nil:
		err = over{c.err}
	case c.conn == nil:
		err = errCut
	}
	c.mu.Unlock()
	if r != nil && !told {
		r.Ended(err)
	}
}

// over is the reason for which there is no connection, or none any more. A reader goes on
// after a *wire.Violation, so that none may be found in it.
type over struct{ reason error }

func (o over) Error() string { return o.reason.Error() }

func (o over) Is(target error) bool { return errors.Is(o.reason, target) }

// As finds every error but a violation, since the answer to the client depends on it.
func (o over) As(target any) bool {
	_, violation := target.(**wire.Violation)
	return !violation && errors.As(o.reason, target)
}

// Cut closes the connection: the client is told that the server is gone.
func (c *Conn) Cut() { c.drop() }

// Close implements wire.Conn. It ends the check too.
func (c *Conn) Close() error {
	c.stop()
	c.mu.Lock()
	conn, last := c.conn, c.last
	idle := !c.running && !c.opening
	c.closed, c.conn = true, nil
	c.mu.Unlock()
	var err error
	if conn != nil {
		err = conn.Close()
	}
	if idle { // so that neither the check nor the connection tells the end
		go func() {
			<-last.ended
			c.end(wire.ErrClosed)
		}()
	}
	return err
}

// AllowBatches admits arrays of messages: one revision has them.
func (c *Conn) AllowBatches(on bool) {
	if conn := c.current(); conn != nil {
		wire.AllowBatches(conn.Conn, on)
	}
}
