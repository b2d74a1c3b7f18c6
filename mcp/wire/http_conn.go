// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"fmt"
	"net/url"
	"sync"
)

// httpConn is the part that HTTP and SSE have in common.
type httpConn struct {
	to   delivery
	url  *url.URL
	opt  HTTPOptions
	room chan struct{} // a token for each request in flight

	live context.Context // of all work: ended by Close (ErrClosed)
	kill context.CancelCauseFunc
	work sync.WaitGroup

	mu     sync.Mutex
	closed bool
	serverSession
}

func (c *httpConn) init(u *url.URL, opt HTTPOptions) {
	c.to, c.url, c.opt = newDelivery(), u, opt
	c.room, c.asked = make(chan struct{}, maxInFlight), map[ID]bool{}
	c.live, c.kill = context.WithCancelCause(context.Background())
}

// Start implements Conn.
func (c *httpConn) Start(r Receiver) { c.to.start(r) }

// begin runs f in a goroutine that Close waits for.
func (c *httpConn) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(f)
	}
	return !c.closed
}

// acquire waits for a token of room.
func (c *httpConn) acquire(ctx context.Context) error {
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.live.Done():
		return ErrClosed
	}
	return nil
}

// close ends all work, calls last, and then has Ended called.
func (c *httpConn) close(last func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	c.kill(ErrClosed)
	c.to.stop()
	go func() {
		c.work.Wait()
		last()
		c.opt.Pool.leave()
		c.to.end(ErrClosed)
	}()
}

func (o *HTTPOptions) notice(format string, args ...any) {
	if o.Notice != nil {
		o.Notice(fmt.Sprintf(format, args...))
	}
}
