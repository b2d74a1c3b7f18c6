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
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/replica"
)

// Options are what a Forwarder is made of.
type Options struct {
	Member  *replica.Member
	Store   session.Store
	Open    func(token string) (*session.Session, error)
	Out     *http.Transport // to other replicas: peer.Keys.Transport
	MaxBody int             // bytes of a request's body
	// Caller is what a replica has to know of the principal of a request; the Handler of the other
	// replica gets it. Erasable returns the name by which a principal's data is erased.
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
