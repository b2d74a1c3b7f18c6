// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An Era is one of the two forms of the protocol.
type Era uint8

// The eras.
const (
	Legacy Era = iota // 2024-11-05 to 2025-11-25: initialize, sessions, resumable streams
	Modern            // from 2026-07-28: every request is independent
)

// FrontOptions shapes a [Front]. Accept has to be set; all else is strict when zero.
type FrontOptions struct {
	// Accept begins to serve a session, and returns. Accept, or the code that serves the session,
	// calls ended once: this closes the session, and the error goes to Notice. ctx ends after the
	// session. Accept is called while the session's first request is handled, which waits for
	// Accept and for the session's Start.
	Accept func(ctx context.Context, s *FrontSession, ended func(error))
	// Principal names the caller of a request. A session belongs to the principal that
	// opened it, and does not exist for another. nil: all callers are one principal.
	Principal func(*http.Request) string

	// Claims returns the claims of the caller's token for Message.Caller. It may be nil.
	Claims func(*http.Request) []byte

	limits    strictjson.Limits // of one message; Bytes is MaxBody
	MaxBody   int               // bytes of a request's body; 0 = 32 MiB
	Sessions  int               // open at once; 0 = 256
	requests  int               // POSTs under way; 0 = 1,024
	replay    int               // bytes that a legacy session keeps of each unfinished stream, and of all others, to send again; 0 = 1 MiB
	Idle      time.Duration     // after which an idle session ends; 0 = 30 min
	keepAlive time.Duration     // between comments on a silent stream; 0 = 15 s
	patience  time.Duration     // for the body of a request (plus a second for each 64 KiB), and for a write; 0 = 30 s

	// Room returns memory for the body of a request, or for the messages that a session keeps for its client: a
	// part of a principal's share. nil = of 512 MiB for this Front.
	Room func(principal string) *intake.Room

	// Notice gets messages for the operator: one line each, of constants and escaped excerpts
	// only. Several goroutines may call it. nil: the messages are dropped.
	Notice func(string)

	// Registry knows sessions beyond this process, and so lets them survive its end. nil: a session ends
	// with the process.
	Registry Registry
	// Forwarder knows which process has a session, where several processes serve the endpoint. nil: this
	// one has all.
	Forwarder Forwarder
}

// Front serves one MCP endpoint over streamable HTTP, in both eras: what
// clients send is delivered by a [FrontSession] for each legacy session, and
// by one for all modern requests of a principal.
//
// It trusts the Host and Origin of every request: put auth.Local in front of it.
// The http.Server needs a ReadHeaderTimeout. It must have no WriteTimeout, which would
// cut streams; Front sets a deadline for every part of a request after its header.
type Front struct {
	opt  FrontOptions
	room chan struct{} // a token for each request under way
	ctx  context.Context
	kill context.CancelFunc
	live atomic.Int64 // sessions that are served, or will be

	refusing atomic.Bool // no more requests, also in sessions that there are

	mu       sync.Mutex
	draining bool
	sessions map[string]*FrontSession // legacy, by id
	reviving map[string]*revival      // by id
	shared   map[string]*FrontSession // modern, by principal
}

var _ http.Handler = (*Front)(nil)

// NewFront returns a Front. It panics without an Accept.
func NewFront(opt FrontOptions) *Front {
	if opt.Accept == nil {
		panic("wire: Front without Accept")
	}
	orDefault(&opt.MaxBody, maxMessage(opt.limits))
	orDefault(&opt.Sessions, 256)
	orDefault(&opt.requests, 1024)
	if opt.Room == nil {
		opt.Room = intake.NewBudget(512 << 20).Room
	}
	orDefault(&opt.replay, 1<<20)
	orDefault(&opt.Idle, 30*time.Minute)
	orDefault(&opt.keepAlive, 15*time.Second)
	orDefault(&opt.patience, 30*time.Second)
	opt.limits.Bytes = opt.MaxBody
	f := &Front{opt: opt, room: make(chan struct{}, opt.requests),
		sessions: map[string]*FrontSession{}, shared: map[string]*FrontSession{}, reviving: map[string]*revival{}}
	f.ctx, f.kill = context.WithCancel(context.Background())
	return f
}

func orDefault[T int | time.Duration](v *T, otherwise T) {
	if *v <= 0 {
		*v = otherwise
	}
}

// lingering bounds the sessions that are served, including those that have ended but whose service
// has not: there are at most lingering times as many as may be open.
const lingering = 2

// strangerRest is the time for which a session must have been idle before it may be ended to make
// room for a session of another principal.
const strangerRest = time.Minute

// open begins a session; "" stands for a new id. If all places are taken, it ends an idle session first;
// it returns nil if that is not possible. f.mu is held.
func (f *Front) open(era Era, principal, id string) *FrontSession {
	full := len(f.sessions)+len(f.shared) >= f.opt.Sessions
	if f.draining || f.live.Load() >= int64(lingering*f.opt.Sessions) || full && !f.evict(principal) {
		return nil
	}
	s := newFrontSession(f, era, principal)
	if era == Modern {
		f.shared[principal] = s
	} else {
		s.id = cmp.Or(id, rand.Text())
		f.sessions[s.id] = s
	}
	f.live.Add(1)
	return s
}

// evict ends an idle session, so that principal can open another one. The session is one of
// this principal, or of a principal that has more sessions. Of these it takes the principal with
// the most sessions, and of that principal the session that is idle longest. So a principal that
// opens one session after the other replaces its own, and not those of others. f.mu is held.
func (f *Front) evict(principal string) bool {
	all := func(yield func(*FrontSession) bool) {
		for _, sessions := range []map[string]*FrontSession{f.sessions, f.shared} {
			for _, s := range sessions {
				if !yield(s) {
					return
				}
			}
		}
	}
	has := map[string]int{}
	for s := range all {
		has[s.Principal]++
	}
	var victim *FrontSession
	var since time.Time
	now := time.Now()
	for s := range all {
		at, rests := s.rests()
		if !rests || s.Principal != principal && (now.Sub(at) < strangerRest || has[s.Principal] <= has[principal]) {
			continue
		}
		if victim == nil || has[s.Principal] > has[victim.Principal] || has[s.Principal] == has[victim.Principal] && at.Before(since) {
			victim, since = s, at
		}
	}
	if victim == nil {
		return false
	}
	f.forgetLocked(victim)
	victim.end()
	return true
}

// lookup returns the legacy session with an id, if it is the principal's and not on its way back.
func (f *Front) lookup(id, principal string) *FrontSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.sessions[id]; s != nil && s.Principal == principal && f.reviving[id] == nil {
		return s
	}
	return nil
}

// begin opens a legacy session; nil if there is no room.
func (f *Front) begin(principal string) *FrontSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open(Legacy, principal, "")
}

// share returns the session of all modern requests of a principal; nil if there is no room.
func (f *Front) share(principal string) *FrontSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shared[principal]; s != nil && !f.draining {
		return s
	}
	return f.open(Modern, principal, "")
}

func (f *Front) forget(s *FrontSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetLocked(s)
}

func (f *Front) forgetLocked(s *FrontSession) {
	if s.Era == Modern && f.shared[s.Principal] == s {
		delete(f.shared, s.Principal)
	}
	if s.Era == Legacy && f.sessions[s.id] == s {
		delete(f.sessions, s.id)
	}
}

// Sessions is how many sessions are open.
func (f *Front) Sessions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.sessions) + len(f.shared)
}

const drainPoll = 20 * time.Millisecond

// Shutdown lets no new session begin, waits for the answers to what is under way, ends every session and
// returns when none is served any more. With a Registry the sessions may come back in another process, and
// requests that still arrive are served for half of the time; otherwise they are refused. If ctx ends first, their
// contexts are ended, what is under way is cut, and ctx's error is returned.
func (f *Front) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	f.draining = true
	f.mu.Unlock()
	if end, has := ctx.Deadline(); has {
		defer time.AfterFunc(time.Until(end)/2, func() { f.refusing.Store(true) }).Stop()
	}
	awaitFalse(ctx, func() bool { return f.busy() || !f.endIdle() })
	for _, s := range f.all() {
		s.end()
	}
	awaitFalse(ctx, func() bool { return f.live.Load() > 0 })
	f.kill()
	if f.live.Load() == 0 {
		return nil
	}
	for _, s := range f.all() {
		s.Close()
	}
	return ctx.Err()
}

// awaitFalse returns when still is false or ctx has ended.
func awaitFalse(ctx context.Context, still func() bool) {
	poll := time.NewTicker(drainPoll)
	defer poll.Stop()
	for still() && ctx.Err() == nil {
		select {
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

func (f *Front) busy() bool {
	return slices.ContainsFunc(f.all(), (*FrontSession).owes)
}

// endIdle ends every session in which no answer is under way, and reports whether these are all.
func (f *Front) endIdle() bool {
	all := true
	for _, s := range f.all() {
		all = s.endUnlessOwes() && all
	}
	return all
}

func (f *Front) all() (list []*FrontSession) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		list = append(list, s)
	}
	for _, s := range f.shared {
		list = append(list, s)
	}
	return list
}

func (f *Front) isDraining() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.draining
}

func (f *Front) notice(line string) {
	if f.opt.Notice != nil {
		f.opt.Notice(line)
	}
}
