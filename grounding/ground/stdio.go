// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

const (
	maxCalls = 64 // requests under way on standard input
	// drainPatience is how long answers may still take once no more is asked.
	drainPatience = answerPatience + time.Second
)

// ServeStdio serves MCP on in and out until in ends or ctx does, and closes both.
// What was asked before in ended is answered. The error is that of ctx, or of a
// stream that broke.
func (a *Adapter) ServeStdio(ctx context.Context, o MCPOptions, in io.ReadCloser, out io.WriteCloser) error {
	c := &lineConn{
		lines: wire.Pull(wire.NewLines(in, out, wire.LinesOptions{Limits: messageLimits})),
		room:  make(chan struct{}, maxCalls), ids: map[any]bool{}, closed: make(chan struct{}),
	}
	// go-sdk waits for the answers under way before it closes, and one of them may
	// be on its way to somebody who does not read.
	defer context.AfterFunc(ctx, func() { c.Close() })()
	err := a.server(o).Run(ctx, c)
	c.Close()
	if errors.Is(err, wire.ErrPeerClosed) {
		return nil // nobody reads any more, which is another end of the session
	}
	return err
}

// A lineConn is to go-sdk's stdio transport what front is to its HTTP handler.
type lineConn struct {
	lines wire.ReadConn
	room  chan struct{} // a token for each request under way

	mu     sync.Mutex
	ids    map[any]bool // of the requests under way
	once   sync.Once
	closed chan struct{}
}

var (
	_ mcp.Transport  = (*lineConn)(nil)
	_ mcp.Connection = (*lineConn)(nil)
)

// Connect implements mcp.Transport.
func (c *lineConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (*lineConn) SessionID() string { return "" }

// Close implements mcp.Connection.
func (c *lineConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.lines.Close()
}

// Read returns the next message that go-sdk is to see. It lets no more requests in
// than there is room for.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.lines.Read(ctx)
		if v := (*wire.Violation)(nil); err != nil && !errors.As(err, &v) {
			if errors.Is(err, io.EOF) {
				c.drain(ctx)
			}
			return nil, err
		}
		switch what, id, e := dispose(m, err); what {
		case reject:
			if err := c.reject(ctx, id, e); err != nil {
				return nil, err
			}
		case pass:
			msg, err := jsonrpc.DecodeMessage(m.Append(nil))
			if err != nil {
				return nil, err // what is strict is acceptable to it
			}
			ok, err := c.admit(ctx, msg)
			if err != nil {
				return nil, err
			}
			if ok {
				return msg, nil
			}
			if err := c.reject(ctx, id, errInvalid); err != nil {
				return nil, err
			}
		}
	}
}

// admit waits for room for msg. It is false for a request with an id that is in use.
func (c *lineConn) admit(ctx context.Context, msg jsonrpc.Message) (bool, error) {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return true, nil
	}
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.closed:
		return false, wire.ErrClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids[req.ID.Raw()] {
		<-c.room
		return false, nil
	}
	c.ids[req.ID.Raw()] = true
	return true, nil
}

// drain waits until everything that was admitted is answered.
func (c *lineConn) drain(ctx context.Context) {
	t := time.NewTimer(drainPatience)
	defer t.Stop()
	for range cap(c.room) {
		select {
		case c.room <- struct{}{}:
		case <-ctx.Done():
			return
		case <-c.closed:
			return
		case <-t.C:
			return
		}
	}
}

// Write sends msg, an error of go-sdk without what it may hold of the request.
func (c *lineConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if res, ok := msg.(*jsonrpc.Response); ok {
		defer c.done(res.ID.Raw())
		if res.Error != nil {
			if plain, ok := plainError(raw); ok {
				raw = plain
			}
		}
	}
	m, err := wire.Decode(raw, strictjson.Limits{})
	if err != nil {
		return err // what go-sdk has encoded is strict
	}
	return c.lines.Write(ctx, m)
}

func (c *lineConn) done(id any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids[id] {
		delete(c.ids, id)
		<-c.room
	}
}

func (c *lineConn) reject(ctx context.Context, id wire.ID, e rpcError) error {
	return c.lines.Write(ctx, wire.NewError(id, e.object(nil)))
}
