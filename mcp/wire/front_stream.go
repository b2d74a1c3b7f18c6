// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/platform/intake"
)

// stream is what one HTTP request of a client is answered with, or the one on
// which a legacy client listens (number 0). Its fields are guarded by s.mu.
//
// Events are counted from 1. A legacy stream that carries more than one answer
// gets ids and keeps what it has written, within bounds, for a client that lost
// its connection. A stream that the client cannot ask for again keeps nothing.
type stream struct {
	s       *FrontSession
	no      int64
	owed    int // answers that are still to come
	endless bool
	alias   ID     // of its one request, in the modern era
	asks    []byte // the ids of its requests, as an event id has them
	primed  bool   // the client has an event id of it, by which it may come again

	handed  bool       // the Receiver has its request, or is about to get it
	handing bool       // its request is being handed over
	then    []*Message // for the Receiver, when that is done

	queue    []queued
	size     int           // bytes in queue
	last     int64         // number of the last event that came
	next     int64         // of the next to be written
	gone     int64         // of the last that was written and is not kept
	wake     chan struct{} // of the response whose turn it is
	turn     int           // the HTTP response that writes it; 0 = none
	turns    int
	numbered bool
	dead     bool // its reader is gone for good
}

// A queued is one event of a stream, which waits to be written or is kept for a client that comes back.
type queued struct {
	no   int64
	m    *Message
	size int          // of the message, in bytes
	room *intake.Room // of the message, instead of the session's
	kept bool         // it bears its number as an id, and stays for a while
}

// Bounds of what waits in a stream.
const (
	maxQueued = 1024 // events
	maxKept   = 16   // finished streams of a session
)

// begin is before the stream's requests are handed to the Receiver: it is false if the client is
// gone, and the Receiver need not know of them.
func (st *stream) begin() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if !st.dead {
		st.handed, st.handing = true, true
	}
	return !st.dead
}

// done is after they were handed over.
func (st *stream) done() {
	st.s.mu.Lock()
	defer st.s.unlock()
	st.handing = false
	st.s.own, st.then = append(st.s.own, st.then...), nil
}

func (st *stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// push adds a message to the stream as an event, and wakes its reader. Where the memory for waiting
// messages is full, an answer becomes an error, and any other message is lost.
func (st *stream) push(m *Message) {
	if st.dead {
		if !m.answers() {
			st.s.lost(m)
		}
		m.room.Leave()
		return
	}
	e := queued{m: m, size: m.Len(), room: m.room}
	if e.room == nil && st.s.room.Take(int64(e.size)) != nil {
		if !m.answers() {
			st.s.lost(m)
			return
		}
		e.m = NewError(m.shown(), errFull.object())
		e.m.Whole, e.size = true, 0 // a few constant bytes
	}
	st.last++
	e.no = st.last
	st.queue = append(st.queue, e)
	st.size += e.size
	st.trim()
	st.signal()
}

// trim drops what has been written beyond the bounds, and then, where the
// client does not read fast enough, the oldest messages that are not answers.
func (st *stream) trim() {
	replay := st.s.f.opt.replay
	if st.s.room.Scarce() { // waiting messages come before sent ones
		replay = 0
	}
	for len(st.queue) > 0 && st.queue[0].no < st.next && (!st.numbered || st.overfull(replay)) {
		st.gone = st.queue[0].no
		st.drop(0)
	}
	most := max(st.s.f.opt.MaxBody, st.s.f.opt.replay)
	if st.turn == 0 {
		most = st.s.f.opt.replay
	}
	for i := 0; i < len(st.queue) && st.overfull(most); {
		if e := st.queue[i]; e.no >= st.next && !e.m.answers() {
			st.s.lost(e.m)
			st.drop(i)
		} else {
			i++
		}
	}
}

func (st *stream) overfull(most int) bool { return st.size > most || len(st.queue) > maxQueued }

// giveBack returns the memory of an event.
func (st *stream) giveBack(e queued) {
	st.size -= e.size
	if e.room != nil {
		e.room.Leave()
	} else {
		st.s.room.Give(int64(e.size))
	}
}

func (st *stream) drop(i int) {
	st.giveBack(st.queue[i])
	if i == 0 { // the usual case, without moving the others
		st.queue[0] = queued{}
		st.queue = st.queue[1:]
		return
	}
	st.queue = slices.Delete(st.queue, i, i+1)
}

// waker returns what wakes a response, which is at once if its turn is over.
func (st *stream) waker(turn int) <-chan struct{} {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.turn == turn {
		return st.wake
	}
	over := make(chan struct{})
	close(over)
	return over
}

type readiness uint8

const (
	nothing readiness = iota // nothing to write at present
	ready
	finished // nothing more will come
	taken    // another response writes the stream now
)

// take returns the next event to be written by a response and whether it is
// the last.
func (st *stream) take(turn int) (e queued, last bool, v readiness) {
	st.s.mu.Lock()
	defer st.s.unlock()
	if st.turn != turn {
		return e, false, taken
	}
	if i := slices.IndexFunc(st.queue, func(e queued) bool { return e.no >= st.next }); i >= 0 {
		e = st.queue[i]
		st.next = e.no + 1
		last = st.no != 0 && st.owed == 0 && i == len(st.queue)-1
		if !e.m.answers() || !last {
			st.number()
		}
		e.kept = st.numbered
		st.trim()
		return e, last, ready
	}
	if st.no != 0 && (st.owed <= 0 || st.dead) || st.s.isClosed || st.no == 0 && st.s.isEnded {
		return e, false, finished
	}
	return e, false, nothing
}

// number gives ids to the events from here on where a client may use them.
func (st *stream) number() { st.numbered = st.numbered || st.s.Era == Legacy }

// prime returns the number of the event that the client is to have seen
// before anything comes, and gives the stream ids; ok is false where the
// revision does not know of such events.
func (st *stream) prime() (no int64, ok bool) {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.s.Era == Modern || st.s.version < firstWithPrimes {
		return 0, false
	}
	st.number()
	return st.next - 1, true
}

// primeFirst reports whether the client gets an event id before its request is handed over, so that it
// comes again, and does not give the request up, where this process ends meanwhile. The stream keeps
// nothing until the client has gone.
func (st *stream) primeFirst() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	st.primed = st.no != 0 && st.s.named && st.s.version >= firstWithPrimes
	return st.primed
}

// left is after the client's going: a client that has an event id may come again.
func (st *stream) left() {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if st.primed {
		st.number()
	}
}

// delivered reports whether the client has had all that there is on the stream.
func (st *stream) delivered() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.no != 0 && st.owed <= 0 && (len(st.queue) == 0 || st.queue[len(st.queue)-1].no < st.next)
}

// release ends a response's turn.
func (st *stream) release(turn int) {
	s := st.s
	s.mu.Lock()
	defer s.unlock()
	if st.turn != turn {
		return
	}
	st.turn = 0
	switch {
	case s.isClosed, !st.numbered:
		st.kill()
	case st.no != 0:
		s.keep(st)
	}
}

// keep keeps a stream without a reader for a while, and forgets the oldest of
// too many.
func (s *FrontSession) keep(st *stream) {
	s.kept = append(s.kept, st)
	size := 0
	for _, st := range s.kept {
		size += st.size
	}
	for len(s.kept) > maxKept || size > s.f.opt.replay && len(s.kept) > 0 {
		size -= s.kept[0].size
		s.kept[0].kill()
		s.kept = s.kept[1:]
	}
}

// kill forgets a stream that will not be read any more.
func (st *stream) kill() {
	for _, e := range st.queue {
		if e.no >= st.next && !e.m.answers() {
			st.s.lost(e.m)
		}
		st.giveBack(e)
	}
	st.dead, st.queue = true, nil
	st.signal()
	if st.no != 0 {
		delete(st.s.streams, st.no)
	}
}

// attach gives the stream to another response, which goes on behind event last,
// or where the one before left off if resume is false. ok is false for an event
// that is not kept, or has never been.
func (s *FrontSession) attach(no, last int64, resume bool) (st *stream, turn int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st = s.streams[no]
	if st == nil || s.isEnded {
		return nil, 0, false
	}
	if resume {
		if st.primed && last == 0 && st.gone == 0 {
			st.number()
		}
		if last > st.last || last < st.gone && no != 0 || !st.numbered {
			return nil, 0, false
		}
		st.next = last + 1
	}
	s.kept = slices.DeleteFunc(s.kept, func(kept *stream) bool { return kept == st })
	st.turns++
	st.turn = st.turns
	close(st.wake) // ends the reader that had the stream before
	st.wake = make(chan struct{}, 1)
	st.signal()
	return st, st.turn, true
}

// owes reports whether the stream ends before its answers have come.
func (st *stream) owes() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.owed > 0
}
