// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"sync/atomic"
	"time"
)

// How the goroutine of a client's HTTP request hands over what has come, and what the client hears
// where that takes its time. A Receiver that waits holds up this request only.

// handOver is how long the Receiver may take with a request before its answer is looked after by
// another goroutine: the client is to be kept alive, and its going is to be noticed.
const handOver = time.Second

// ask hands messages over, and pumps the stream of those that are requests. It is false, and
// nothing has been written, if the session is over; the messages are the caller's then.
func (p *pump) ask(all ...*Message) bool {
	if p.st.primeFirst() && !p.began {
		_ = p.begin(-1) // the session has its name
		p.prime()
		p.flush()
	}
	p.started = p.started || p.began
	pumped := make(chan struct{})
	late := time.AfterFunc(min(handOver, p.f.opt.keepAlive), func() {
		defer close(pumped)
		p.early()
		p.run()
	})
	n := p.st.s.handAll(all, p.st.begin)
	p.st.done()
	if n == 0 {
		p.st.s.cancel(p.st, false)
	}
	for _, m := range all[n:] { // what has been said is answered
		p.st.s.withdraw(m.ID)
	}
	p.letGo()
	if !late.Stop() {
		<-pumped
		return true
	}
	if n > 0 {
		p.run()
		return true
	}
	if p.started { // it is too late for another session
		for i, m := range all {
			p.event(&queued{no: int64(i) + 1, m: NewError(m.ID, errNoServer.object())}, true)
			m.Release()
		}
		p.flush()
	}
	return p.started
}

// tell hands over what has no answer, and says so once that is done, or when it takes too long. The
// request with the id withdrawn is not waited for any more. It is false, and nothing has been
// written, if the session is over; the messages are the caller's then.
func (x *exchange) tell(s *FrontSession, withdrawn ID, all ...*Message) bool {
	var begun atomic.Bool // or given up
	told := make(chan struct{})
	late := time.AfterFunc(x.f.opt.patience, func() {
		defer close(told)
		x.early()
		if begun.Swap(true) {
			x.accepted() // the Receiver has it: what it does with it, it need not wait for
		} else {
			x.reject(ID{}, errFull)
		}
	})
	given := false
	n := s.handAll(all, func() bool {
		given = given || !begun.Swap(true)
		return given
	})
	if given && n > 0 && !withdrawn.IsZero() {
		s.withdraw(withdrawn)
	}
	if !late.Stop() {
		<-told
		return true
	}
	if n > 0 {
		x.w.WriteHeader(http.StatusAccepted)
	}
	return n > 0
}

// early is before an answer that may be complete before the request's own goroutine is done: until
// then the connection serves no other request.
func (x *exchange) early() { x.w.Header().Set("Connection", "close") }

// accepted answers that a message was accepted.
func (x *exchange) accepted() {
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.f.opt.patience))
	x.w.Header().Set("Content-Length", "0")
	x.w.WriteHeader(http.StatusAccepted)
	_ = x.rc.Flush()
	_ = x.rc.SetWriteDeadline(time.Time{})
}
