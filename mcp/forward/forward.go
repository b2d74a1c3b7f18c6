// SPDX-License-Identifier: Apache-2.0

// Package forward passes a request on to the replica that has its session, and takes a session over whose replica has ended.
//
//   - The store says which replica owns a session, and where it is reached. It is asked about each request of a
//     session that is not open here.
//   - A request is passed on whole, with the principal that was authenticated here. The replica that gets it never
//     passes it on.
//   - A request goes to another replica, or to the same one again, only where it was not sent, or was refused unread: a
//     call is never carried out twice.
//   - Where the lease of the owner has ended, the session is claimed: the store changes its owner if no other replica
//     was first.
package forward

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/lease"
)

// Options are what a Forwarder is made of.
type Options struct {
	Lease *lease.Lease // of this replica; its name is the label with which sealed states begin
	Label string
	Store session.Store
	Open  func(token string) (*session.Session, error)
	Out   *http.Transport // to other replicas: peer.Keys.Transport
	// Caller is what a replica has to know of the principal of a request; the Handler of the other
	// replica gets it. Erasable returns the name by which a principal's data is erased.
	Caller   func(r *http.Request) string
	Erasable func(principal string) string
	Counted  func(outcome string) // one of the constants below; nil: nothing is counted
	Log      *slog.Logger         // nil: nothing is logged

	wait time.Duration // for an owner that does not answer, and for the own lease; 0 = 12 s: longer than an owner's lease lasts
}

// What is counted.
const (
	CountForwarded = "forwarded" // another replica has answered
	CountClaimed   = "claimed"   // a session was taken over
	CountRefused   = "refused"   // a request of another replica was refused: this one does not have the session
	CountAway      = "away"      // the client was told to try again
	CountLost      = "lost"      // the client was told that the answer is lost
)

// A Forwarder is a wire.Forwarder.
type Forwarder struct {
	o       Options
	leaving atomic.Bool
	streams context.Context // of streams on which clients listen at other replicas; ended by Leave
	cut     context.CancelFunc
	calls   atomic.Int64 // passed on, and not yet answered
}

var _ wire.Forwarder = (*Forwarder)(nil)

// New returns a Forwarder.
func New(o Options) *Forwarder {
	o.wait = cmp.Or(o.wait, 12*time.Second)
	if o.Counted == nil {
		o.Counted = func(string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f := &Forwarder{o: o}
	f.streams, f.cut = context.WithCancel(context.Background())
	return f
}

// Leave has other replicas serve what is new, because this one is about to end. A client that listens here for
// messages of another replica's session has to ask another replica.
func (f *Forwarder) Leave() {
	f.leaving.Store(true)
	f.cut()
}

// Drain waits until every request that was passed on is answered, and no longer than ctx.
func (f *Forwarder) Drain(ctx context.Context) {
	for f.calls.Load() > 0 && backoff.Sleep(ctx, drainPoll) == nil {
	}
}

const drainPoll = 20 * time.Millisecond

// Claim makes a replica the owner of a session if the session's fence is still the one that was seen.
func Claim(ctx context.Context, store session.Store, s *session.Session, principal string, fence int64, self string) (bool, error) {
	return store.ClaimSession(ctx, session.Record{ID: s.ID(), Server: s.Server, Fence: fence,
		Principal: session.PrincipalDigest(principal), Seen: time.Now(), Until: s.Until}, self)
}

// request is one that is looked at.
type request struct {
	*Forwarder
	w  http.ResponseWriter
	r  *http.Request
	of wire.Forwardable
}

// Forward implements wire.Forwarder.
func (f *Forwarder) Forward(w http.ResponseWriter, r *http.Request, of wire.Forwardable) wire.Forwarded {
	x := &request{f, w, r, of}
	var out wire.Forwarded
	switch {
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

// anew is a request that belongs to no session. A replica that is about to end gives it to another one, and one
// without a lease begins no session.
func (x *request) anew() wire.Forwarded {
	if to, ok := x.successor(); ok {
		if out := x.pass(to); out.done {
			return out.as
		}
	}
	if x.of.Begins {
		ctx, stop := context.WithTimeout(x.r.Context(), x.o.wait)
		defer stop()
		if _, err := x.o.Lease.Await(ctx); err != nil {
			return wire.Unreachable
		}
	}
	return wire.Here
}

// successor is the address of any other replica, where this one is about to end. It is no address for a request that
// was passed on.
func (x *request) successor() (addr string, ok bool) {
	others := x.o.Lease.Others()
	if !x.leaving.Load() || wasPassedOn(x.r) || len(others) == 0 {
		return "", false
	}
	return others[rand.IntN(len(others))].Address, true
}

// withState is a request with a state that some replica has sealed, and may remember. The state begins with the label
// of the replica.
func (x *request) withState() wire.Forwarded {
	label, _, labelled := strings.Cut(x.of.State, ".")
	if !labelled || label == x.o.Label || wasPassedOn(x.r) || len(label) > 64 {
		return wire.Here
	}
	to, err := x.o.Lease.Find(x.r.Context(), label)
	if err != nil || to.Address == "" {
		return wire.Here // where it cannot be found any more, this replica says so
	}
	if out := x.pass(to.Address); out.done {
		return out.as
	}
	return wire.Here
}

// retryWait is between two attempts to reach an owner.
const retryWait = 200 * time.Millisecond

// inSession finds the replica that has the session, or claims the session.
func (x *request) inSession() wire.Forwarded {
	s, err := x.o.Open(x.of.Session)
	if err != nil || !s.Belongs(x.of.Principal) {
		return wire.Here // the Front refuses it
	}
	ctx, stop := context.WithTimeout(x.r.Context(), x.o.wait)
	defer stop()
	for ctx.Err() == nil {
		out, err := x.attempt(ctx, s)
		switch {
		case errors.Is(err, session.ErrEnded):
			return wire.Here
		case errors.Is(err, lease.ErrLapsed):
			return wire.Unreachable
		case err != nil:
			x.o.Log.Warn("the replica that has a session cannot be looked up", "error", err)
			return wire.Unreachable
		case out.done:
			return out.as
		case !out.now:
			_ = backoff.Sleep(ctx, retryWait)
		}
	}
	return wire.Unreachable
}

// routed is what one attempt has come to.
type routed struct {
	done bool // the request has its outcome
	as   wire.Forwarded
	now  bool // the next attempt needs not wait
}

// here has this process serve the request.
var here = routed{done: true, as: wire.Here}

// attempt serves the request here, passes it on to the owner of its session, or claims the session.
func (x *request) attempt(ctx context.Context, s *session.Session) (routed, error) {
	self, err := x.o.Lease.Await(ctx)
	if err != nil {
		return routed{}, err
	}
	leaving := x.leaving.Load() && len(x.o.Lease.Others()) > 0
	if x.of.Has() && !(leaving && x.of.GiveUp()) {
		return here, nil
	}
	own, err := x.o.Store.SessionOwner(ctx, s.ID())
	if err != nil {
		return routed{}, err
	}
	elsewhere := own.Address != "" && own.Holder != self
	if leaving && own.Holder == self {
		if err := x.o.Store.ReleaseSession(ctx, s.ID(), self, time.Now()); err != nil {
			return routed{}, err
		}
	}
	switch {
	case wasPassedOn(x.r) && (elsewhere || leaving):
		x.o.Counted(CountRefused)
		x.w.WriteHeader(http.StatusMisdirectedRequest)
		return routed{done: true, as: wire.Answered}, nil
	case elsewhere:
		return x.pass(own.Address), nil
	case leaving:
		to, _ := x.successor()
		return x.pass(to), nil
	}
	claimed, err := Claim(ctx, x.o.Store, s, x.o.Erasable(x.of.Principal), own.Fence, self)
	if err != nil || !claimed {
		return routed{now: true}, err
	}
	if own.Holder != self {
		x.o.Counted(CountClaimed)
	}
	return here, nil
}
