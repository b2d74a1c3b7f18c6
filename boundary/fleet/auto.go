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

// withSSE dials a server of the transport of 2024-11-05.
func withSSE(url string, o wire.HTTPOptions) (Dialer, error) {
	if _, err := wire.NewSSE(url, o); err != nil {
		return nil, err
	}
	return func(context.Context) (wire.ReadConn, error) {
		conn, err := wire.NewSSE(url, o)
		if err != nil {
			return nil, err
		}
		return wire.Pull(conn), nil
	}, nil
}

// remembering dials by first or, if the server is found not to speak that, by second; nil:
// there is no other transport. It remembers what the server speaks.
func remembering(first, second Dialer) Dialer {
	spoken := new(spoken)
	return func(ctx context.Context) (wire.ReadConn, error) {
		dial, old := first, spoken.isOld()
		if old {
			dial = second
		}
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return &undecided{conn: conn, second: second, spoken: spoken, old: old}, nil
	}
}

// undecided is a Conn to a server that may be of either era and, where second is set, of
// either transport. It learns both from the server's first answers. The transport is decided
// by the answer to initialize alone: servers of streamable HTTP, too, refuse server/discover
// with status 400, because it names no session.
type undecided struct {
	second Dialer
	spoken *spoken

	mu      sync.Mutex
	conn    wire.ReadConn
	old     bool // conn speaks the old transport
	decided bool // nothing more is to be learned
	shut    bool
	refused bool            // the server has refused server/discover
	early   []*wire.Message // requests that have no answer yet
	own     []*wire.Message // answers to server/discover that the server was not asked for
	wake    context.CancelFunc
}

const maxEarly = 64

// errLegacy is why a server is not asked for the modern era.
var errLegacy = errors.New("fleet: the server was found to speak revisions with initialize only")

// Write sends a message. A server that was found to be of the legacy era is not asked again
// by server/discover; the answer is as if it had refused.
func (c *undecided) Write(ctx context.Context, out *wire.Message) error {
	c.mu.Lock()
	if !c.decided && out.Kind == wire.Request {
		if out.Method == mcpmsg.Discover && len(c.own) < maxEarly && c.spoken.isLegacy(time.Now()) {
			defer c.mu.Unlock()
			c.own = append(c.own, constant(out.ID, wire.CodeNoMethod, textNoMethod, errLegacy))
			out.Release()
			if c.wake != nil {
				c.wake()
			}
			return nil
		}
		if len(c.early) < maxEarly {
			c.early = append(c.early, out.Clone())
		}
	}
	conn := c.conn
	c.mu.Unlock()
	return conn.Write(ctx, out)
}

func (c *undecided) Read(ctx context.Context) (*wire.Message, error) {
	for {
		m, err := c.next(ctx)
		if err != nil {
			if errors.Is(err, wire.ErrSessionGone) {
				c.spoken.forget() // it was started anew, and may be another by now
			}
			return nil, err
		}
		if m == nil {
			continue
		}
		if !c.changes(m) {
			return m, nil
		}
		m.Release()
		if err := c.change(ctx); err != nil {
			return nil, err
		}
	}
}

// next is the next message, or nil: Read has to look again.
func (c *undecided) next(ctx context.Context) (*wire.Message, error) {
	c.mu.Lock()
	conn := c.conn
	if len(c.own) > 0 {
		defer c.mu.Unlock()
		m := c.own[0]
		c.own = slices.Delete(c.own, 0, 1)
		return m, nil
	}
	if c.decided {
		c.mu.Unlock()
		return conn.Read(ctx)
	}
	within, wake := context.WithCancel(ctx)
	defer wake()
	c.wake = wake
	c.mu.Unlock()
	m, err := conn.Read(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, nil // Write has left something in own
	}
	return m, err
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
func (c *undecided) change(ctx context.Context) error {
	conn, err := c.second(ctx)
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
	for _, out := range again {
		if err := conn.Write(ctx, out); err != nil {
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
	return conn.Close()
}
