// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"net/http"
	"slices"
)

// A Forwarder knows which process has a session, where several processes serve one endpoint. Several
// goroutines may call it.
type Forwarder interface {
	// Forward is asked about a request that belongs to a session, that begins one, or that goes on with
	// what another process may have asked a client. Unless it returns Here, the Front does not serve the
	// request: with Answered the Forwarder has, and with the others the Front tells the client why not.
	Forward(w http.ResponseWriter, r *http.Request, of Forwardable) Forwarded
}

// A Forwardable is a request that another process may have to answer.
type Forwardable struct {
	Session   string // its id; "": the request has no session yet, or needs none
	Begins    bool   // it is initialize
	Principal string // as Front knows it
	State     string // the requestState of a modern request
	Body      []byte // whole; the Forwarder must not use it after Forward
	// Has reports whether the session is open in this process.
	Has func() bool
	// GiveUp ends the session in this process, unless a call is under way. It reports whether the session has ended here.
	GiveUp func() bool
}

// Forwarded is what became of a request.
type Forwarded uint8

// The outcomes of Forwarder.Forward.
const (
	Here        Forwarded = iota // this process has the session
	Answered                     // another process has answered
	Unreachable                  // the process that has the session is away, or the store that names it; nothing was done
	Unanswered                   // another process has the request, and its answer is lost
)

var errNoOwner = rejection{status: http.StatusServiceUnavailable, code: codeNotKept, text: "the replica that has the session cannot be reached at present: try again"}

// forwardSession has another process answer the request, where that has the session that the request
// names. It reports whether the request has been answered.
func (x *exchange) forwardSession() bool {
	id, once := single(x.r.Header, headerSession)
	return once && id != "" && x.forward(Forwardable{Session: id})
}

// forward has another process answer the request, if it is for that one.
func (x *exchange) forward(of Forwardable) bool {
	f := x.f
	if f.opt.Forwarder == nil {
		return false
	}
	of.Principal, of.Body = x.principal, x.raw
	of.Has = func() bool { return f.lookup(of.Session, x.principal) != nil }
	of.GiveUp = func() bool { return f.giveUp(of.Session) }
	why := errLost
	switch f.opt.Forwarder.Forward(x.w, x.r, of) {
	case Here:
		return false
	case Answered:
		return true
	case Unreachable:
		if why = errNoOwner; of.Begins {
			why = errNotBegun
		}
	}
	switch x.r.Method {
	case http.MethodPost:
	case http.MethodGet:
		x.turnListenerAway(why)
		return true
	default:
		x.reject(ID{}, why)
		return true
	}
	x.turnAway(x.asked(), why)
	return true
}

// giveUp ends a session here, unless a call is under way, and reports whether it has ended.
func (f *Front) giveUp(id string) bool {
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	if s != nil && !s.endUnlessOwes() {
		return false
	}
	if s != nil {
		s.Close()
	}
	return true
}

// IDs are those of the legacy sessions that are open here or on their way back.
func (f *Front) IDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(f.sessions)), maps.Keys(f.reviving))
}

// CloseIf closes the sessions here whose ids the condition holds for: another process may have them. A call that is
// under way gets an error.
func (f *Front) CloseIf(elsewhere func(id string) bool) {
	f.mu.Lock()
	all, back := maps.Clone(f.sessions), maps.Clone(f.reviving)
	f.mu.Unlock()
	for id, s := range all {
		if elsewhere(id) {
			s.Close()
		}
	}
	for id, r := range back {
		if elsewhere(id) {
			go func() {
				if <-r.done; r.s != nil {
					r.s.Close()
				}
			}()
		}
	}
}

// asked is the id of the request in the body; it is zero where the body holds no request, or several.
func (x *exchange) asked() ID {
	if len(x.raw) == 0 || isBatch(x.raw) {
		return ID{}
	}
	m, err := Decode(x.raw, x.f.opt.limits)
	if err != nil || m.Kind != Request {
		return ID{}
	}
	return m.ID
}
