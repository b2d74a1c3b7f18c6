// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"sync"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// outlet is how a Conn of this package calls its Receiver, from any goroutine: not before
// Start, not once it is shut, and with Ended behind every other call.
type outlet struct {
	mu    sync.Mutex
	r     wire.Receiver // nil: Start has not been called
	calls int           // under way
	shut  bool          // nothing is delivered any more
	why   error         // that is told by Ended; nil: more may come
	told  bool          // Ended has been called
}

// Start implements wire.Conn.
func (o *outlet) Start(r wire.Receiver) {
	o.mu.Lock()
	o.r = r
	o.mu.Unlock()
	o.leave(0)
}

// enter begins a call of the Receiver; leave ends it.
func (o *outlet) enter() (wire.Receiver, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.r == nil || o.shut {
		return nil, false
	}
	o.calls++
	return o.r, true
}

// leave ends n calls. The last one tells the Receiver the end.
func (o *outlet) leave(n int) {
	o.mu.Lock()
	o.calls -= n
	last := o.calls == 0 && o.why != nil && !o.told && o.r != nil
	o.told = o.told || last
	o.mu.Unlock()
	if last {
		o.r.Ended(o.why)
	}
}

// message delivers m, or releases it. It reports which.
func (o *outlet) message(m *wire.Message) bool {
	r, ok := o.enter()
	if !ok {
		m.Release()
		return false
	}
	r.Message(m)
	o.leave(1)
	return true
}

func (o *outlet) violation(v *wire.Violation) {
	if r, ok := o.enter(); ok {
		r.Violation(v)
		o.leave(1)
	}
}

// off lets no more calls begin.
func (o *outlet) off() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shut = true
}

// end is off, and has the Receiver told why. The first reason counts.
func (o *outlet) end(why error) {
	o.mu.Lock()
	o.shut = true
	if o.why == nil {
		o.why = why
	}
	o.mu.Unlock()
	o.leave(0)
}

func (o *outlet) isOff() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// queue hands messages on one after the other, in a goroutine that lives while there are any:
// the goroutine that puts a message in does not wait for the one that takes it.
type queue struct {
	hand func(*wire.Message)

	mu      sync.Mutex
	waiting []*wire.Message
	begun   bool   // messages are handed on; before, they wait
	working bool   // the goroutine lives
	over    bool   // none is taken any more
	last    func() // called behind the last
}

// put leaves a message. It reports false, and has released m, if limit messages wait already or the
// queue is over.
func (q *queue) put(m *wire.Message, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || len(q.waiting) >= limit {
		m.Release()
		return false
	}
	q.waiting = append(q.waiting, m)
	q.wake()
	return true
}

// wake starts the goroutine if it has something to do. q.mu is held.
func (q *queue) wake() {
	if q.begun && !q.working && (len(q.waiting) > 0 || q.last != nil) {
		q.working = true
		go q.work()
	}
}

func (q *queue) begin() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begun = true
	q.wake()
}

func (q *queue) work() {
	for m, last := q.next(); m != nil || last != nil; m, last = q.next() {
		if m != nil {
			q.hand(m)
		} else {
			last()
		}
	}
}

// next is what is to be done; nothing ends the goroutine.
func (q *queue) next() (m *wire.Message, last func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		last, q.last = q.last, nil
		q.waiting, q.working = nil, last != nil
		return nil, last
	}
	m = q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	return m, nil
}

// end takes no more messages, and calls last once those that wait are handed on.
func (q *queue) end(last func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.over {
		q.over, q.last = true, last
		q.wake()
	}
}

// drop is end without those that wait.
func (q *queue) drop(last func()) {
	q.mu.Lock()
	for _, m := range q.waiting {
		m.Release()
	}
	q.waiting, q.over, q.begun, q.last = nil, true, true, last
	q.wake()
	q.mu.Unlock()
}
