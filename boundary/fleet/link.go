// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// link is a Conn to a server that stays open when the server ends. When its connection is
// lost, every request under way is answered with a constant error. Then link opens a new
// connection and repeats the handshake on it: initialize, the log level, the subscriptions. It tells
// the other side that every list may have changed, so that the lists of the old process
// do not count for the new one.
//
// It has a goroutine only while a connection is being made.
type link struct {
	outlet
	up   *upstream
	who  string // principal of the session
	ctx  context.Context
	stop context.CancelFunc
	done chan struct{} // closed when its last goroutine has ended

	pause backoff.Waits

	mu      sync.Mutex
	state   state
	timer   *time.Timer   // of paused
	conn    wire.Conn     // nil: not connected
	settled chan struct{} // closed once it is known whether there is a connection
	waiting map[wire.ID]bool
	asked   map[wire.ID]bool // by the server, on this connection
	past    wire.Handshake
	used    time.Time // when the last message passed, in either direction
	linked  bool      // a connection was open before
	resting bool      // not connected: the next request opens a connection
	wanted  bool      // a request has come that needs the connection
	absent  absence   // how a request is answered while not connected
	probed  bool      // the server was asked for its revision on this connection
	talked  bool      // another message passed on this connection, in either direction
}

// A state says what has to happen before a link opens its next connection.
type state int

const (
	fresh  state = iota // Start must be called
	busy                // a connection is open, or is being opened: it must end
	paused              // the pause after a failure must end
	asleep              // a request must come
	over                // the link is closed: it opens no connection any more
)

// An absence is the error that a request gets while the link has no connection.
type absence struct {
	code int
	text string
}

var (
	isAway = absence{wire.CodeAbsent, textAbsent}
	isFull = absence{wire.CodeQueued, textFull}
)

const (
	maxAsked   = 1024
	maxWatched = 1024
	// handshakeWait bounds the time in which a new process must have answered the handshake.
	handshakeWait = 30 * time.Second
	ownWaiting    = 1 << 16 // messages of our own: as many as requests under way
)

// newLink is called while the Fleet has work under way.
func newLink(ctx context.Context, up *upstream, who string) *link {
	l := &link{up: up, who: who, pause: backoff.Waits{First: up.opt.firstWait, Most: up.opt.mostWait}, absent: isAway, done: make(chan struct{}),
		settled: make(chan struct{}), waiting: map[wire.ID]bool{}, asked: map[wire.ID]bool{}}
	l.ctx, l.stop = context.WithCancel(ctx)
	up.f.work.Add(1)
	context.AfterFunc(l.ctx, l.cease)
	return l
}

// Start implements wire.Conn.
func (l *link) Start(r wire.Receiver) {
	l.outlet.Start(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state == fresh {
		l.state = busy
		go l.connect()
	}
}

// Close ends the connection. done is closed when its last goroutine has ended, before Ended is called.
func (l *link) Close() error {
	l.off()
	l.stop()
	return nil
}

// cease ends the connection or the pause, once ctx has ended.
func (l *link) cease() {
	l.mu.Lock()
	conn := l.conn
	last := l.state == fresh || l.state == asleep || l.state == paused && l.timer.Stop()
	if last {
		l.state = over // before Start or a request finds it as it was
	}
	l.mu.Unlock()
	switch {
	case last:
		l.finish()
	case conn != nil:
		conn.Close()
	}
}

// finish closes done.
func (l *link) finish() {
	l.mu.Lock()
	l.state = over
	l.mu.Unlock()
	why := io.EOF
	if l.isOff() {
		why = wire.ErrClosed
	}
	l.stop()
	close(l.done)
	l.end(why)
	l.up.f.work.Done()
}

// connect makes a connection.
func (l *link) connect() {
	l.mu.Lock()
	l.probed, l.talked = false, false
	l.mu.Unlock()
	var s sleeper = l
	if l.up.Shared {
		s = nil // many sessions depend on it
	}
	began := time.Now()
	conn, release, err := l.up.dial(l.ctx, l.who, s)
	if err != nil {
		l.ended(began, err)
		return
	}
	(&life{l: l, conn: conn, release: release, began: began}).begin()
}

// ended says what comes after a connection that has ended, or could not be made.
func (l *link) ended(began time.Time, err error) {
	l.lose(err)
	if l.ctx.Err() != nil || errors.Is(err, wire.ErrChangedVersion) {
		l.finish()
		return
	}
	if time.Since(began) >= steady {
		l.pause.Reset()
	}
	if l.rests(err) {
		return
	}
	wait := l.pause.Next()
	if l.endedAtProbe() {
		l.up.log.Info("the server ended when it was asked for a newer revision of the protocol; it is started again for an older one", "why", why(err))
		l.up.failed(err)
	} else {
		l.up.lost(err, wait)
	}
	l.mu.Lock()
	gone := l.ctx.Err() != nil // else cease comes later, and finds the timer
	if !gone {
		l.state = paused
		l.timer = time.AfterFunc(wait, l.again)
	}
	l.mu.Unlock()
	if gone {
		l.finish()
	}
}

// again makes another connection after a pause.
func (l *link) again() {
	l.mu.Lock()
	l.state = busy
	l.settled = make(chan struct{})
	l.mu.Unlock()
	l.connect() // which looks at ctx
}

// endedAtProbe reports whether the last connection was asked for its revision, and ended
// before anything else was said: some servers end when the first request is not initialize.
func (l *link) endedAtProbe() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.probed && !l.talked
}

// settle notes that a request has its answer.
func (l *link) settle(k wire.Kind, id wire.ID) {
	if k != wire.Response && k != wire.ErrorResponse {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

// arrive notes what has come.
func (l *link) arrive(conn wire.Conn, m *wire.Message) {
	l.up.heard(m)
	l.settle(m.Kind, m.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used, l.talked = time.Now(), true
	switch m.Kind {
	case wire.Request:
		if len(l.asked) < maxAsked { // no answer goes back to what is beyond
			l.asked[m.ID] = true
		}
	case wire.Response:
		if l.past.Answered(m) {
			wire.AllowBatches(conn, wire.HasBatches(l.past.Version))
		}
	}
}

// lose answers everything that the lost connection never will.
func (l *link) lose(err error) {
	l.mu.Lock()
	l.absent = isAway
	if errors.Is(err, errFull) {
		l.absent = isFull
	}
	text := textLost
	if l.conn == nil {
		text = l.absent.text
	}
	l.conn = nil
	select {
	case <-l.settled:
	default:
		if !l.resting { // then requests wait for the next connection
			close(l.settled)
		}
	}
	waiting := l.waiting
	l.waiting = map[wire.ID]bool{}
	clear(l.asked)
	if l.past.Version == "" {
		l.past = wire.Handshake{} // the client will have to begin anew
	}
	l.mu.Unlock()
	for id := range waiting {
		l.message(constant(id, wire.CodeAbsent, text, nil))
	}
}

// Write gives the server a message. What cannot be asked at present is answered
// with a constant error.
func (l *link) Write(ctx context.Context, out *wire.Message) error {
	id := out.ID
	for {
		asleep, settled := l.sleeps(out)
		if asleep {
			return nil
		}
		if err := l.await(ctx, settled); err != nil {
			return err
		}
		l.mu.Lock()
		if !l.resting || l.absent == isFull {
			break // the message has its connection, or the one made for it found no room
		}
		l.mu.Unlock() // its process has ended just now
	}
	conn := l.conn
	l.used = time.Now()
	switch {
	case out.Kind == wire.Request && conn == nil:
		absent := l.absent
		l.mu.Unlock()
		l.message(constant(out.ID, absent.code, absent.text, nil))
		return nil
	case out.Kind == wire.Request:
		l.waiting[out.ID] = true
	case out.Kind == wire.Response || out.Kind == wire.ErrorResponse:
		if !l.asked[out.ID] {
			l.mu.Unlock()
			return nil // a process asked that is no more
		}
		delete(l.asked, out.ID)
	case !out.Route.Cancels.IsZero():
		delete(l.waiting, out.Route.Cancels)
	}
	l.past.Note(out)
	if out.Method == mcpmsg.Discover {
		l.probed = true
	} else {
		l.talked = true
	}
	l.mu.Unlock()
	if conn == nil {
		return nil
	}
	err := conn.Write(ctx, out)
	if err == nil {
		return nil
	}
	l.mu.Lock()
	unanswered := l.waiting[id]
	delete(l.waiting, id)
	l.mu.Unlock()
	if !unanswered || ctx.Err() != nil || l.ctx.Err() != nil {
		return err
	}
	// The server has just ended, as it seems. Some requests have no caller to take the error.
	l.message(constant(id, wire.CodeAbsent, textAbsent, err))
	return nil
}

// await waits while a connection is being made.
func (l *link) await(ctx context.Context, settled <-chan struct{}) error {
	select {
	case <-settled:
		return nil
	case <-l.ctx.Done():
		return wire.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// maxWhy bounds what an operator is told of one failure, in bytes.
const maxWhy = 1 << 10

// why is an error for the operator: whole, since what a server has said is quoted and
// short wherever an error repeats it, and escaped, in case that it is not.
func why(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "connection closed"
	}
	var b []byte
	for _, r := range err.Error() {
		if b = appendPlain(b, r); len(b) > maxWhy {
			return string(b[:maxWhy]) + "..."
		}
	}
	return string(b)
}

// appendPlain appends r, escaped unless it is a printable character of ASCII.
func appendPlain(b []byte, r rune) []byte {
	if ' ' <= r && r <= '~' {
		return append(b, byte(r))
	}
	quoted := strconv.QuoteRuneToASCII(r)
	return append(b, quoted[1:len(quoted)-1]...)
}
