// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// life is one connection of a link, whose Receiver it is.
type life struct {
	l       *link
	conn    wire.Conn
	release func() // gives the room of its process back
	began   time.Time

	// Of one that takes another's place: what comes waits until the handshake is replayed, and
	// the other side is told. nil: it is the first.
	answers chan arrival  // to the handshake
	done    chan struct{} // closed when it may pass, or the handshake has failed
	dead    chan struct{} // closed by Ended
	failed  error         // why it has failed; read once done is closed

	live, ended bool // guarded by l.mu
}

// arrival is what the connection has received: a message, or bytes that are not one.
type arrival struct {
	m *wire.Message
	v *wire.Violation
}

// begin relays from the connection, once it is where the one before was.
func (c *life) begin() {
	l := c.l
	l.mu.Lock()
	past := l.past.Clone()
	l.used = time.Now()
	again := l.linked
	l.linked = true
	l.mu.Unlock()
	var changed []string
	if again {
		c.answers, c.done, c.dead = make(chan arrival), make(chan struct{}), make(chan struct{})
		defer close(c.done)
	}
	c.conn.Start(c)
	switch {
	case past.Version != "":
		ctx, stop := context.WithTimeout(l.ctx, handshakeWait)
		defer stop()
		wire.AllowBatches(c.conn, wire.HasBatches(past.Version))
		if changed, c.failed = past.Replay(ctx, c, true); c.failed != nil {
			c.conn.Close()
			return
		}
	case past.Params == nil:
		changed = []string{mcpmsg.ToolsChanged}
	}
	l.mu.Lock()
	if !c.ended {
		l.conn, l.talked = c.conn, l.talked || past.Version != ""
		close(l.settled)
		c.live = true
		l.up.connected()
	}
	l.mu.Unlock()
	if l.ctx.Err() != nil { // cease has not seen it
		c.conn.Close()
	}
	if again {
		for _, method := range changed {
			l.message(own(wire.NewRequest(wire.ID{}, method, nil)))
		}
	}
}

// greets gives what has come to the handshake that is replayed; false: it may pass.
func (c *life) greets(a arrival) bool {
	if c.done == nil {
		return false
	}
	select {
	case <-c.done:
	case c.answers <- a:
		return true
	}
	return c.failed != nil
}

// Message implements wire.Receiver.
func (c *life) Message(m *wire.Message) {
	if !c.greets(arrival{m: m}) {
		c.l.arrive(c.conn, m)
		c.l.message(m)
	}
}

// Violation implements wire.Receiver.
func (c *life) Violation(v *wire.Violation) {
	if !c.greets(arrival{v: v}) {
		c.l.settle(v.Kind, v.ID)
		c.l.violation(v)
	}
}

// Ended implements wire.Receiver.
func (c *life) Ended(err error) {
	l := c.l
	if c.done != nil {
		close(c.dead)
		<-c.done
		if c.failed != nil && !errors.Is(c.failed, errDead) {
			err = c.failed
		}
	}
	if errors.Is(err, errLeft) {
		l.up.log.Error("a server process could not be stopped", "error", err)
	}
	if child, is := c.conn.(*Child); is && l.ctx.Err() == nil {
		err = fmt.Errorf("fleet: the process ended: %s", child.Exit())
	}
	c.release()
	l.mu.Lock()
	c.ended = true
	if c.live {
		l.up.disconnected()
	}
	l.mu.Unlock()
	l.ended(c.began, err)
}

var errDead = errors.New("fleet: connection closed")

// await returns the next that comes while the handshake is replayed.
func (c *life) await(ctx context.Context) (arrival, error) {
	select {
	case a := <-c.answers:
		return a, nil
	case <-c.dead:
		return arrival{}, errDead
	case <-ctx.Done():
		return arrival{}, ctx.Err()
	}
}
