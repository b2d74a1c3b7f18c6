// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// withSSE dials a server of the transport of 2024-11-05.
func withSSE(url string, o wire.HTTPOptions) (Dialer, error) {
	if _, err := wire.NewSSE(url, o); err != nil {
		return nil, err
	}
	return func(context.Context) (wire.Conn, error) {
		conn, err := wire.NewSSE(url, o)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}, nil
}

// auto dials a server by streamable HTTP and, if it does not speak that, by the
// transport of 2024-11-05.
func auto(url string, o wire.HTTPOptions) (Dialer, error) {
	first, err := streamable(url, o)
	if err != nil {
		return nil, err
	}
	second, err := withSSE(url, o)
	if err != nil {
		return nil, err
	}
	old := new(atomic.Bool)
	return func(ctx context.Context) (wire.Conn, error) {
		dial, is := first, old.Load()
		if is {
			dial = second
		}
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		return &undecided{conn: conn, second: second, old: old, decided: is, changed: is}, nil
	}, nil
}

// undecided is a Conn that begins as one to a streamable HTTP server.
//
// spec: MCP 2025-03-26, transports/backwards-compatibility
type undecided struct {
	second Dialer
	old    *atomic.Bool // how the next Conn begins

	mu      sync.Mutex
	conn    wire.Conn
	decided bool
	changed bool // conn speaks the old transport
	shut    bool
	early   []*wire.Message // requests that have no answer yet
}

const maxEarly = 64

func (c *undecided) current() (conn wire.Conn, decided, changed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn, c.decided, c.changed
}

func (c *undecided) Write(ctx context.Context, out *wire.Message) error {
	c.mu.Lock()
	if !c.decided && out.Kind == wire.Request && len(c.early) < maxEarly {
		c.early = append(c.early, out.Clone())
	}
	conn := c.conn
	c.mu.Unlock()
	return conn.Write(ctx, out)
}

func (c *undecided) Read(ctx context.Context) (*wire.Message, error) {
	for {
		conn, decided, changed := c.current()
		m, err := conn.Read(ctx)
		if changed && err == nil {
			// A server that was only away for a while must not be taken for an old one.
			c.old.Store(!m.Local)
		}
		if decided || err != nil {
			return m, err
		}
		if !refusesHTTP(m) {
			c.decide()
			return m, nil
		}
		if err := c.change(ctx, conn); err != nil {
			return nil, err
		}
	}
}

// refusesHTTP reports whether m says what a server of the old transport says to a POST.
func refusesHTTP(m *wire.Message) bool {
	var status wire.StatusError
	if !m.Local || !errors.As(m.Cause, &status) {
		return false
	}
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

func (c *undecided) decide() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided, c.early = true, nil
}

// change says everything again the old way.
func (c *undecided) change(ctx context.Context, was wire.Conn) error {
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
	early := c.early
	c.conn, c.decided, c.changed, c.early = conn, true, true, nil
	c.mu.Unlock()
	was.Close()
	for _, out := range early {
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
