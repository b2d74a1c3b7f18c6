// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// remembering dials by first or, if the server is found not to speak that, by second; nil:
// there is no other transport. It remembers what the server speaks.
func remembering(first, second Dialer) Dialer {
	spoken := new(spoken)
	return func(ctx context.Context) (wire.Conn, error) {
		dial, old := first, spoken.isOld()
		if old {
			dial = second
		}
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		c := &undecided{conn: conn, second: second, spoken: spoken, old: old}
		c.ctx, c.stop = context.WithCancel(context.Background())
		return c, nil
	}
}

// undecided is a Conn to a server that may be of either era and, where second is set, of
// either transport. It learns both from the server's first answers. The transport is decided
// by the answer to initialize alone: servers of streamable HTTP, too, refuse server/discover
// with status 400, because it names no session.
type undecided struct {
	outlet
	second Dialer
	spoken *spoken
	ctx    context.Context // of change
	stop   context.CancelFunc

	mu      sync.Mutex
	conn    wire.Conn
	old     bool  // conn speaks the old transport
	decided bool  // nothing more is to be learned
	refused bool  // the server has refused server/discover
	first   error // why the first transport did not serve
	shut    bool
	early   []*wire.Message // requests that have no answer yet
}

const maxEarly = 64

// errLegacy is why a server is not asked for the modern era.
var errLegacy = errors.New("fleet: the server was found to speak revisions with initialize only")

// Write sends a message. A server that was found to be of the legacy era is not asked again
// by server/discover; the answer is as if it had refused.
func (c *undecided) Write(ctx context.Context, out *wire.Message) error {
	c.mu.Lock()
	learns := !c.decided && out.Kind == wire.Request
	if learns && out.Method == mcpmsg.Discover && c.spoken.isLegacy(time.Now()) {
		c.mu.Unlock()
		c.message(constant(out.ID, wire.CodeNoMethod, textNoMethod, errLegacy))
		out.Release()
		return nil
	}
	if learns && len(c.early) < maxEarly {
		c.early = append(c.early, out.Clone())
	}
	conn := c.conn
	c.mu.Unlock()
	return conn.Write(ctx, out)
}

// Start implements wire.Conn.
func (c *undecided) Start(r wire.Receiver) {
	c.outlet.Start(r)
	c.conn.Start(&attempt{c, c.conn}) // nothing changes conn before
}

// attempt is the Receiver of one of an undecided's transports.
type attempt struct {
	c    *undecided
	conn wire.Conn
}

// is reports whether the transport is still the one in use.
func (a *attempt) is() bool {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	return a.c.conn == a.conn
}

// Message implements wire.Receiver.
func (a *attempt) Message(m *wire.Message) {
	switch {
	case !a.is():
		m.Release()
	case a.c.changes(m):
		m.Release()
		if err := a.c.change(); err != nil {
			a.c.outlet.end(err)
			a.c.Close()
		}
	default:
		a.c.message(m)
	}
}

// Violation implements wire.Receiver.
func (a *attempt) Violation(v *wire.Violation) {
	if a.is() {
		a.c.violation(v)
	}
}

// Ended implements wire.Receiver.
func (a *attempt) Ended(err error) {
	if !a.is() {
		return
	}
	if errors.Is(err, wire.ErrSessionGone) {
		a.c.spoken.forget() // it was started anew, and may be another by now
	}
	a.c.stop()
	a.c.end(err)
}

// changes learns from a message of the server. It reports whether the server has to be asked
// again by the other transport.
func (c *undecided) changes(m *wire.Message) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.decided || m.Kind != wire.Response && m.Kind != wire.ErrorResponse {
		return false
	}
	k := slices.IndexFunc(c.early, func(out *wire.Message) bool { return out.ID == m.ID })
	if k < 0 {
		return false
	}
	method := c.early[k].Method
	if method == mcpmsg.Initialize && !c.old && c.second != nil && refusesHTTP(m) {
		c.first = m.Cause
		return true
	}
	c.early = slices.Delete(c.early, k, k+1)
	switch {
	case method == mcpmsg.Discover && speaksModern(m):
		c.spoken.forget()
	case method == mcpmsg.Discover:
		c.refused = c.refused || refuses(m)
		return false
	case m.Kind == wire.ErrorResponse && method == mcpmsg.Initialize && (refuses(m) || c.old && m.Local):
		// A server that was only away for a while is asked anew, too: that costs a request.
		c.spoken.forget()
		if told := wire.AnswerTo(m.ID, c.first); told != nil && refusesHTTP(m) { // the operator has not asked for the old transport
			*m = *told
		}
		return false
	case m.Kind == wire.ErrorResponse:
		return false
	case method == mcpmsg.Initialize:
		c.spoken.initialized(c.old, c.refused, time.Now())
	}
	c.decided, c.early = true, nil
	return false
}

// change says everything that has no answer again by the other transport.
func (c *undecided) change() error {
	conn, err := c.second(c.ctx)
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		conn.Close()
		return wire.ErrClosed
	}
	was, again := c.conn, make([]*wire.Message, len(c.early))
	for i, out := range c.early {
		again[i] = out.Clone() // Write owns what it is given
	}
	c.conn, c.old = conn, true
	c.mu.Unlock()
	was.Close()
	conn.Start(&attempt{c, conn})
	for _, out := range again {
		if err := conn.Write(c.ctx, out); err != nil {
			return err
		}
	}
	return nil
}

func (c *undecided) Close() error {
	c.mu.Lock()
	c.shut = true
	conn := c.conn
	c.mu.Unlock()
	c.off()
	c.stop()
	return conn.Close()
}
