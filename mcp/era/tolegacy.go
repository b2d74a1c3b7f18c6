// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// toLegacy stands before a legacy server. What a modern client asks goes there
// under ids of our own, because a call may outlive the request that began it.
type toLegacy struct {
	*sides
	phase  phase
	native bool            // the client is a legacy client: it has sent initialize itself
	hello  wire.ID         // id of its initialize, while that is under way
	held   []*wire.Message // requests that wait for the end of the handshake
	id     *identity
	first  []byte // the result of the initialize that this package has sent

	calls    map[wire.ID]*call // by our id
	byClient map[wire.ID]*call
	byToken  map[string]*call

	exchanges map[string]*exchange // by handle
	orphans   []*ask               // requests of the server that came while no client could be asked
	kept      int                  // bytes of answers that wait for their clients
	listens   map[wire.ID]*subscription
	uris      map[string]int // the subscriptions at the server, with the number of listens that need each
	level     int            // the log level that was set at the server; -1 = none
}

// A phase is how far the handshake with the server has come: fresh (not begun), greeting (initialize
// is under way; requests wait in held) or ready.
type phase uint8

const (
	fresh phase = iota
	greeting
	ready
)

// A call is a modern client's request on its way to a legacy server and back.
type call struct {
	id     wire.ID // as the server knows it
	client wire.ID // the client's request that waits; zero while the client is asked for input
	method string
	asks   bool          // its client may be asked for input
	msg    *wire.Message // the client's request, while it waits
	token  string        // raw progressToken as the server knows it
	shown  string        // the same as the client knows it
	level  int           // the log level of the request; -1 = none
	can    mcpmsg.Abilities
	open   []*ask // requests of the server that the client has not been asked yet
	result *wire.Message
	rounds int
}

var _ translator = (*toLegacy)(nil)

func newToLegacy(s *sides) *toLegacy {
	return &toLegacy{sides: s, level: -1, calls: map[wire.ID]*call{}, byClient: map[wire.ID]*call{}, byToken: map[string]*call{},
		exchanges: map[string]*exchange{}, listens: map[wire.ID]*subscription{}, uris: map[string]int{}}
}

// client takes a message of the client. A modern client is recognised by the _meta of its requests. A
// legacy client may use the same connection: once it has sent initialize (native), its messages pass
// unchanged.
func (t *toLegacy) client(out *wire.Message, now time.Time) {
	switch {
	case out.Kind == wire.Request && isOwn(out.ID):
		t.fail(out.ID, errID)
	case out.Kind == wire.Request && isModern(out):
		t.modern(out, now)
	case out.Kind == wire.Request && out.Method == mcpmsg.Initialize:
		t.initialize(out)
	case out.Kind == wire.Notification:
		t.notification(out, now)
	case out.Kind == wire.Request && t.phase == greeting:
		t.held = t.delay(t.held, out)
	case out.Kind == wire.Request || t.native:
		t.native = t.native || t.first == nil && t.phase == fresh
		t.tell(out)
	}
}

// initialize is a legacy client's. Where the server has been initialized for a
// modern one already, which must be the same, it is not a second time.
func (t *toLegacy) initialize(out *wire.Message) {
	switch {
	case t.phase == greeting:
		t.held = t.delay(t.held, out)
	case t.first != nil:
		t.native = true
		t.answer(out.ID, t.first)
	default:
		t.native, t.phase, t.hello = true, ready, out.ID
		t.id = newIdentity(strictjson.Value{}, strictjson.Value{}, strictjson.Value{})
		t.tell(out)
	}
}

// modern takes a request of a modern client. The first one begins the handshake with the server, in
// the name of this client.
func (t *toLegacy) modern(m *wire.Message, now time.Time) {
	if m.Parse() != nil {
		t.fail(m.ID, errParams)
		return
	}
	if v := m.Params.Get("_meta").Get(mcpmsg.KeyVersion).Text(); v != modernVersion {
		t.failWith(m.ID, &fault{wire.CodeUnsupportedVersion, "pellucid: unsupported protocol version"}, unsupported(v))
		return
	}
	switch t.phase {
	case fresh:
		t.greet(m, now)
		fallthrough
	case greeting:
		t.held = t.delay(t.held, m)
		return
	}
	switch m.Method {
	case mcpmsg.Discover:
		t.answer(m.ID, t.discovery())
	case mcpmsg.Listen:
		t.listen(m, now)
	case mcpmsg.Initialize, mcpmsg.Ping, mcpmsg.SetLevel, mcpmsg.Subscribe, mcpmsg.Unsubscribe:
		t.fail(m.ID, errNoMethod)
	default:
		t.request(m, now)
	}
}

func unsupported(requested string) []byte {
	if len(requested) > 64 {
		requested = ""
	}
	return append(append([]byte(`{"supported":["`+modernVersion+`"],"requested":`), quoted(requested)...), '}')
}

// greet initializes the server in the name of whose request m is.
func (t *toLegacy) greet(m *wire.Message, now time.Time) {
	t.phase = greeting
	meta := m.Params.Get("_meta")
	info := []byte(ownInfo)
	if v := meta.Get(mcpmsg.KeyClientInfo); v.Kind() == '{' {
		info = v.Raw()
	}
	params := append([]byte(`{"protocolVersion":"`+lastLegacy+`","capabilities":`), t.clientCapabilities(meta.Get(mcpmsg.KeyClientCaps))...)
	params = append(append(append(params, `,"clientInfo":`...), info...), '}')
	t.ask(mcpmsg.Initialize, params, wire.Route{}, now, t.welcomed)
}

// welcomed takes the answer to our initialize; m is nil if none came.
func (t *toLegacy) welcomed(m *wire.Message, now time.Time) {
	held := t.held
	t.held = nil
	if m == nil || m.Kind != wire.Response || !wire.IsLegacy(m.Result.Get("protocolVersion").Text()) {
		t.phase = fresh
		for _, out := range held {
			switch {
			case out.Kind != wire.Request:
			case m != nil && m.Local:
				t.failLike(m, out.ID) // it says why
			default:
				t.fail(out.ID, errHandshake)
			}
		}
		t.next = &undecided{sides: t.sides} // it may be modern after all, or answer next time
		return
	}
	t.greeted(m)
	t.first = bytes.Clone(m.Result.Raw())
	t.phase = ready
	t.send(wire.ID{}, mcpmsg.Initialized, nil, wire.Route{})
	for _, out := range held {
		t.client(out, now)
	}
}

// greeted keeps what the server says of itself.
func (t *toLegacy) greeted(m *wire.Message) {
	t.id = newIdentity(m.Result.Get("capabilities"), m.Result.Get("serverInfo"), m.Result.Get("instructions"))
	on := wire.HasBatches(m.Result.Get("protocolVersion").Text())
	t.batches = &on
}

// discovery is the result of server/discover.
func (t *toLegacy) discovery() []byte {
	dst := append([]byte(`{"resultType":"complete","supportedVersions":["`+modernVersion+`"],"capabilities":`),
		capabilities(t.id.caps.Root(), "tasks")...)
	if t.id.instructions != nil {
		dst = append(append(dst, `,"instructions":`...), t.id.instructions...)
	}
	dst = append(dst, `,"ttlMs":0,"cacheScope":"private"`...)
	if t.id.info != nil {
		dst = append(append(append(dst, `,"_meta":{"`+mcpmsg.KeyServerInfo+`":`...), t.id.info...), '}')
	}
	return append(dst, '}')
}

// request passes on a request of a modern client that needs no special care, or
// goes on with one whose client was asked for input.
func (t *toLegacy) request(m *wire.Message, now time.Time) {
	if m.Params.Get("requestState").Exists() || m.Params.Get("inputResponses").Exists() {
		t.retry(m, now)
		return
	}
	if askable(m.Method) && t.putOrphans(m) {
		return
	}
	t.forward(m, 0, now)
}

// forward sends a request of a modern client to the server as a new call: without the members of _meta
// that only the modern era has, and after the log level that it asks for.
func (t *toLegacy) forward(m *wire.Message, rounds int, now time.Time) {
	if t.byClient[m.ID] != nil {
		t.fail(m.ID, errID)
		return
	}
	k := &call{id: t.ownID(), method: m.Method, asks: askable(m.Method), rounds: rounds, level: -1}
	t.calls[k.id] = k
	t.attach(k, m)
	var e strictjson.Edits
	if k.token = k.shown; t.byToken[k.token] != nil {
		// A call whose client has yet to come back still has this token.
		k.token = `"pellucid-era-` + string(k.id.Append(nil)) + `"`
		e.Replace(m.Params.Get("_meta").Get("progressToken"), []byte(k.token))
	}
	if k.token != "" {
		t.byToken[k.token] = k
	}
	stripMeta(&e, m.Params)
	sent, err := m.Edited(&e)
	if err != nil {
		t.forget(k)
		t.fail(m.ID, errParams)
		return
	}
	sent.ID, sent.Route, sent.Claim = k.id, wire.Route{}, nil
	if k.asks {
		k.msg = m
	} else {
		m.Release()
	}
	t.withLevel(k, now, func() {
		if t.calls[k.id] == k { // not cancelled meanwhile
			t.tell(sent)
		}
	})
}

// attach makes the client of m the one that waits for k.
func (t *toLegacy) attach(k *call, m *wire.Message) {
	meta := m.Params.Get("_meta")
	k.client = m.ID
	t.byClient[m.ID] = k
	k.shown = string(meta.Get("progressToken").Raw())
	k.can = mcpmsg.AbilitiesOf(meta.Get(mcpmsg.KeyClientCaps), t.o.DangerouslyAllowSampling)
	k.level = mcpmsg.LevelOf(meta.Get(mcpmsg.KeyLogLevel).Text())
}

// detach forgets that the client waits for k.
func (t *toLegacy) detach(k *call) {
	if t.byClient[k.client] == k {
		delete(t.byClient, k.client)
	}
	k.client = wire.ID{}
}

// forget ends a call, and frees its ids and its progress token.
func (t *toLegacy) forget(k *call) {
	t.detach(k)
	delete(t.calls, k.id)
	if t.byToken[k.token] == k {
		delete(t.byToken, k.token)
	}
	t.dropResult(k)
}

// notification takes a notification of the client.
func (t *toLegacy) notification(out *wire.Message, now time.Time) {
	switch {
	case t.phase == greeting:
		t.held = t.delay(t.held, out)
	case out.Method == mcpmsg.Initialized && t.first != nil:
	case out.Method == mcpmsg.Cancelled:
		t.cancelled(out, now)
	default:
		out.Route.Version = ""
		t.tell(out)
	}
}

// cancelled passes on that the client waits no longer.
func (t *toLegacy) cancelled(m *wire.Message, now time.Time) {
	if m.Parse() != nil {
		return
	}
	id := idOf(m.Params.Get("requestId"))
	if l := t.listens[id]; l != nil {
		t.unlisten(l, now)
		return
	}
	k := t.byClient[id]
	switch {
	case k != nil:
		t.abandon(k, errInput)
	case t.native:
		m.Route.Version = ""
		t.tell(m)
	}
}

// abandon gives a call up: the server need not go on with it.
func (t *toLegacy) abandon(k *call, f *fault) {
	for _, a := range k.open {
		t.refuse(a.id, f)
	}
	if k.result == nil {
		t.cancel(k.id, "")
	}
	t.forget(k)
}

// tick ends what has waited too long: requests to the server, calls whose client has not come back with
// input, and requests of the server that no client could be asked.
func (t *toLegacy) tick(now time.Time) {
	t.overdue(now)
	for _, x := range t.exchanges {
		if !now.Before(x.due) {
			t.expire(x)
		}
	}
	live := t.orphans[:0]
	for _, a := range t.orphans {
		if now.Before(a.due) {
			live = append(live, a)
		} else {
			t.refuse(a.id, errCannotAsk)
		}
	}
	clear(t.orphans[len(live):])
	t.orphans = live
}

// passage returns legacyPassage for a legacy client, unless a modern one has something under way on the
// same connection.
func (t *toLegacy) passage() passage {
	if !t.native || t.phase != ready || !t.hello.IsZero() ||
		len(t.calls)+len(t.byClient)+len(t.exchanges)+len(t.orphans)+len(t.listens)+len(t.errands)+len(t.held) > 0 {
		return noPassage
	}
	return legacyPassage
}

// pending returns when tick has work next; the zero time if there is no such work.
func (t *toLegacy) pending() time.Time {
	due := t.nextDue()
	for _, x := range t.exchanges {
		due = earlier(due, x.due)
	}
	for _, a := range t.orphans {
		due = earlier(due, a.due)
	}
	return due
}
