// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// How a session comes back that another process has begun, or that was ended here to save room: the
// server is initialized again with what the client said then, and the client's requests go on.

// A revival is a session on its way back. Every request of the session waits for it.
type revival struct {
	principal string
	found     chan struct{} // closed when version is set: the session may come back
	version   string
	done      chan struct{} // closed when s or bad is set
	s         *FrontSession
	bad       *rejection
}

// Bounds of the messages by which a session is brought back.
const (
	revivalWait  = time.Minute     // for the server's answer to initialize
	renewalWait  = 5 * time.Second // for each answer after it
	registryWait = 5 * time.Second // for the registry
)

// revive returns the session with an id that this process does not serve, or says why not. version
// is what the request says of it. m is the request that waits for the session, if it is one.
func (x *exchange) revive(id, version string, m *Message) (*FrontSession, *rejection) {
	f := x.f
	f.mu.Lock()
	if s := f.sessions[id]; s != nil && f.reviving[id] == nil {
		f.mu.Unlock()
		if s.Principal != x.principal {
			return nil, &errNoSession
		}
		return s, nil
	}
	r := f.reviving[id]
	if r == nil {
		r = &revival{principal: x.principal, found: make(chan struct{}), done: make(chan struct{})}
		f.reviving[id] = r
		go f.bringBack(r, id, version)
	}
	f.mu.Unlock()
	if r.principal != x.principal {
		return nil, &errNoSession
	}
	found := r.found
	for {
		select {
		case <-r.done:
			return r.s, r.bad
		case <-found:
			if found = nil; m != nil && m.Kind == Request && !x.began && r.version >= firstWithPrimes {
				x.primeForRevival(m) // once: the session may have made room for another just after it came back
			}
		case <-x.r.Context().Done():
			return nil, &errNoServer // the answer is not read
		}
	}
}

// lifeOfRevival stands in the event ids of a stream that begins before its session is there.
const lifeOfRevival = "AAAAAAAAAA"

// primeForRevival begins the response to a request that waits for its session: a server may take long to
// start, and a client that has an event id does not give the request up where this process ends meanwhile.
func (x *exchange) primeForRevival(m *Message) {
	st := &stream{s: &FrontSession{life: lifeOfRevival, Era: Legacy}, no: 1, primed: true, asks: appendAsks(nil, []*Message{m})}
	if len(st.asks) == 0 {
		return
	}
	p := pump{exchange: x, st: st}
	_ = p.begin(-1) // not of a session that begins
	_ = p.prime()
	_ = p.flush()
	x.began = true
}

// rejectInStream is reject where the response has begun.
func (x *exchange) rejectInStream(id ID, why rejection) {
	_ = x.rc.SetWriteDeadline(time.Now().Add(x.f.opt.patience))
	b := append(NewError(id, why.object()).Append([]byte("event: message\nid: "+lifeOfRevival+".1-1\ndata: ")), "\n\n"...)
	_, _ = x.w.Write(b)
	_ = x.rc.Flush()
	_ = x.rc.SetWriteDeadline(time.Time{})
}

// bringBack does what revive waits for. It goes on where the client does not wait: its next request
// finds the session.
func (f *Front) bringBack(r *revival, id, version string) {
	s, bad := f.restored(r, id, version)
	f.mu.Lock()
	r.s, r.bad = s, bad
	delete(f.reviving, id)
	f.mu.Unlock()
	close(r.done)
}

func (f *Front) restored(r *revival, id, version string) (*FrontSession, *rejection) {
	ctx, stop := context.WithTimeout(f.ctx, registryWait)
	defer stop()
	k, err := f.opt.Registry.Find(ctx, id, r.principal)
	switch {
	case errors.Is(err, ErrNoSession):
		return nil, &errNoSession
	case err != nil:
		f.notice("a session could not be brought back: " + finding.Quote(err.Error()))
		return nil, &errNotRead
	}
	f.mu.Lock()
	s := f.open(Legacy, r.principal, id)
	draining := f.draining
	f.mu.Unlock()
	switch {
	case s == nil && draining:
		return nil, &errEnding
	case s == nil:
		return nil, &errFull
	}
	if k.Version == "" && IsLegacy(version) {
		k.Version = version
	}
	r.version = k.Version
	close(r.found)
	s.enter()
	defer s.leave()
	if bad := s.restore(&k); bad != nil {
		s.Close()
		return nil, bad
	}
	return s, nil
}

// restore brings the server to where the session was, and tells the client that it has begun anew.
func (s *FrontSession) restore(k *Kept) *rejection {
	s.mu.Lock()
	s.named, s.revived, s.state = true, true, k.SessionState
	s.opening = k.Params
	s.mu.Unlock()
	m, err := s.ask(revivalWait, methodInitialize, k.again())
	if err != nil {
		s.f.notice("a session could not be brought back: " + finding.Quote(err.Error()))
		return &errNoServer
	}
	defer m.Release()
	if m.Kind == ErrorResponse { // what the server says when a session begins: it may begin later
		bad := errNoServer
		bad.raw = slices.Clone(m.Error.Raw())
		return &bad
	}
	s.mu.Lock()
	s.agree(m)
	agreed := s.version
	s.mu.Unlock()
	if agreed == "" || k.Version != "" && agreed != k.Version {
		s.f.notice("a session was not brought back: the server speaks another version of the protocol than before")
		return &errNoSession
	}
	s.to.message(parsed(NewRequest(ID{}, methodInitialized, nil)))
	s.renew(&k.SessionState)
	s.announce(m.Result.Get("capabilities"), k.Level)
	return nil
}

// again are the parameters by which the session is begun anew: those of the client, with the version that was
// negotiated. A server that has learnt newer versions meanwhile would choose the one that the client proposed.
func (k *Kept) again() []byte {
	var doc strictjson.Doc
	if k.Version == "" || doc.Reset(k.Params, strictjson.Limits{}) != nil {
		return k.Params
	}
	var e strictjson.Edits
	e.Append(doc.Root(), "protocolVersion", strictjson.AppendQuote(nil, k.Version))
	return e.Apply(nil, doc.Root())
}

// renew sets the log level and the subscriptions again. A server that does not take them is no reason
// to end the session.
func (s *FrontSession) renew(state *SessionState) {
	end := time.Now().Add(renewalWait)
	again := func(method, member, value string) {
		params := append(strictjson.AppendQuote(append([]byte(`{"`), member+`":`...), value), '}')
		if m, err := s.ask(time.Until(end), method, params); err == nil {
			m.Release()
		}
	}
	if state.Level != "" {
		again(methodSetLevel, "level", state.Level)
	}
	for _, uri := range state.Subscriptions {
		again(methodSubscribe, "uri", uri)
	}
}

// newsOfRevival is what a client may show to a person.
const newsOfRevival = `{"level":"warning","logger":"pellucid","data":"The connection to the server was begun anew. What the server kept of this session in its memory is gone."}`

// announce tells the client what it may have to ask for again.
func (s *FrontSession) announce(capabilities strictjson.Value, level string) {
	for _, kind := range [...]string{"tools", "prompts", "resources"} {
		if on, _ := capabilities.Get(kind).Get("listChanged").Bool(); on {
			_ = s.Write(s.f.ctx, NewRequest(ID{}, "notifications/"+kind+"/list_changed", nil))
		}
	}
	quiet := slices.Contains([]string{"error", "critical", "alert", "emergency"}, level)
	if capabilities.Get("logging").Exists() && !quiet {
		_ = s.Write(s.f.ctx, NewRequest(ID{}, "notifications/message", []byte(newsOfRevival)))
	}
}

// ask sends a request of this package's own, and waits for its answer, which the client does not get.
func (s *FrontSession) ask(wait time.Duration, method string, params []byte) (*Message, error) {
	id := StringID("pellucid-" + rand.Text()) // no client has this id
	got := make(chan *Message, 1)
	s.mu.Lock()
	if s.isClosed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	if s.awaited == nil {
		s.awaited = map[ID]chan *Message{}
	}
	s.awaited[id] = got
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.awaited, id)
		s.mu.Unlock()
	}()
	m := NewRequest(id, method, params)
	if err := m.Parse(); err != nil {
		return nil, errors.New("wire: what is kept of the session is not JSON")
	}
	late := time.NewTimer(wait)
	defer late.Stop()
	given := make(chan bool, 1)
	go func() { given <- s.hand(m, func() bool { return true }) }()
	for {
		select {
		case ok := <-given:
			if !ok {
				return nil, io.EOF
			}
			given = nil
		case a, ok := <-got:
			if !ok {
				return nil, io.EOF
			}
			return a, a.Parse()
		case <-late.C:
			return nil, errors.New("wire: the server did not answer in time")
		}
	}
}

// lookForAnswer gives an answer to the one who waits for it in ask. s.mu is held.
func (s *FrontSession) lookForAnswer(m *Message) bool {
	got := s.awaited[m.ID]
	if got == nil {
		return false
	}
	delete(s.awaited, m.ID)
	got <- m
	return true
}

// name gives the session its id for the client, once. Without a registry it has had one from the start.
// Where the registry fails, a session of a process that is the only one goes on without it; ok is false
// where there are others: a session that only this process knows would be lost with the next request.
func (s *FrontSession) name(ctx context.Context) (id string, ok bool) {
	s.mu.Lock()
	named, o := s.named || s.f.opt.Registry == nil || s.opening == nil, Opening{Principal: s.Principal, Params: s.opening, Version: s.version}
	s.mu.Unlock()
	if !named {
		ctx, stop := context.WithTimeout(ctx, registryWait)
		defer stop()
		id, err := s.f.opt.Registry.Name(ctx, o)
		switch {
		case err == nil:
			s.f.rename(s, id)
		case s.f.opt.Forwarder != nil:
			s.f.notice("a session did not begin, because other replicas could not be told of it: " + finding.Quote(err.Error()))
			return "", false
		default:
			s.f.notice("a session will not outlive this process: " + finding.Quote(err.Error()))
		}
	}
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	return s.id, true
}

// rename replaces an id that the client has not seen.
func (f *Front) rename(s *FrontSession, id string) {
	f.mu.Lock()
	if f.sessions[s.id] == s {
		delete(f.sessions, s.id)
		f.sessions[id] = s
	}
	s.id = id
	f.mu.Unlock()
	s.mu.Lock()
	s.named = true
	s.mu.Unlock()
}

// Bounds of what is kept of a session's subscriptions.
const (
	maxSubscriptions     = 1024
	maxSubscriptionBytes = 64 << 10
	maxOpening           = 64 << 10 // of the parameters of initialize
)

// note keeps what a request changes of the session, before the server gets it: a server that then does
// not take it refuses it again after a revival.
func (x *exchange) note(s *FrontSession, m *Message) *rejection {
	if x.f.opt.Registry == nil || m.Kind != Request {
		return nil
	}
	switch m.Method {
	case methodSetLevel, methodSubscribe, methodUnsubscribe:
	default:
		return nil
	}
	s.keeping.Lock() // one change after the other
	defer s.keeping.Unlock()
	s.mu.Lock()
	named, next := s.named, s.state.with(m)
	same := next.equal(&s.state)
	s.mu.Unlock()
	if !named || same {
		return nil
	}
	if !next.fits() {
		x.f.notice("a session has too many subscriptions: those beyond the bound end when the gateway restarts")
		return nil
	}
	ctx, stop := context.WithTimeout(x.r.Context(), registryWait)
	defer stop()
	if err := x.f.opt.Registry.Keep(ctx, s.id, s.Principal, next); err != nil {
		x.f.notice("the state of a session could not be kept: " + finding.Quote(err.Error()))
		return &errNotKept
	}
	s.mu.Lock()
	s.state = next
	s.mu.Unlock()
	return nil
}

// with is the state after a request.
func (s *SessionState) with(m *Message) SessionState {
	next := *s
	uri := m.Params.Get("uri").Text()
	switch m.Method {
	case methodSetLevel:
		next.Level = m.Params.Get("level").Text()
	case methodSubscribe:
		if !slices.Contains(next.Subscriptions, uri) {
			next.Subscriptions = append(slices.Clone(next.Subscriptions), uri)
		}
	case methodUnsubscribe:
		next.Subscriptions = slices.DeleteFunc(slices.Clone(next.Subscriptions), func(s string) bool { return s == uri })
	}
	return next
}

func (s *SessionState) equal(o *SessionState) bool {
	return s.Level == o.Level && slices.Equal(s.Subscriptions, o.Subscriptions)
}

func (s *SessionState) fits() bool {
	n := len(s.Level)
	for _, uri := range s.Subscriptions {
		n += len(uri)
	}
	return len(s.Subscriptions) <= maxSubscriptions && n <= maxSubscriptionBytes
}

// finishSession ends a session that the client wants to end, wherever it may come back, and then here: a
// request that was on its way meanwhile may have brought it back.
func (x *exchange) finishSession(id string) *rejection {
	ctx, stop := context.WithTimeout(x.r.Context(), registryWait)
	defer stop()
	s := x.f.lookup(id, x.principal)
	if s == nil {
		switch _, err := x.f.opt.Registry.Find(ctx, id, x.principal); {
		case errors.Is(err, ErrNoSession):
			return &errNoSession
		case err != nil:
			return &errNotRead
		}
	}
	if s == nil || s.survives() {
		if err := x.f.opt.Registry.End(ctx, id, x.principal); err != nil {
			x.f.notice("the end of a session could not be kept: " + finding.Quote(err.Error()))
			return &errNotKept
		}
	}
	x.f.mu.Lock()
	r, begun := x.f.reviving[id], x.f.sessions[id]
	x.f.mu.Unlock()
	if r != nil {
		if begun != nil && begun.Principal == x.principal {
			begun.Close() // its server may take a minute to answer
		}
		go func() {
			if <-r.done; r.s != nil {
				r.s.Close()
			}
		}()
	}
	if s = x.f.lookup(id, x.principal); s != nil {
		x.f.forget(s)
		s.end()
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// survives reports whether the session can be brought back by its id.
func (s *FrontSession) survives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named
}
