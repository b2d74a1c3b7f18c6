// SPDX-License-Identifier: Apache-2.0

// Package forward brings a request of a session to the replica that has the session, and takes a session over whose replica is gone.
//
//   - The store says which replica owns a session. The answer is remembered until the owner says that it
//     is not the owner, or is gone, and for a few seconds at the most: of a claim a replica may not be told.
//   - A request whose session another replica owns is sent there as it came, with the principal that was
//     authenticated here, and its answer is passed on as it arrives. The owner does not send it further.
//   - Where the owner is gone, the session is claimed: the store changes its owner if no other replica was
//     first.
//   - What the owner may have received is not sent again, unless it can do no harm: a call is never
//     carried out twice.
package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/peer"
	"github.com/pellucid-mcp/pellucid/platform/replica"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Options are what a Forwarder is made of.
type Options struct {
	Member  *replica.Member
	Store   session.Store
	Open    func(token string) (*session.Session, error)
	Out     *http.Transport // to other replicas: peer.Keys.Transport
	MaxBody int             // bytes of a request's body
	// Caller is what a replica has to know of the principal of a request; the Handler of the other
	// replica gets it. Erasable is the name by which a person's data is erased, of a principal.
	Caller   func(r *http.Request) string
	Erasable func(principal string) string
	// Drop ends the session with that Session.ID in this process, where it has it.
	Drop    func(id string)
	Counted func(outcome string) // one of the constants below; nil: nothing is counted
	Log     *slog.Logger         // nil: nothing is logged

	wait  time.Duration // for an owner that does not answer, and for the own lease; 0 = 10 s
	trust time.Duration // in what the store has said of a session's owner; 0 = 2 s
}

// What is counted.
const (
	CountForwarded = "forwarded" // another replica has answered
	CountClaimed   = "claimed"   // a session was taken over
	CountRefused   = "refused"   // the other replica does not have the session
	CountAway      = "away"      // the client was told to try again
	CountLost      = "lost"      // the client was told that the answer is lost
)

// A Forwarder is a wire.Forwarder. Close ends it.
type Forwarder struct {
	o      Options
	ctx    context.Context
	stop   context.CancelFunc
	owners owners
	told   atomic.Int64 // claims of which this replica was told

	work sync.WaitGroup

	mu      sync.Mutex
	leaving bool
	self    string // the id under which this replica has claimed sessions
	under   map[*sending]bool
	gone    map[string]bool // replicas that answer no more requests
}

var _ wire.Forwarder = (*Forwarder)(nil)

// sending is a request under way to another replica.
type sending struct {
	owner  string
	stream bool // a stream on which a client listens: it can be asked for again elsewhere
	stop   context.CancelCauseFunc
}

// New returns a Forwarder.
func New(o Options) *Forwarder {
	o.wait, o.trust = cmp.Or(o.wait, 10*time.Second), cmp.Or(o.trust, 2*time.Second)
	if o.Counted == nil {
		o.Counted = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Forwarder{o: o, under: map[*sending]bool{}, gone: map[string]bool{}}
	f.owners.all, f.self = map[string]remembered{}, o.Member.ID()
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends what is under way to other replicas.
func (f *Forwarder) Close() {
	f.stop()
	f.mu.Lock()
	for s := range f.under {
		s.stop(errLeaving)
	}
	f.mu.Unlock()
	f.work.Wait()
}

var (
	errLeaving = errors.New("forward: this replica is about to end")
	errGone    = errors.New("forward: the replica that has the session is gone")
)

// Changed is told that replicas have come or gone, or that this one has another id. It does not block.
func (f *Forwarder) Changed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.under {
		if !f.o.Member.Live(s.owner) {
			s.stop(errGone)
		}
	}
	if id := f.o.Member.ID(); id != f.self && f.ctx.Err() == nil {
		former := f.self
		f.self = id
		f.work.Go(func() { f.reclaim(former, id) })
	}
}

// reclaim claims the sessions of this replica under its new id, and drops those that another replica has
// claimed meanwhile.
func (f *Forwarder) reclaim(former, self string) {
	kept, lost := 0, 0
	for id, own := range f.owners.of(former) {
		now, fence, err := f.o.Store.SessionOwner(f.ctx, id)
		claimed := false
		if err == nil && now == former && fence == own.fence {
			claimed, err = f.o.Store.ClaimSession(f.ctx, session.Record{ID: id, Fence: fence, Seen: time.Now()}, self)
		}
		switch {
		case f.ctx.Err() != nil:
			return
		case claimed:
			f.owners.set(id, owner{self, fence + 1})
			kept++
		default:
			f.owners.forget(id)
			if err == nil || errors.Is(err, session.ErrEnded) {
				f.o.Drop(id)
				lost++
			}
		}
	}
	f.o.Log.Info("this replica has its sessions again", "sessions", kept, "taken_over_by_others", lost)
}

// Claimed is told that a replica has claimed a session. It does not wait for the store or the network.
func (f *Forwarder) Claimed(id, by string) {
	f.told.Add(1)
	own, known := f.owners.get(id)
	if !known || own.id == by {
		return
	}
	f.owners.forget(id)
	f.mu.Lock()
	ours := own.id == f.self
	f.mu.Unlock()
	if ours {
		f.o.Drop(id)
	}
}

func (f *Forwarder) isLeaving() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leaving
}

// Forward implements wire.Forwarder.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, of wire.Forwardable) wire.Forwarded {
	x := &request{Forwarder: f, w: w, r: r, of: of}
	came, is := r.Context().Value(hopKey{}).(hop)
	var out wire.Forwarded
	switch {
	case is && !f.o.Member.Holds(came.to):
		out = x.misdirected()
	case is:
		out = x.received(came)
	case of.Session != "":
		out = x.inSession()
	case of.State != "":
		out = x.withState()
	default:
		out = x.anew()
	}
	switch out {
	case wire.Unreachable:
		f.o.Counted(CountAway)
	case wire.Unanswered:
		f.o.Counted(CountLost)
	}
	return out
}

// request is one that is looked at.
type request struct {
	*Forwarder
	w  http.ResponseWriter
	r  *http.Request
	of wire.Forwardable
}

// misdirected refuses a request that was sent to another replica, or to one that no longer has its lease.
func (x *request) misdirected() wire.Forwarded {
	x.o.Counted(CountRefused)
	x.w.WriteHeader(http.StatusMisdirectedRequest)
	return wire.Answered
}

// received answers a request that another replica has sent. It is served here, or refused.
func (x *request) received(came hop) wire.Forwarded {
	if x.of.Session == "" {
		if came.take && x.isLeaving() {
			return x.misdirected()
		}
		return wire.Here
	}
	if came.take && !x.isLeaving() {
		return x.inSession()
	}
	s, ok := x.open()
	if !ok {
		return x.misdirected() // the other replica can open it, and has asked for this principal
	}
	own, err := x.owner(x.r.Context(), s)
	if err == nil && own.id != came.to {
		x.owners.forget(s.ID())
		own, err = x.owner(x.r.Context(), s)
	}
	switch {
	case errors.Is(err, session.ErrEnded):
		return wire.Here
	case err != nil:
		return wire.Unreachable
	case own.id != came.to:
		x.of.Drop()
		return x.misdirected()
	case x.isLeaving() && !x.of.Owes():
		return x.misdirected()
	}
	return wire.Here
}

// anew is a request that belongs to no session. A replica that is about to end gives it to another one,
// and one without a lease begins no session.
func (x *request) anew() wire.Forwarded {
	if x.isLeaving() {
		if out, ok := x.handOver(); ok {
			return out
		}
	}
	if x.of.Begins {
		ctx, stop := context.WithTimeout(x.r.Context(), x.o.wait)
		defer stop()
		if _, err := x.o.Member.Lease(ctx); err != nil {
			return wire.Unreachable
		}
	}
	return wire.Here
}

// handOver gives a request to any other replica; ok is false where none takes it.
func (x *request) handOver() (out wire.Forwarded, ok bool) {
	for _, to := range x.o.Member.Others() {
		switch x.send(to, true) {
		case sentAnswered:
			return wire.Answered, true
		case sentLost:
			return wire.Unanswered, true
		}
	}
	return 0, false
}

// withState is a request with a state that some replica has sealed, and may remember.
func (x *request) withState() wire.Forwarded {
	home, _, _ := cutHome(x.of.State)
	if home == "" || home == x.o.Member.ID() {
		return wire.Here
	}
	to, live, err := x.o.Member.Find(x.r.Context(), home)
	if err != nil || !live || x.hasEnded(home) {
		return wire.Here // where it cannot be found any more, this replica says so
	}
	switch x.send(to, false) {
	case sentAnswered:
		return wire.Answered
	case sentLost:
		return wire.Unanswered
	}
	return wire.Here
}

// open opens the token; ok is false where the Front is to refuse the request.
func (x *request) open() (*session.Session, bool) {
	s, err := x.o.Open(x.of.Session)
	if err != nil || !s.Belongs(x.of.Principal) {
		return nil, false
	}
	return s, true
}

// retryWait is between two attempts to reach an owner.
const retryWait = 200 * time.Millisecond

// inSession finds the replica that has the session, or claims the session.
func (x *request) inSession() wire.Forwarded {
	s, ok := x.open()
	if !ok {
		return wire.Here
	}
	ctx, stop := context.WithTimeout(x.r.Context(), x.o.wait)
	defer stop()
	refused := "" // the owner that has said it is not
	for ctx.Err() == nil {
		self, err := x.o.Member.Lease(ctx)
		if err != nil {
			return wire.Unreachable
		}
		own, err := x.owner(ctx, s)
		if errors.Is(err, session.ErrEnded) {
			return wire.Here
		} else if err != nil {
			x.o.Log.Warn("the replica that has a session cannot be looked up", "error", err)
			return wire.Unreachable
		}
		out, next := x.at(ctx, own, self, refused != "" && own.id == refused)
		switch next {
		case stay:
			return out
		case claimIt:
			if err := x.claim(ctx, s, own, self); errors.Is(err, session.ErrEnded) {
				return wire.Here
			} else if err != nil {
				x.o.Log.Warn("a session cannot be taken over", "error", err)
				return wire.Unreachable
			}
		case lookAgain:
			refused = own.id
			x.owners.forget(s.ID())
		case waitFirst:
			x.owners.forget(s.ID())
			_ = backoff.Sleep(ctx, retryWait)
		}
	}
	return wire.Unreachable
}

// step is what inSession does next.
type step uint8

const (
	stay      step = iota // the request has its answer, or is served here
	claimIt               // the session has no owner
	lookAgain             // the owner says that it is not
	waitFirst             // the owner cannot be reached at present
)

// at brings the request to the owner of its session.
func (x *request) at(ctx context.Context, own owner, self string, refused bool) (out wire.Forwarded, next step) {
	came, sentOnce := x.r.Context().Value(hopKey{}).(hop)
	to, live := replica.Row{}, false
	if own.id != "" && own.id != self && !refused && (!sentOnce || own.id != came.from) {
		var err error
		if to, live, err = x.o.Member.Find(ctx, own.id); err != nil {
			return 0, waitFirst
		}
		live = live && !x.hasEnded(own.id)
	}
	switch {
	case live && sentOnce: // it goes no further
		return x.misdirected(), stay
	case !live && x.isLeaving() && !sentOnce && !(own.id == self && x.of.Owes()):
		if out, ok := x.handOver(); ok {
			return out, stay
		}
	}
	switch {
	case own.id == self:
		return wire.Here, stay
	case !live:
		return 0, claimIt
	}
	x.of.Drop() // what was here before the lease lapsed
	switch x.send(to, false) {
	case sentAnswered:
		return wire.Answered, stay
	case sentLost:
		return wire.Unanswered, stay
	case sentRefused:
		return 0, lookAgain
	case sentAgain:
		return 0, waitFirst
	}
	return 0, claimIt // nothing listens there: its process has ended
}

// claim makes this replica the owner of a session, if no other one is first. The next look says who it is.
func (x *request) claim(ctx context.Context, s *session.Session, was owner, self string) error {
	claimed, err := Claim(ctx, x.o.Store, s, x.o.Erasable(x.of.Principal), was.fence, self)
	if err != nil {
		return err
	}
	if !claimed {
		x.owners.forget(s.ID())
		return nil
	}
	x.o.Counted(CountClaimed)
	x.owners.forget(s.ID()) // the next look finds out whether another replica was quicker still
	return nil
}

// Claim makes a replica the owner of a session if the session's fence is still the one that was seen.
func Claim(ctx context.Context, store session.Store, s *session.Session, principal string, fence int64, self string) (bool, error) {
	claimed, err := store.ClaimSession(ctx, session.Record{ID: s.ID(), Server: s.Server, Fence: fence,
		Principal: session.PrincipalDigest(principal), Seen: time.Now(), Until: s.Until}, self)
	if err != nil {
		return false, fmt.Errorf("forward: claim a session: %w", err)
	}
	return claimed, nil
}

// Begun remembers that this replica owns a session that has just begun.
func (f *Forwarder) Begun(s *session.Session, self string, fence int64) {
	f.owners.set(s.ID(), owner{self, fence})
}

// owner returns the owner of a session, from memory if it is known.
func (f *Forwarder) owner(ctx context.Context, s *session.Session) (owner, error) {
	id := s.ID()
	if own, ok := f.owners.get(id); ok && time.Since(own.at) < f.o.trust {
		return own.owner, nil
	}
	ctx, stop := context.WithTimeout(ctx, f.o.wait)
	defer stop()
	before := f.told.Load()
	replica, fence, err := f.o.Store.SessionOwner(ctx, id)
	if err != nil {
		return owner{}, err
	}
	own := owner{replica, fence}
	if f.owners.set(id, own); f.told.Load() != before {
		f.owners.forget(id) // a claim was told meanwhile, perhaps of this session
	}
	return own, nil
}

// owner is a replica that has a session.
type owner struct {
	id    string // "": none
	fence int64
}

// maxOwners bounds what is remembered; what is forgotten is asked for again.
const maxOwners = 100_000

// owners remember who has which session.
type owners struct {
	mu  sync.RWMutex
	all map[string]remembered
}

// remembered is an owner, and when that was learnt.
type remembered struct {
	owner
	at time.Time
}

func (o *owners) get(id string) (remembered, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	own, ok := o.all[id]
	return own, ok
}

func (o *owners) set(id string, own owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) >= maxOwners {
		clear(o.all)
	}
	o.all[id] = remembered{own, time.Now()}
}

// of returns the sessions of a replica.
func (o *owners) of(replica string) map[string]owner {
	o.mu.RLock()
	defer o.mu.RUnlock()
	out := map[string]owner{}
	for id, own := range o.all {
		if own.id == replica {
			out[id] = own.owner
		}
	}
	return out
}

func (o *owners) forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, id)
}

// limits bound what is read of a body to find out which requests it holds.
func (f *Forwarder) limits() strictjson.Limits { return strictjson.Limits{Bytes: f.o.MaxBody} }

// sent is what became of a request that was sent to another replica.
type sent uint8

const (
	sentAnswered sent = iota
	sentRefused       // the other replica does not have the session
	sentNot           // nothing listens at its address
	sentAgain         // it was not sent, or may be sent again
	sentLost          // it may have been carried out
)

// fate says what becomes of a request that another replica did not answer.
func (x *request) fate(received bool, err error) sent {
	_, repeatable := wire.Asks(x.of.Body, x.limits())
	switch {
	case !received && errors.Is(err, syscall.ECONNREFUSED):
		return sentNot
	case received && !repeatable && x.r.Method == http.MethodPost:
		return sentLost
	}
	if errors.Is(err, peer.ErrHandshake) {
		x.o.Log.Warn("a process at the address of a replica is not a replica of this installation, or has another key", "error", err)
	}
	return sentAgain
}
