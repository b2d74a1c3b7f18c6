// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Conn is a Conn to a server of the other era, with a translator in front of it.
//
// The translator has no goroutine. It runs in the goroutine that has a message for it: a caller of
// Write, the reader of the server's messages, or a timer. Its output goes into two queues (type
// line), one for each side, and each queue keeps its order. These are the rules of waiting:
//
//   - Write waits until everything that its message became has been written to the server, and
//     returns the error of the last part. It never waits for the client: it fails where
//     maxWaiting messages already wait for the Receiver.
//   - A reader of the server waits until the Receiver has taken everything that its message
//     became. So a client that does not read slows the server's streams down. The reader also
//     waits while more than maxQueued messages wait for a server that does not read, but it never
//     waits for a message of its own to be written.
//   - An answer that this program gives in the server's place (Local) may come while a Write runs.
//     It waits for nothing. There is at most one for each request that was written.
//
// While client and server speak the same era and nothing is under way in the translator or the
// queues, most messages pass by both (type passage): they keep the order of the Conn below.
//
// Where a caller must not wait, a new goroutine writes, and ends when the queue is empty. A Conn with
// empty queues has no goroutine.
type Conn struct {
	up   wire.Conn
	r    wire.Receiver // of Start
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	s        *sides
	t        translator
	toServer line
	toClient line
	room     sync.Cond // signals that toServer may have room again, or that c is shut
	timer    *time.Timer
	over     bool // the server sends nothing any more
	shut     bool // Close was called

	passage atomic.Uint32 // a passage; written with mu held
}

// A line is the queue of messages for one side.
type line struct {
	take func(ctx context.Context, it item) error // by the side
	busy bool                                     // a goroutine calls take, or the side has not started
	wait []item
}

var (
	_ wire.Conn     = (*Conn)(nil)
	_ wire.Receiver = (*Conn)(nil)
)

const (
	maxWaiting = 2048 // messages for a client that does not read
	maxQueued  = 256  // messages for a server that does not read
)

func newConn(up wire.Conn, o Options) *Conn {
	c := &Conn{up: up, s: &sides{o: o.orDefault(), errands: map[wire.ID]*errand{}}}
	c.room.L = &c.mu
	c.toServer.take = func(ctx context.Context, it item) error { return up.Write(ctx, it.m) }
	c.toClient.take, c.toClient.busy = c.receive, true
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Start implements wire.Conn.
func (c *Conn) Start(r wire.Receiver) {
	c.r = r
	c.leave(&c.toClient)
	c.up.Start(c)
}

// receive gives the Receiver one thing.
func (c *Conn) receive(ctx context.Context, it item) error {
	switch {
	case it.over != nil:
		c.r.Ended(it.over)
	case ctx.Err() != nil:
		it.m.Release()
	case it.v != nil:
		c.r.Violation(it.v)
	default:
		c.r.Message(it.m)
	}
	return nil
}

// Message implements wire.Receiver for the server.
func (c *Conn) Message(m *wire.Message) {
	if passage(c.passage.Load()).letsServer(m) {
		c.r.Message(m)
		return
	}
	c.heard(m.Local, func(now time.Time) { c.t.server(m, now) })
}

// Violation implements wire.Receiver for the server.
func (c *Conn) Violation(v *wire.Violation) {
	c.heard(false, func(now time.Time) { c.t.violation(v, now) })
}

// heard lets the translator work on something of the server. atOnce: it waits for nothing.
func (c *Conn) heard(atOnce bool, f func(now time.Time)) {
	c.mu.Lock()
	for len(c.toServer.wait) > maxQueued && !c.shut && !atOnce {
		c.room.Wait()
	}
	down, up := c.step(f)
	batches := c.s.batches
	c.s.batches = nil
	c.queue(&c.toServer, up)
	var done chan error
	mine := !atOnce && c.toClient.begin(down)
	switch {
	case atOnce:
		c.queue(&c.toClient, down)
	case !mine:
		done = c.toClient.join(down)
	}
	c.mu.Unlock()
	if batches != nil {
		wire.AllowBatches(c.up, *batches)
	}
	if mine {
		for _, it := range down {
			_ = c.receive(c.life, it)
		}
		c.leave(&c.toClient)
	} else if done != nil {
		<-done
	}
}

// Ended implements wire.Receiver for the server.
func (c *Conn) Ended(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		err = wire.ErrClosed
	}
	c.over = true
	c.stopTimer()
	c.queue(&c.toClient, []item{{over: err}})
}

// Write takes a message of the client. It returns when what it becomes has been
// sent to the server; an error is that of the last of it.
func (c *Conn) Write(ctx context.Context, m *wire.Message) error {
	if passage(c.passage.Load()).letsClient(m) {
		return c.up.Write(ctx, m)
	}
	c.mu.Lock()
	switch {
	case c.shut:
		c.mu.Unlock()
		return wire.ErrClosed
	case len(c.toClient.wait) >= maxWaiting:
		c.mu.Unlock()
		return errBusy
	}
	down, up := c.step(func(now time.Time) { c.t.client(m, now) })
	c.queue(&c.toClient, down)
	if len(up) == 1 && c.toServer.begin(up) {
		c.mu.Unlock()
		defer c.leave(&c.toServer)
		return c.up.Write(ctx, up[0].m)
	}
	done := c.toServer.join(up)
	c.flush(&c.toServer)
	c.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.life.Done():
		return wire.ErrClosed
	}
}

// step lets the translator work, and takes what it has to say. c.mu is held.
func (c *Conn) step(f func(now time.Time)) (down, up []item) {
	if c.shut {
		return nil, nil
	}
	c.passage.Store(uint32(noPassage))
	now := c.s.o.now()
	f(now)
	if c.s.next != nil { // a new translator takes over
		c.t, c.s.next = c.s.next, nil
	}
	if due := c.t.pending(); !due.IsZero() && !c.over {
		wait := max(due.Sub(now), time.Millisecond)
		if c.timer == nil {
			c.timer = time.AfterFunc(wait, c.tick)
		} else {
			c.timer.Reset(wait)
		}
	}
	down, up = c.s.down, c.s.up
	c.s.down, c.s.up = nil, nil
	if c.over {
		down = nil
	}
	if len(down) == 0 && len(up) == 0 {
		c.openPassage()
	}
	return down, up
}

// openPassage lets messages pass by the translator, if it allows that and nothing waits. c.mu is held.
func (c *Conn) openPassage() {
	if !c.shut && !c.over && c.toServer.isIdle() && c.toClient.isIdle() {
		c.passage.Store(uint32(c.t.passage()))
	}
}

// tick lets the translator do what is due, and queues the messages that it makes.
func (c *Conn) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	down, up := c.step(func(now time.Time) { c.t.tick(now) })
	c.queue(&c.toClient, down)
	c.queue(&c.toServer, up)
}

// Close ends the Conn and that of the server.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.shut {
		c.mu.Unlock()
		return nil
	}
	c.shut = true
	c.passage.Store(uint32(noPassage))
	c.stopTimer()
	c.room.Broadcast()
	c.mu.Unlock()
	c.end()
	return c.up.Close()
}

func (c *Conn) stopTimer() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// isIdle reports whether nothing waits and no message is being written.
func (l *line) isIdle() bool { return !l.busy && len(l.wait) == 0 }

// begin reports whether the caller is to write items, which then has the line until leave.
func (l *line) begin(items []item) bool {
	if l.busy || len(items) == 0 {
		return false
	}
	l.busy = true
	return true
}

// join adds items to the end of the queue. done is told when the last of them has been written;
// it is nil without items.
func (l *line) join(items []item) (done chan error) {
	if len(items) == 0 {
		return nil
	}
	done = make(chan error, 1)
	items[len(items)-1].done = done
	l.wait = append(l.wait, items...)
	return done
}

// queue puts items behind those that wait, for a goroutine to write.
func (c *Conn) queue(l *line, items []item) {
	l.wait = append(l.wait, items...)
	c.flush(l)
}

// flush starts a goroutine that writes what waits, unless one is writing already.
func (c *Conn) flush(l *line) {
	if len(l.wait) > 0 && !l.busy {
		l.busy = true
		go c.drain(l)
	}
}

// leave ends what begin has begun.
func (c *Conn) leave(l *line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.busy = false
	c.flush(l)
	c.openPassage()
}

// drain writes what waits in a line, which is the caller's.
func (c *Conn) drain(l *line) {
	for {
		c.mu.Lock()
		if len(l.wait) == 0 {
			l.busy, l.wait = false, nil
			c.openPassage()
			c.mu.Unlock()
			return
		}
		it := l.wait[0]
		l.wait[0], l.wait = item{}, l.wait[1:]
		if len(c.toServer.wait) <= maxQueued {
			c.room.Broadcast()
		}
		c.mu.Unlock()
		err := l.take(c.life, it)
		if it.done != nil {
			it.done <- err
		}
	}
}
