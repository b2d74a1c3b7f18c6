// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// holdRequest keeps the request m of a call if there is something to wait for; begin means that the caller has to
// bring it about.
func (c *calls) holdRequest(k *call, m *wire.Message, current func() bool) (kept, begin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.listing && current() {
		return false, false
	}
	begin, c.listing = !c.listing, true
	k.held = m
	c.waiting = append(c.waiting, k)
	return true, begin
}

// nextHeld takes the first request that was held. Holding is over when no request is left.
func (c *calls) nextHeld() (*call, *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.listing, c.waiting = false, nil
		return nil, nil
	}
	k := c.waiting[0]
	m := k.held
	c.waiting, k.held = c.waiting[1:], nil
	return k, m
}

// unholdLocked forgets the request of a call that goes no further.
func (c *calls) unholdLocked(k *call) {
	if k.held == nil {
		return
	}
	k.held.Release()
	k.held = nil
	c.waiting = slices.DeleteFunc(c.waiting, func(other *call) bool { return other == k })
}

// awaitedLocked reports whether the client waits for the answer to the request. A cancelled request is closed.
func (c *calls) awaitedLocked(k *call) bool {
	if c.up[k.n] != k {
		return false
	}
	if k.cancelled {
		c.closeLocked(k)
	}
	return !k.cancelled
}

// send notes that the request is now being written, if the client waits for the answer.
func (c *calls) send(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.awaitedLocked(k) {
		return false
	}
	k.stage = sending
	c.writeLocked()
	return true
}

// sent says that the request was written. It returns what has to be sent behind it, or nil.
func (c *calls) sent(k *call) (next *wire.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.stage == sending {
		k.stage = sent
	}
	next, k.next = k.next, nil
	c.writing--
	return next
}

// reopen notes that the server has not carried the request out, if the client waits for the answer.
func (c *calls) reopen(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.awaitedLocked(k) {
		return false
	}
	k.stage, k.repeated = fresh, true
	return true
}

// What becomes of a message that follows a request.
type following uint8

const (
	neverSend following = iota // the server does not get the request, or gets another such message
	sendLater                  // who writes the request sends it
	sendNow
)

// follow says when the server gets m, which speaks of the request: not before the request.
func (c *calls) follow(k *call, m *wire.Message) following {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case k.stage == fresh, k.stage == sending && k.next != nil:
		return neverSend
	case k.stage == sending:
		k.next = m
		return sendLater
	}
	return sendNow
}

// write says that a message is being written to the server; wrote, that it was.
func (c *calls) write() {
	defer c.oneMore()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeLocked()
}

func (c *calls) writeLocked() {
	if c.writing++; c.writing == 1 {
		c.since = time.Now()
	}
}

func (c *calls) wrote() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing--
}

// arrived says that the server has sent a message, which is on its way to the client until passed.
func (c *calls) arrived() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passing++
	c.spoke = time.Now()
}

// pass says that a message is on its way to the client; passed, that it is there.
func (c *calls) pass() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passing++
}

func (c *calls) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passing--
	c.restedLocked()
}

// rest returns what is closed once no message is on its way to the client, and with all no call is waited for.
func (c *calls) rest(all bool) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := rest{all, make(chan struct{})}
	c.rests = append(c.rests, r)
	c.restedLocked()
	return r.closed
}

// restedLocked tells those that wait for an end which has come.
func (c *calls) restedLocked() {
	if len(c.rests) == 0 || c.passing > 0 {
		return
	}
	c.rests = slices.DeleteFunc(c.rests, func(r rest) bool {
		if r.all && !c.idleLocked() {
			return false
		}
		close(r.closed)
		return true
	})
}
