// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// queueLength bounds what waits for a server that does not read.
const queueLength = 256

// outbox holds the messages for the server that the server's reader and the clock leave
// there. A goroutine writes them while there are any: an idle session has none.
type outbox struct {
	mu      sync.Mutex
	waiting []*wire.Message
	writing bool
	over    bool // the session has ended
}

// enqueue leaves a message for the server without waiting for it.
func (r *relay) enqueue(out *wire.Message) {
	switch begin, lost := r.outbox.put(out); {
	case lost:
		r.quiet.warn("a message to the server was dropped: the server does not read its input")
	case begin:
		r.spawn(r.writeServer) // who has put it there must not wait for a server that does not read
	}
}

// put adds a message. begin means that the caller has to have what waits written.
func (o *outbox) put(out *wire.Message) (begin, lost bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.over:
		return false, false
	case len(o.waiting) >= queueLength:
		return false, true
	}
	o.waiting = append(o.waiting, out)
	begin, o.writing = !o.writing, true
	return begin, false
}

// writeServer writes what waits until nothing does.
func (r *relay) writeServer() {
	for out := r.outbox.next(); out != nil; out = r.outbox.next() {
		request, id := out.Kind == wire.Request, out.ID
		if !r.write(r.life, out) && request {
			r.unlisted(id)
		}
	}
}

// unlisted is for a request of the gateway's own that the server does not get: what waits for its answer waits
// no longer.
func (r *relay) unlisted(id wire.ID) {
	r.calls.pass()
	defer r.calls.passed()
	if n, _ := id.Int(); r.calls.close(n) != nil {
		r.listed(r.life, nil, r.surface.generation())
	}
}

// next takes the oldest message; nil ends the writer.
func (o *outbox) next() *wire.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 || o.over {
		o.waiting, o.writing = nil, false
		return nil
	}
	out := o.waiting[0]
	o.waiting[0] = nil
	o.waiting = o.waiting[1:]
	return out
}

// end lets no more messages in: after it no writer is started.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.over = true
}

// expiry looks now and then for what takes too long, as long as anything is under way.
type expiry struct {
	mu    sync.Mutex
	timer *time.Timer
	every time.Duration
	armed bool
	over  bool // the session has ended
}

// startClock starts the clock, which goes on as long as requests are under way.
func (r *relay) startClock() {
	c := &r.expiry
	c.mu.Lock()
	c.every = min(time.Second, max(r.cfg.Timeout/4, time.Millisecond))
	c.timer = time.AfterFunc(c.every, r.tick)
	c.armed = true // what is under way already is seen by the first tick
	c.mu.Unlock()
}

// arm lets the clock run: something is under way.
func (c *expiry) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil && !c.armed && !c.over {
		c.armed = true
		c.timer.Reset(c.every)
	}
}

// tick ends what takes too long, and lets the clock rest where nothing is under way.
func (r *relay) tick() {
	if !r.join() {
		return
	}
	defer r.leave()
	goesOn := r.expire(r.life, time.Now())
	c := &r.expiry
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || !goesOn {
		c.over = true
		return
	}
	// A request that begins behind this look finds the clock at rest, and arms it.
	if c.armed = !r.calls.none(); c.armed {
		c.timer.Reset(c.every)
	}
}

// end stops the clock: after it no tick begins.
func (c *expiry) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.timer != nil {
		c.timer.Stop()
	}
}
