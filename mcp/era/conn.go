// SPDX-License-Identifier: Apache-2.0

package era

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// Conn is a Conn to a server, with a translator before it.
type Conn struct {
	up    wire.ReadConn
	early []item // what came before the first Read

	life  context.Context
	end   context.CancelFunc
	work  sync.WaitGroup
	start sync.Once
	close sync.Once
	err   error // of close

	ready chan struct{} // there may be something for Read
	taken chan struct{} // there may be room for more
	queue chan struct{} // there may be something to write
	pen   chan struct{} // holds a token while nobody writes to the server

	mu    sync.Mutex
	s     *sides
	t     translator
	out   []*sending // to the server, in order
	over  error      // of the server's side: after it nothing comes
	timer *time.Timer
	shut  bool
}

// sending is a message on its way to the server.
type sending struct {
	out  *wire.Message
	done chan error // nil if nobody waits
}

var _ wire.ReadConn = (*Conn)(nil)

// maxWaiting bounds the messages that wait for a reader before Write does too.
const maxWaiting = 2048

func newConn(up wire.ReadConn, o Options) *Conn {
	c := &Conn{up: up, s: &sides{o: o.orDefault(), errands: map[wire.ID]*errand{}},
		ready: make(chan struct{}, 1), taken: make(chan struct{}, 1), queue: make(chan struct{}, 1), pen: make(chan struct{}, 1)}
	c.pen <- struct{}{}
	c.s.batches = func(on bool) { wire.AllowBatches(up, on) }
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Read returns the next message for the client.
func (c *Conn) Read(ctx context.Context) (*wire.Message, error) {
	c.begin()
	for {
		it, over, there := c.pop()
		switch {
		case there:
			return it.m, it.err
		case over != nil:
			return nil, over
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.life.Done():
			return nil, wire.ErrClosed
		}
	}
}

func (c *Conn) pop() (it item, over error, there bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.s.down) == 0 {
		return it, c.over, false
	}
	it = c.s.down[0]
	c.s.down[0] = item{}
	c.s.down = c.s.down[1:]
	if len(c.s.down) == 0 {
		c.s.down = nil
	}
	signal(c.taken)
	return it, nil, true
}

// begin starts the work that goes on beside Read and Write.
func (c *Conn) begin() {
	c.start.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.shut {
			return
		}
		c.work.Go(c.pump)
		c.work.Go(c.writeLoop)
	})
}

// pump reads the server, one message at a time: no more than what one becomes
// waits for Read, beside what Write has left there.
func (c *Conn) pump() {
	for {
		m, err := c.nextOfServer()
		var v *wire.Violation
		isViolation := errors.As(err, &v)
		if err != nil && !isViolation {
			c.mu.Lock()
			c.over = err
			c.mu.Unlock()
			signal(c.ready)
			return
		}
		c.step(func(now time.Time) {
			if isViolation {
				c.t.violation(v, now)
			} else {
				c.t.server(m, now)
			}
		})
		if !c.room() {
			return
		}
	}
}

func (c *Conn) nextOfServer() (*wire.Message, error) {
	if len(c.early) > 0 {
		it := c.early[0]
		c.early = c.early[1:]
		return it.m, it.err
	}
	return c.up.Read(c.life)
}

// maxQueued bounds the messages that wait for a server that does not read.
const maxQueued = 256

// room waits until Read has taken everything; false if the Conn ended.
func (c *Conn) room() bool {
	for {
		c.mu.Lock()
		free := len(c.s.down) == 0 && len(c.out) <= maxQueued
		c.mu.Unlock()
		if free {
			signal(c.taken) // somebody else may wait for it too
			return c.life.Err() == nil
		}
		select {
		case <-c.taken:
		case <-c.life.Done():
			return false
		}
	}
}

// step lets the translator work, and takes what it has to say.
func (c *Conn) step(f func(now time.Time)) { c.stepFor(f, false) }

// stepFor is step for somebody who waits, if waits is set, until all that the
// translator sends to the server has been sent. Of that, one message alone which
// none is before is his to send: he has the pen.
func (c *Conn) stepFor(f func(now time.Time), waits bool) (mine *wire.Message, done chan error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.s.o.now()
	f(now)
	c.settle(now)
	if len(c.s.down) > 0 {
		signal(c.ready)
	}
	up := c.s.up
	c.s.up = nil
	if waits && len(up) == 1 && len(c.out) == 0 {
		select {
		case <-c.pen:
			return up[0], nil
		default:
		}
	}
	for _, out := range up {
		c.out = append(c.out, &sending{out: out})
	}
	if len(up) == 0 {
		return nil, nil
	}
	signal(c.queue)
	if waits {
		done = make(chan error, 1)
		c.out[len(c.out)-1].done = done
	}
	return nil, done
}

// settle lets a new translator take over, and sets the clock.
func (c *Conn) settle(now time.Time) {
	if c.s.next != nil {
		c.t, c.s.next = c.s.next, nil
	}
	due := c.t.pending()
	if due.IsZero() || c.shut {
		return
	}
	wait := max(due.Sub(now), time.Millisecond)
	if c.timer == nil {
		c.timer = time.AfterFunc(wait, c.tick)
	} else {
		c.timer.Reset(wait)
	}
}

func (c *Conn) tick() {
	c.step(func(now time.Time) {
		if !c.shut {
			c.t.tick(now)
		}
	})
}

// Write takes a message of the client. It returns when what it becomes has been
// sent to the server; an error is that of the last of it.
func (c *Conn) Write(ctx context.Context, m *wire.Message) error {
	c.begin()
	if c.life.Err() != nil {
		return wire.ErrClosed
	}
	for {
		c.mu.Lock()
		waiting := len(c.s.down)
		c.mu.Unlock()
		if waiting < maxWaiting {
			signal(c.taken) // pump may wait for it too
			break
		}
		select {
		case <-c.taken:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.life.Done():
			return wire.ErrClosed
		}
	}
	mine, done := c.stepFor(func(now time.Time) { c.t.client(m, now) }, true)
	if mine != nil {
		err := c.up.Write(ctx, mine)
		c.pen <- struct{}{}
		return err
	}
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

func (c *Conn) writeLoop() {
	for {
		select {
		case <-c.queue:
		case <-c.life.Done():
			return
		}
		select {
		case <-c.pen:
		case <-c.life.Done():
			return
		}
		for w := c.nextToServer(); w != nil; w = c.nextToServer() {
			err := c.up.Write(c.life, w.out)
			if w.done != nil {
				w.done <- err
			}
		}
		c.pen <- struct{}{}
	}
}

func (c *Conn) nextToServer() *sending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.out) == 0 {
		return nil
	}
	w := c.out[0]
	c.out[0] = nil
	c.out = c.out[1:]
	if len(c.out) == 0 {
		c.out = nil
	}
	signal(c.taken)
	return w
}

// Close ends the Conn and that of the server.
func (c *Conn) Close() error {
	c.close.Do(func() {
		c.mu.Lock()
		c.shut = true
		if c.timer != nil {
			c.timer.Stop()
		}
		c.mu.Unlock()
		c.end()
		c.err = c.up.Close()
		c.work.Wait()
	})
	if errors.Is(c.err, io.EOF) {
		return nil
	}
	return c.err
}
