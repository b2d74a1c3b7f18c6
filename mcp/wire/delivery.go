// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"sync"
	"time"
)

// delivery calls the Receiver of a transport as [Conn] and [Receiver] say: not before Start, and
// Ended last.
type delivery struct {
	mu    sync.Mutex
	r     Receiver
	began chan struct{} // closed once there is a Receiver, or none is called any more
	isOn  bool          // began is closed
	calls int           // of the Receiver under way
	shut  bool          // no more calls begin
	over  error         // what Ended is told; nil: not yet known
	told  bool          // Ended has been called
}

func newDelivery() delivery { return delivery{began: make(chan struct{})} }

// start is what a Conn does in Start.
func (d *delivery) start(r Receiver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.r = r
	d.open()
	d.settle()
}

// open lets those go on who wait for Start. d.mu is held.
func (d *delivery) open() {
	if !d.isOn {
		d.isOn = true
		close(d.began)
	}
}

// settle calls Ended when nothing else calls the Receiver any more. It does not wait for it: the
// end of a session may take a while, and the caller may be in the midst of one. d.mu is held.
func (d *delivery) settle() {
	if d.over != nil && d.r != nil && d.calls == 0 && !d.told {
		d.told = true
		go d.r.Ended(d.over)
	}
}

// message hands m to the Receiver once there is one. It is false, and m still the caller's, if
// no more is delivered.
func (d *delivery) message(m *Message) bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	d.r.Message(m)
	return true
}

// violation is message for what is not an acceptable one.
func (d *delivery) violation(v *Violation) bool {
	if !d.enter() {
		return false
	}
	defer d.leave()
	d.r.Violation(v)
	return true
}

// wait returns when there is a Receiver, or none is called any more.
func (d *delivery) wait() { <-d.began }

func (d *delivery) enter() bool {
	d.wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return false
	}
	d.calls++
	return true
}

func (d *delivery) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls--
	d.settle()
}

// stop lets no further call begin.
func (d *delivery) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	d.open()
}

// end is stop, and tells the Receiver why nothing comes any more. The first reason counts.
func (d *delivery) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = true
	d.open()
	if d.over == nil {
		d.over = err
	}
	d.settle()
}

// announceWait bounds how long a Receiver that does not read holds up a new session.
const announceWait = 5 * time.Second

// announce withdraws the requests of a server that has forgotten its session, and sends the
// notifications that its lists may have changed.
func (d *delivery) announce(live context.Context, voided []ID, changed []string) {
	told := make(chan struct{})
	go func() {
		defer close(told)
		for _, id := range voided {
			d.message(parsed(NewCancellation(id, "the session has ended", false)))
		}
		for _, method := range changed {
			d.message(NewRequest(ID{}, method, nil))
		}
	}()
	t := time.NewTimer(announceWait)
	defer t.Stop()
	select {
	case <-told:
	case <-t.C:
	case <-live.Done():
	}
}

// acknowledged waits until the upstream has taken a notification, but not for long; late is called
// where it takes longer than that. live is the context of all that the Conn has under way.
func acknowledged(ctx, live context.Context, taken <-chan struct{}, wait time.Duration, late func()) error {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-taken:
	case <-t.C:
		late()
	case <-ctx.Done():
		return ctx.Err()
	case <-live.Done():
		if errors.Is(context.Cause(live), ErrClosed) {
			return ErrClosed
		}
		<-taken // soon: the loss of the session ends what is under way
	}
	return nil
}
