// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// FrontSession is the Conn of one legacy session, or of all modern requests of
// one principal. Write takes possession of the bytes and never waits for a
// client: what a client does not fetch is kept within bounds, then dropped.
//
// Each HTTP request of the client calls the Receiver in its own goroutine, so several may do so at
// a time. A session in which nothing is under way has no goroutine.
//
// In a modern session ids of different HTTP requests may be equal, so that every
// request gets an ID of its own, and the client's is its Alias.
type FrontSession struct {
	Era       Era
	Principal string

	f    *Front
	id   string       // of a legacy session; f.mu guards it until the client knows it
	room *intake.Room // of the messages that wait for the client
	life string       // tells its events from those that the session had in another process
	to   delivery

	keeping sync.Mutex // held while the registry is told what has changed

	mu         sync.Mutex
	named      bool         // the registry has made the id
	revived    bool         // the session was brought back
	opening    []byte       // the parameters of initialize, for the registry; nil: it need not know
	state      SessionState // what the registry was told
	awaited    map[ID]chan *Message
	accepted   bool       // Accept has been called
	started    bool       // Start has set the Receiver
	served     bool       // Accept's ended has been called
	isEnded    bool       // no more messages come from the client
	isClosed   bool       // no more messages go to the client
	own        []*Message // messages that this package has made for the Receiver
	version    string     // negotiated by initialize
	initialize ID         // while it is under way
	lastKey    int64
	pending    map[ID]*stream // by the id of a request without an answer
	streams    map[int64]*stream
	lastStream int64
	kept       []*stream // streams without a reader that the client may ask for again, oldest first
	users      int       // HTTP requests that use the session
	touched    time.Time
	timer      *time.Timer
}

var _ Conn = (*FrontSession)(nil)

func newFrontSession(f *Front, era Era, principal string) *FrontSession {
	s := &FrontSession{Era: era, Principal: principal, f: f, to: newDelivery(), room: f.opt.Room(principal),
		pending: map[ID]*stream{}, streams: map[int64]*stream{}, touched: time.Now()}
	if f.opt.Registry != nil {
		s.life = rand.Text()[:lifeLen]
	}
	if era == Legacy {
		s.streams[0] = &stream{s: s, wake: make(chan struct{}, 1), next: 1, numbered: true}
	}
	s.mu.Lock()
	defer s.mu.Unlock() // the timer may be quick
	s.timer = time.AfterFunc(f.opt.Idle, s.checkIdle)
	return s
}

// Start implements Conn.
func (s *FrontSession) Start(r Receiver) {
	s.to.start(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started = true; len(s.own) > 0 {
		go func() { s.mu.Lock(); s.unlock() }()
	}
}

// unlock lets go of s.mu, and then tells the Receiver what was said meanwhile.
func (s *FrontSession) unlock() {
	var own []*Message
	if s.started {
		own, s.own = s.own, nil
	}
	s.mu.Unlock()
	for _, m := range own {
		s.to.message(m)
	}
}

// say adds a message that this package has made itself. The caller holds s.mu, and must release it by unlock.
func (s *FrontSession) say(m *Message) { s.own = append(s.own, parsed(m)) }

// accept lets the session be served, if it is not.
func (s *FrontSession) accept() {
	s.mu.Lock()
	first := !s.accepted && !s.isEnded
	s.accepted = s.accepted || first
	s.mu.Unlock()
	if first {
		ctx, cancel := context.WithCancel(s.f.ctx)
		s.f.opt.Accept(ctx, s, func(err error) { s.over(cancel, err) })
	}
}

// over is the end of what serves the session.
func (s *FrontSession) over(cancel context.CancelFunc, err error) {
	s.mu.Lock()
	again := s.served
	s.served = true
	s.mu.Unlock()
	if again {
		return
	}
	s.Close()
	cancel()
	s.f.live.Add(-1)
	if err != nil {
		s.f.notice("session ended: " + finding.Quote(err.Error()))
	}
}

// hand gives a message of the client to the Receiver, when there is one and begin says so. It is
// false, and m still the caller's, if the session has ended.
func (s *FrontSession) hand(m *Message, begin func() bool) bool {
	s.accept()
	s.to.wait()
	if !begin() {
		m.Release()
		return true
	}
	return s.to.message(m)
}

// handAll hands over the messages of one HTTP request, and says how many there was still a
// Receiver for.
func (s *FrontSession) handAll(all []*Message, begin func() bool) int {
	for i, m := range all {
		if !s.hand(m, begin) {
			return i
		}
	}
	return len(all)
}

// Write gives the client a message: an answer to the request that waits for it,
// anything else to the stream that it belongs to.
func (s *FrontSession) Write(_ context.Context, m *Message) error {
	s.mu.Lock()
	defer s.unlock()
	if s.isClosed {
		return ErrClosed
	}
	if m.answers() {
		if !s.lookForAnswer(m) {
			s.answer(m)
		}
		return nil
	}
	if st := s.place(m); st != nil {
		st.push(m)
	} else {
		s.lost(m)
	}
	return nil
}

// answer gives an answer to the stream of its request. s.mu is held.
func (s *FrontSession) answer(m *Message) {
	st := s.pending[m.ID]
	if st == nil { // given up
		m.room.Leave()
		return
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
	s.agree(m)
}

// agree takes the version from an answer to initialize. s.mu is held.
func (s *FrontSession) agree(m *Message) {
	if m.Kind == Response && m.Parse() == nil {
		if v := m.Result.Get("protocolVersion").Text(); len(v) <= len(firstModern) {
			s.version = strings.Clone(v)
		}
	}
}

// place returns the stream that a request or notification belongs to; nil if
// no such stream exists. s.mu is held.
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
		// The server waits for an answer: better on another request's stream than on none. Events
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
			if p := m.Params.Raw(); s.f.opt.Registry != nil && len(p) <= maxOpening {
				s.opening = []byte(cmp.Or(string(p), "{}"))
			}
		}
		st.endless = st.endless || m.Method == methodListen
		s.pending[m.ID] = st
	}
	st.owed = len(requests)
	if s.life != "" && s.Era == Legacy {
		st.asks = appendAsks(nil, requests)
	}
	s.streams[st.no] = st
	return st, nil
}

// cancel gives up what a stream still owes: its reader is gone, or has never
// come to be. In the modern era the Receiver is told so, if it has the request: when its call for
// that has returned.
func (s *FrontSession) cancel(st *stream, tell bool) {
	s.mu.Lock()
	defer s.unlock()
	for id, of := range s.pending {
		if of != st {
			continue
		}
		delete(s.pending, id)
		if tell && st.handed && !s.isClosed {
			st.then = append(st.then, parsed(NewCancellation(id, "client gone", true)))
		}
	}
	if !st.handing {
		s.own, st.then = append(s.own, st.then...), nil
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
	return s.owesLocked()
}

func (s *FrontSession) owesLocked() bool {
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

// end is the end of what comes from the client. What is under way may still be answered.
func (s *FrontSession) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

// endUnlessOwes is end where no answer is under way or unwritten. It reports whether the session has ended: no
// request can have begun meanwhile.
func (s *FrontSession) endUnlessOwes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isEnded && s.owesLocked() {
		return false
	}
	s.endLocked()
	return true
}

func (s *FrontSession) endLocked() {
	if s.isEnded {
		return
	}
	s.isEnded = true
	s.timer.Stop()
	s.to.end(io.EOF)
	if !s.accepted {
		s.f.live.Add(-1) // it never will be
	}
	if listen := s.streams[0]; listen != nil {
		listen.signal()
	}
}

// Close ends the session and every stream of it.
func (s *FrontSession) Close() error {
	s.f.forget(s)
	s.to.end(ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
	if s.isClosed {
		return nil
	}
	s.isClosed = true
	for _, got := range s.awaited {
		close(got)
	}
	s.awaited = nil
	if s.named { // the session goes on: its client is told what does not
		for id, st := range s.pending {
			if st.turn != 0 && !st.dead {
				st.owed--
				st.push(NewError(id, errLost.object()))
			}
		}
	}
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
