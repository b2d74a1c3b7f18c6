// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// FrontSession is the Conn of one legacy session, or of all modern requests of
// one principal. Write takes possession of the bytes and never waits for a
// client: what a client does not fetch is kept within bounds, then dropped.
//
// In a modern session ids of different HTTP requests may be equal, so that every
// request gets an ID of its own, and the client's is its Alias.
type FrontSession struct {
	Era       Era
	Principal string

	f      *Front
	id     string // of a legacy session
	in     chan *Message
	poke   chan struct{} // there is something in own
	ended  chan struct{} // nothing more will come from the client
	closed chan struct{} // nothing more will go to it

	mu         sync.Mutex
	isEnded    bool
	isClosed   bool
	own        []*Message // from this package, for Read
	version    string     // negotiated by initialize
	initialize ID         // while it is under way
	lastKey    int64
	pending    map[ID]*stream // by request that is not answered
	streams    map[int64]*stream
	lastStream int64
	kept       []*stream // that nobody reads and somebody may ask for again, oldest first
	users      int       // HTTP requests that have to do with it
	touched    time.Time
	timer      *time.Timer
}

var _ ReadConn = (*FrontSession)(nil)

func newFrontSession(f *Front, era Era, principal string) *FrontSession {
	s := &FrontSession{Era: era, Principal: principal, f: f,
		in: make(chan *Message), poke: make(chan struct{}, 1),
		ended: make(chan struct{}), closed: make(chan struct{}),
		pending: map[ID]*stream{}, streams: map[int64]*stream{}, touched: time.Now()}
	if era == Legacy {
		s.streams[0] = &stream{s: s, wake: make(chan struct{}, 1), next: 1, numbered: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock() // the timer may be quick
	s.timer = time.AfterFunc(f.opt.Idle, s.checkIdle)
	return s
}

// Read returns the next message of any of the client's requests, io.EOF once
// the session has ended, ErrClosed after Close.
func (s *FrontSession) Read(ctx context.Context) (*Message, error) {
	for {
		if m := s.nextOwn(); m != nil {
			return m, nil
		}
		select {
		case <-s.closed:
			return nil, ErrClosed
		case m := <-s.in:
			return m, nil
		case <-s.poke:
		case <-s.ended:
			if m := s.nextOwn(); m != nil {
				return m, nil
			}
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *FrontSession) nextOwn() *Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.own) == 0 {
		return nil
	}
	m := s.own[0]
	s.own = s.own[1:]
	return m
}

// say lets Read return a message of this package's own making. s.mu is held.
func (s *FrontSession) say(m *Message) {
	s.own = append(s.own, parsed(m))
	select {
	case s.poke <- struct{}{}:
	default:
	}
}

var errBusyReader = errors.New("wire: session does not read")

// submit hands a message of the client to Read.
func (s *FrontSession) submit(ctx context.Context, m *Message) error {
	select {
	case <-s.ended: // before a Read that happens to wait
		return io.EOF
	case s.in <- m:
		return nil
	default:
	}
	t := time.NewTimer(s.f.opt.patience)
	defer t.Stop()
	select {
	case s.in <- m:
		return nil
	case <-s.ended:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return errBusyReader
	}
}

// Write gives the client a message: an answer to the request that waits for it,
// anything else to the stream that it belongs to.
func (s *FrontSession) Write(_ context.Context, m *Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosed {
		return ErrClosed
	}
	if m.answers() {
		s.answer(m)
		return nil
	}
	if st := s.place(m); st != nil {
		st.push(m)
	} else {
		s.lost(m)
	}
	return nil
}

// answer gives an answer to whoever waits for it. s.mu is held.
func (s *FrontSession) answer(m *Message) {
	st := s.pending[m.ID]
	if st == nil {
		return // given up
	}
	m.Alias = st.alias
	delete(s.pending, m.ID)
	if m.ID == s.initialize {
		s.settle(m)
	}
	st.owed--
	st.push(m)
}

// settle learns from the answer to initialize. s.mu is held.
func (s *FrontSession) settle(m *Message) {
	s.initialize = ID{}
	if m.Kind != Response {
		return
	}
	if m.Parse() == nil {
		if v := m.Result.Get("protocolVersion").Text(); len(v) <= len(firstModern) {
			s.version = strings.Clone(v)
		}
	}
}

// place returns the stream that a request or notification belongs to; nil if
// there is none. s.mu is held.
func (s *FrontSession) place(m *Message) *stream {
	if st := s.pending[m.Related]; st != nil && !st.dead && !m.Related.IsZero() {
		if s.Era == Legacy || m.Kind == Notification {
			return st
		}
	}
	if s.Era == Modern { // spec: a stream carries what belongs to its request, and no requests
		return nil
	}
	listen := s.streams[0]
	if listen.turn == 0 && m.Kind == Request {
		// Somebody waits for it: better on another's stream than on none. Events
		// that are sent again are still those of one stream only.
		for n := s.lastStream; n > 0 && n > s.lastStream-maxKept; n-- {
			if st := s.streams[n]; st != nil && st.owed > 0 && !st.dead {
				return st
			}
		}
	}
	return listen
}

// lost answers, in the client's name, a request that cannot reach it. s.mu is held.
func (s *FrontSession) lost(m *Message) {
	if m.Kind != Request {
		return
	}
	s.say(NewError(m.ID, fmt.Appendf(nil, `{"code":%d,"message":"pellucid: the client cannot be asked"}`, CodeNoMethod)))
}

var errTaken = errors.New("wire: id already under way")

// open registers the requests of one HTTP request and gives them a stream.
// Errors: errTaken, io.EOF.
func (s *FrontSession) open(requests ...*Message) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isEnded {
		return nil, io.EOF
	}
	s.lastStream++
	st := &stream{s: s, no: s.lastStream, turn: 1, turns: 1, wake: make(chan struct{}, 1), next: 1}
	for i, m := range requests {
		if s.Era == Modern {
			s.lastKey++
			m.Alias, m.ID = m.ID, IntID(s.lastKey)
			st.alias = m.Alias
		}
		if s.pending[m.ID] != nil {
			for _, earlier := range requests[:i] {
				delete(s.pending, earlier.ID)
			}
			return nil, errTaken
		}
		if s.Era == Legacy && m.Method == methodInitialize {
			s.initialize = m.ID
		}
		st.endless = st.endless || m.Method == methodListen
		s.pending[m.ID] = st
	}
	st.owed = len(requests)
	s.streams[st.no] = st
	return st, nil
}

// cancel gives up what a stream still owes: its reader is gone, or has never
// come to be. In the modern era the other side is told so.
func (s *FrontSession) cancel(st *stream, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, of := range s.pending {
		if of != st {
			continue
		}
		delete(s.pending, id)
		if tell && !s.isClosed {
			params := append(id.Append([]byte(`{"requestId":`)), `,"reason":"client gone","_meta":{"`+keyVersion+`":"`+firstModern+`"}}`...)
			s.say(NewRequest(ID{}, methodCancelled, params))
		}
	}
	st.kill()
}

// withdraw ends the wait for a request that the client itself has cancelled:
// there will be no answer.
func (s *FrontSession) withdraw(id ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.pending[id]; st != nil && id != s.initialize {
		delete(s.pending, id)
		st.owed--
		st.signal()
	}
}

// enter and leave stand around every HTTP request of the session.
func (s *FrontSession) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

func (s *FrontSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users--
	s.touched = time.Now()
}

// rests reports whether nothing is under way, and since when.
func (s *FrontSession) rests() (since time.Time, rests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.touched, s.users == 0 && len(s.pending) == 0
}

// owes reports whether an answer is under way or not yet written.
func (s *FrontSession) owes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.pending {
		if !st.endless {
			return true
		}
	}
	for _, st := range s.streams {
		if st.no != 0 && st.turn != 0 && !st.endless {
			return true
		}
	}
	return false
}

func (s *FrontSession) negotiated() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// checkIdle ends the session if nothing has happened in it for long enough.
func (s *FrontSession) checkIdle() {
	since, rests := s.rests()
	if rest := s.f.opt.Idle - time.Since(since); rests && rest > 0 {
		s.again(rest)
		return
	}
	if !rests {
		s.again(s.f.opt.Idle)
		return
	}
	s.f.forget(s)
	s.end()
}

func (s *FrontSession) again(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isEnded {
		s.timer.Reset(after)
	}
}

// end lets Read return io.EOF once it has returned everything. What is under
// way may still be answered.
func (s *FrontSession) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

func (s *FrontSession) endLocked() {
	if s.isEnded {
		return
	}
	s.isEnded = true
	s.timer.Stop()
	close(s.ended)
}

// Close ends the session and every stream of it.
func (s *FrontSession) Close() error {
	s.f.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
	if s.isClosed {
		return nil
	}
	s.isClosed = true
	close(s.closed)
	clear(s.pending)
	s.own, s.kept = nil, nil
	for no, st := range s.streams {
		if st.signal(); no == 0 || st.turn == 0 {
			st.kill()
		}
	}
	return nil
}

// metaVersion is the revision that a message names in its _meta.
func metaVersion(params strictjson.Value) strictjson.Value {
	return params.Get("_meta").Get(keyVersion)
}
