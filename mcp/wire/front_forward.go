// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
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
	// Drop ends the session in this process, where another process has it, unless a call is under way.
	Drop func()
	// Owes reports whether this process has the session, and a call of it is under way.
	Owes func() bool
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
	of.Drop = func() { f.drop(of.Session) }
	of.Owes = func() bool { s := f.lookup(of.Session, x.principal); return s != nil && s.owes() }
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
	asked := ID{}
	if ids, _ := Asks(x.raw, f.opt.limits); len(ids) > 0 {
		asked = ids[0]
	}
	x.turnAway(asked, why)
	return true
}

// drop ends a session here that goes on in another process. A session in which a call is under way stays
// until its client has the answer, and then until it has been idle for long enough.
func (f *Front) drop(id string) {
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	if s != nil && s.endUnlessOwes() {
		s.Close()
	}
}

// IDs are those of the legacy sessions that are open here or on their way back.
func (f *Front) IDs() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(f.sessions)), maps.Keys(f.reviving))
}

// DropIf ends the sessions here whose ids the condition holds for: they go on in another process.
func (f *Front) DropIf(elsewhere func(id string) bool) {
	f.mu.Lock()
	ids := slices.Collect(maps.Keys(f.sessions))
	f.mu.Unlock()
	for _, id := range ids {
		if elsewhere(id) {
			f.drop(id)
		}
	}
}

// Asks returns the ids of the requests in a body. repeatable reports whether all of the body may be
// delivered twice: it has no request whose method may do something.
func Asks(body []byte, l strictjson.Limits) (ids []ID, repeatable bool) {
	if len(body) == 0 {
		return nil, true
	}
	if isBatch(body) {
		return nil, false
	}
	m, err := Decode(body, l)
	if err != nil {
		return nil, true // it is refused wherever it arrives
	}
	if m.Kind != Request {
		return nil, true
	}
	return []ID{m.ID}, isRead(m.Method)
}

// isRead reports whether a method only reads, or sets what it has set before.
func isRead(method string) bool {
	switch method {
	case "ping", "prompts/get", "resources/read", "completion/complete", methodSetLevel, methodSubscribe, methodUnsubscribe:
		return true
	}
	return strings.HasSuffix(method, "/list")
}

// LostEvents are the events of a stream that end it for a client: an error for each request of the body
// that the stream was to answer.
func LostEvents(body []byte, l strictjson.Limits) []byte {
	var b []byte
	ids, _ := Asks(body, l)
	for _, id := range ids {
		b = append(NewError(id, errLost.object()).Append(append(b, "event: message\ndata: "...)), "\n\n"...)
	}
	return b
}
