// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/reuse"
)

// exchange is one HTTP request and its response.
type exchange struct {
	f         *Front
	w         http.ResponseWriter
	r         *http.Request
	rc        *http.ResponseController
	principal string
	room      *intake.Room // of the body
	raw       []byte       // the body, until the message that was made of it is released
	began     bool         // the response is a stream, and the client has an event id of it
}

// ServeHTTP serves the endpoint.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{f: f, w: w, r: r, rc: http.NewResponseController(w)}
	if f.opt.Principal != nil {
		x.principal = f.opt.Principal(r)
	}
	if r.Method != http.MethodPost {
		x.unread()
	}
	if version, _ := single(r.Header, headerVersion); modern(version) && r.Method != http.MethodPost {
		x.reject(ID{}, errAllowModern)
		return
	}
	switch r.Method {
	case http.MethodPost:
		select {
		case f.room <- struct{}{}:
			defer func() { <-f.room }()
			x.post()
		default:
			x.unread()
			x.reject(ID{}, errFull)
		}
	case http.MethodGet:
		x.get()
	case http.MethodDelete:
		x.delete()
	default:
		x.reject(ID{}, errAllow)
	}
}

// unread ends the connection behind an answer that is given before the body has come:
// the server would wait for it first, and there is no bound to that.
func (x *exchange) unread() {
	if x.r.ContentLength != 0 {
		x.w.Header().Set("Connection", "close")
	}
}

// declared says what keeps a body from being read.
func (x *exchange) declared() *rejection {
	jsonOK, streamOK := accepts(x.r.Header["Accept"])
	media, once := single(x.r.Header, "Content-Type")
	switch {
	case !once || mediaTypeOf(media) != "application/json":
		return &errMedia
	case !identity(x.r.Header["Content-Encoding"]):
		return &errCoding
	case !jsonOK || !streamOK:
		return &errAccept
	}
	return nil
}

// post takes a POST: it reads and decodes the body, and hands the message on.
func (x *exchange) post() {
	defer x.letGo()
	bad := x.declared()
	var body *reuse.Buffer
	if bad == nil {
		body, bad = x.body()
	}
	if bad != nil {
		x.unread()
		x.letGo() // the client may take long to read the refusal
		intake.Refuse(x.w, x.r, x.f.opt.MaxBody, func() { x.reject(ID{}, *bad) })
		return
	}
	x.raw = body.Bytes()
	if version, _ := single(x.r.Header, headerVersion); !modern(version) && x.forwardSession() {
		body.Release()
		return
	}
	if isBatch(body.Bytes()) {
		x.batch(body.Bytes())
		return
	}
	m, err := Decode(body.Bytes(), x.f.opt.limits)
	if err != nil {
		body.Release()
		x.violation(err)
		return
	}
	m.buf, m.Caller = body, x.claimsOf()
	if len(x.raw) >= worthRoom {
		m.room, x.room = x.room, nil
	}
	x.message(m)
}

// claimsOf returns the claims of the caller's token.
func (x *exchange) claimsOf() []byte {
	if x.f.opt.Claims == nil {
		return nil
	}
	return x.f.opt.Claims(x.r)
}

// violation answers a body that is no acceptable message.
func (x *exchange) violation(err error) {
	var v *Violation
	if !errors.As(err, &v) {
		x.reject(ID{}, errMedia)
		return
	}
	x.f.notice("a message was refused: " + v.Error() + ": " + v.Excerpt)
	id := v.ID
	if v.Kind != Request {
		id = ID{}
	}
	x.reject(id, rejection{status: http.StatusBadRequest, code: v.Code, text: v.Reason})
}

// message finds out in which era the message is spoken. The body decides; a
// header that says otherwise is refused.
func (x *exchange) message(m *Message) {
	version, once := single(x.r.Header, headerVersion)
	meta := metaVersion(m.Params)
	asked := m.ID
	if m.Kind != Request {
		asked = ID{}
	}
	var bad *rejection
	switch {
	case !once:
		bad = &errRepeated
	case meta.Exists() && version == "":
		bad = &errNoVersion
	case meta.Exists() && meta.Text() != version:
		bad = &errVersion
	case modern(version) && m.Kind == Request && !meta.Exists():
		bad = &errMeta
	case meta.Exists() && !slices.Contains(versions, version), modern(version) && version != firstModern:
		u := unsupported(version)
		bad = &u
	}
	if bad != nil {
		x.reject(asked, *bad)
		m.Release()
		return
	}
	if modern(version) {
		x.modern(m)
		return
	}
	x.legacy(m, version)
}

// claims reads what the headers say of a modern message.
func (x *exchange) claims(m *Message) *rejection {
	method, once := single(x.r.Header, headerMethod)
	if !once {
		return &errRepeated
	}
	if method != m.Method {
		return &errMethod
	}
	c := &Claim{}
	name, once := single(x.r.Header, headerName)
	if !once {
		return &errRepeated
	}
	decoded, ok := decodeHeader(name)
	if !ok {
		return &errEncoded
	}
	c.Name = decoded
	for key, values := range x.r.Header {
		param, is := strings.CutPrefix(key, headerParam)
		if !is {
			continue
		}
		if len(values) != 1 {
			return &errRepeated
		}
		value, ok := decodeHeader(values[0])
		if !ok {
			return &errEncoded
		}
		if c.Params == nil {
			c.Params = map[string]string{}
		}
		c.Params[strings.ToLower(param)] = value
	}
	m.Claim = c
	return nil
}

// attempts is how often a modern message tries to find a session that is not
// just about to end.
const attempts = 3

// modern takes a message of a modern client. All requests of a principal go to one session; each answer
// comes back on the stream of its own request.
func (x *exchange) modern(m *Message) {
	asked := m.ID
	if m.Kind != Request && m.Kind != Notification {
		x.reject(ID{}, errResponse)
		m.Release()
		return
	}
	if bad := x.claims(m); bad != nil {
		x.reject(asked, *bad)
		m.Release()
		return
	}
	if m.Method == methodCancelled {
		// spec: here a request is cancelled by closing its stream. The ids of
		// other requests of the principal must not be named here.
		m.Release()
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	if x.forward(Forwardable{State: m.Params.Get("requestState").Text()}) {
		m.Release()
		return
	}
	for range attempts {
		s := x.f.share(x.principal)
		if s == nil {
			m.Release()
			x.reject(asked, x.noRoom())
			return
		}
		s.enter()
		done := x.converse(s, asked, m)
		s.leave()
		if done {
			return
		}
		x.f.forget(s)
		m.ID = asked
	}
	m.Release()
	x.reject(asked, errNoServer)
}

func (x *exchange) noRoom() rejection {
	if x.f.isDraining() {
		return errEnding
	}
	return errFull
}

// converse gives one message to the session and answers it. It reports false,
// and has written nothing, if the session is over; m is the caller's then.
func (x *exchange) converse(s *FrontSession, asked ID, m *Message) bool {
	if m.Kind != Request {
		var withdrawn ID
		if m.Kind == Notification && m.Method == methodCancelled {
			withdrawn, _ = IDOf(m.Params.Get("requestId"))
		}
		return x.tell(s, withdrawn, m)
	}
	first := s.Era == Legacy && m.Method == methodInitialize
	st, err := s.open(m)
	if errors.Is(err, errTaken) {
		m.Release()
		x.reject(asked, errDuplicateID)
		return true
	}
	if err != nil {
		return false
	}
	p := pump{exchange: x, st: st, turn: 1, asked: asked, first: first}
	return p.ask(m)
}
