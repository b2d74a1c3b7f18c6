// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/session"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/replica"
)

// How a request finds the process that answers it.

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
	if claimed {
		x.o.Counted(CountClaimed)
	}
	x.owners.forget(s.ID()) // the next look finds out who it is, also where another replica was quicker still
	return nil
}
