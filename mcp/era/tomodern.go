// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// toModern stands before a modern server. What a legacy client asks goes there
// under the client's own ids; only the retries of a call need others.
type toModern struct {
	*sides
	id      *identity
	version string      // negotiated with a legacy client; empty before that
	meta    requestMeta // of all of its requests
	can     mcpmsg.Abilities
	hello   *wire.Message // its initialize, until the server is known

	calls    map[wire.ID]*round  // by the id under which the server has it now
	byClient map[wire.ID]*round  // by the client's
	shed     map[wire.ID]*round  // by the client's, those that the server wants to see again later
	inputs   map[wire.ID]*input  // by our id, requests of which a client's answer is due
	listens  map[wire.ID]*stream // by our id
	byURI    map[string]*stream
	lists    *stream // of what lists change
}

// A round is a legacy client's request on its way to a modern server.
type round struct {
	id     wire.ID // the server's now; zero while the client is asked for input
	client wire.ID
	method string
	msg    *wire.Message // of the client, while input may be asked for
	route  wire.Route
	inputs []*input
	due    int // answers of the client
	state  []byte
	n      int // rounds so far
	empty  int // of them, without anything to be asked
	again  time.Time
}

var _ translator = (*toModern)(nil)

func newToModern(s *sides) *toModern {
	return &toModern{sides: s, calls: map[wire.ID]*round{}, byClient: map[wire.ID]*round{},
		shed: map[wire.ID]*round{}, inputs: map[wire.ID]*input{},
		listens: map[wire.ID]*stream{}, byURI: map[string]*stream{}, meta: requestMeta{caps: []byte("{}")}}
}

// client takes a message of the client. A modern client may use the same connection: its requests pass
// unchanged.
func (t *toModern) client(m *wire.Message, now time.Time) {
	switch {
	case m.Kind == wire.Request && isOwn(m.ID):
		t.fail(m.ID, errID)
	case m.Kind == wire.Request && isModern(m):
		t.tell(m)
	case m.Kind == wire.Request && m.Parse() != nil:
		t.fail(m.ID, errParams)
	case m.Kind == wire.Request:
		t.legacy(m, now)
	case m.Kind == wire.Notification:
		t.notification(m, now)
	default:
		t.input(m, now)
	}
}

// legacy takes a request of a legacy client. Some have no counterpart in the modern era and are
// answered here; the others become requests of the modern era.
func (t *toModern) legacy(m *wire.Message, now time.Time) {
	switch m.Method {
	case mcpmsg.Initialize:
		t.initialize(m, now)
	case mcpmsg.Ping:
		t.answer(m.ID, []byte("{}"))
	case mcpmsg.SetLevel:
		t.setLevel(m)
	case mcpmsg.Subscribe:
		t.subscribe(m, now)
	case mcpmsg.Unsubscribe:
		t.unsubscribe(m)
	default:
		t.request(m)
	}
}

// initialize takes the initialize of a legacy client. It asks the server by server/discover, and makes the
// answer of that.
func (t *toModern) initialize(m *wire.Message, now time.Time) {
	if t.hello != nil || t.version != "" {
		t.fail(m.ID, errAgain)
		return
	}
	if info := m.Params.Get("clientInfo"); info.Kind() == '{' {
		t.meta.info = bytes.Clone(info.Raw())
	}
	caps := m.Params.Get("capabilities")
	t.meta.caps = t.clientCapabilities(caps)
	t.can = mcpmsg.AbilitiesOf(caps, t.o.DangerouslyAllowSampling)
	t.hello = m
	if t.id != nil {
		t.welcome()
		return
	}
	t.ask(mcpmsg.Discover, t.meta.alone(), wire.Route{Version: modernVersion}, now, func(d *wire.Message, _ time.Time) {
		id := t.hello.ID
		switch {
		case isDiscovery(d):
			t.discovered(d)
			t.welcome()
			return
		case d != nil && d.Kind == wire.ErrorResponse:
			t.failLike(d, id)
		default:
			t.fail(id, errHandshake)
		}
		t.hello = nil
	})
}

// discovered keeps what the server says of itself.
func (t *toModern) discovered(m *wire.Message) {
	r := m.Result
	info := r.Get("_meta").Get(mcpmsg.KeyServerInfo)
	if !info.Exists() {
		info = r.Get("serverInfo") // where drafts of the revision had it
	}
	t.id = newIdentity(r.Get("capabilities"), info, r.Get("instructions"))
}

// welcome answers the client's initialize.
func (t *toModern) welcome() {
	m := t.hello
	t.hello = nil
	if t.version = clone(m.Params.Get("protocolVersion")); !wire.IsLegacy(t.version) {
		t.version = lastLegacy
	}
	dst := append([]byte(`{"protocolVersion":"`+t.version+`","capabilities":`), capabilities(t.id.caps.Root(), "extensions")...)
	dst = append(dst, `,"serverInfo":`...)
	if t.id.info != nil {
		dst = append(dst, t.id.info...)
	} else {
		dst = append(dst, `{"name":"server","version":"0"}`...) // it needs one
	}
	if t.id.instructions != nil {
		dst = append(append(dst, `,"instructions":`...), t.id.instructions...)
	}
	t.answer(m.ID, append(dst, '}'))
}

// setLevel keeps the log level, which then goes with every request: the modern era has no request for
// it.
func (t *toModern) setLevel(m *wire.Message) {
	level := mcpmsg.LevelOf(m.Params.Get("level").Text())
	switch {
	case t.id != nil && !t.id.can("logging"):
		t.fail(m.ID, errNoMethod)
	case level < 0:
		t.fail(m.ID, errParams)
	default:
		t.meta.level = quoted(mcpmsg.Levels[level])
		t.answer(m.ID, []byte("{}"))
	}
}

// request passes on a request that needs no special care.
func (t *toModern) request(m *wire.Message) {
	if t.byClient[m.ID] != nil {
		t.fail(m.ID, errID)
		return
	}
	k := &round{id: m.ID, client: m.ID, method: m.Method, route: m.Route}
	k.route.Version = modernVersion
	if askable(m.Method) {
		k.msg = m
	}
	t.calls[k.id], t.byClient[k.client] = k, k
	var e strictjson.Edits
	e.Remove(m.Params.Get("inputResponses"))
	e.Remove(m.Params.Get("requestState"))
	e.Remove(m.Params.Get("task"))
	t.modern(k, m, &e)
}

// modern sends the client's request m, with edits, as one of the modern era.
func (t *toModern) modern(k *round, m *wire.Message, e *strictjson.Edits) {
	if !m.Params.Exists() {
		t.send(k.id, k.method, t.meta.alone(), k.route)
		return
	}
	t.meta.edit(e, m.Params)
	sent, err := m.Edited(e)
	if err != nil {
		t.forget(k)
		t.fail(k.client, errParams)
		return
	}
	sent.ID, sent.Route, sent.Claim = k.id, k.route, nil
	t.tell(sent)
	if k.msg != m {
		m.Release()
	}
}

func (t *toModern) forget(k *round) {
	delete(t.calls, k.id)
	delete(t.byClient, k.client)
	delete(t.shed, k.client)
	for _, i := range k.inputs {
		delete(t.inputs, i.id)
	}
}

// notification takes a notification of the client.
func (t *toModern) notification(out *wire.Message, now time.Time) {
	switch {
	case out.Method == mcpmsg.Initialized && t.version != "":
		t.watchLists(now)
	case out.Method == mcpmsg.RootsChanged && t.version != "": // the modern era asks anew each time
	case out.Method == mcpmsg.Cancelled:
		t.cancelled(out)
	default:
		if t.version != "" {
			out.Route.Version = modernVersion
		}
		t.tell(out)
	}
}

// cancelled takes a cancellation of the client.
func (t *toModern) cancelled(m *wire.Message) {
	if m.Parse() != nil {
		return
	}
	k := t.byClient[idOf(m.Params.Get("requestId"))]
	if k == nil {
		m.Route.Version = modernVersion // a modern client's: the requests of legacy clients are known here
		t.tell(m)
		return
	}
	if !k.id.IsZero() {
		t.cancel(k.id, modernVersion)
	}
	t.withdraw(k)
	t.forget(k)
}

// server takes a message of the server.
func (t *toModern) server(m *wire.Message, now time.Time) {
	switch m.Kind {
	case wire.Request:
		// spec: 2026-07-28: a server sends no requests.
		t.refuse(m.ID, errCannotAsk)
		m.Release()
	case wire.Notification:
		t.serverNotification(m, now)
	default:
		t.response(m, now)
	}
}

// response takes an answer of the server.
func (t *toModern) response(m *wire.Message, now time.Time) {
	k := t.calls[m.ID]
	switch {
	case t.settle(m, now):
	case t.listens[m.ID] != nil:
		t.ended(t.listens[m.ID], m, now)
		m.Release()
	case k != nil:
		t.answered(k, m, now)
	case isOwn(m.ID), t.byClient[m.ID] != nil:
		m.Release() // late, or answered twice
	default:
		t.pass(m)
	}
}

// answered takes the server's answer to a round.
func (t *toModern) answered(k *round, m *wire.Message, now time.Time) {
	m.Related = wire.ID{}
	if m.Kind == wire.ErrorResponse {
		t.forget(k)
		t.finishError(k, m)
		return
	}
	switch kind := m.Result.Get("resultType"); {
	case kind.Text() == "input_required":
		t.inputRequired(k, m, now)
		m.Release()
	case !kind.Exists() || kind.Text() == "complete":
		t.forget(k)
		var e strictjson.Edits
		if downgrade(&e, k.method, t.version, m.Result) {
			t.change(m, &e, k.client)
			k.msg.Release()
			return
		}
		t.fail(k.client, errAnswer)
		m.Release()
	default: // a task, which nothing of the legacy era is, or nothing known
		t.forget(k)
		t.fail(k.client, errAnswer)
		m.Release()
	}
}

// finishError gives the client the server's error, as its revision has it.
func (t *toModern) finishError(k *round, m *wire.Message) {
	code, _ := m.Error.Get("code").Int64()
	as := 0
	switch {
	case m.Local:
	case code == wire.CodeHeaderMismatch:
		as = wire.CodeInvalid
	case code == wire.CodeMissingCapability, code == wire.CodeUnsupportedVersion:
		as = wire.CodeParams
	case code == wire.CodeParams && k.method == mcpmsg.ReadResource && k.msg != nil:
		if uri := m.Error.Get("data").Get("uri"); uri.Kind() == '"' && uri.Text() == k.msg.Params.Get("uri").Text() {
			as = wire.CodeNoResource
		}
	}
	if as == 0 {
		m.ID = k.client
		t.pass(m)
		return
	}
	var e strictjson.Edits
	e.Replace(m.Error.Get("code"), strconv.AppendInt(nil, int64(as), 10))
	t.change(m, &e, k.client)
}

// violation takes bytes of the server that are not an acceptable message. If they have the id of a
// request, that request is answered with an error.
func (t *toModern) violation(v *wire.Violation, now time.Time) {
	k, e, l := t.calls[v.ID], t.errands[v.ID], t.listens[v.ID]
	switch {
	case v.Kind == wire.Request:
		if !v.ID.IsZero() {
			t.refuse(v.ID, &fault{v.Code, "pellucid: " + v.Reason})
		}
		v.ID = wire.ID{}
	case e != nil:
		delete(t.errands, v.ID)
		e.then(nil, now)
		v.ID = wire.ID{}
	case l != nil:
		t.ended(l, nil, now)
		v.ID = wire.ID{}
	case k != nil:
		v.ID = k.client
		t.forget(k)
	}
	t.down = append(t.down, item{v: v})
}

// tick repeats requests that the server has put off, opens subscriptions again that have ended, and ends
// requests that have waited too long.
func (t *toModern) tick(now time.Time) {
	t.overdue(now)
	for _, k := range t.shed {
		if !now.Before(k.again) {
			delete(t.shed, k.client)
			t.retry(k)
		}
	}
	for _, l := range t.listens {
		if !l.again.IsZero() && !now.Before(l.again) {
			l.again = time.Time{}
			t.reopen(l, now)
		} else if !l.due.IsZero() && !now.Before(l.due) {
			l.due = time.Time{}
			t.unanswered(l)
		}
	}
}

// passage returns modernPassage until a legacy client uses the connection.
func (t *toModern) passage() passage {
	if t.version != "" || t.hello != nil ||
		len(t.calls)+len(t.byClient)+len(t.shed)+len(t.inputs)+len(t.listens)+len(t.errands) > 0 {
		return noPassage
	}
	return modernPassage
}

// pending returns when tick has work next; the zero time if there is no such work.
func (t *toModern) pending() time.Time {
	due := t.nextDue()
	for _, k := range t.shed {
		due = earlier(due, k.again)
	}
	for _, l := range t.listens {
		due = earlier(earlier(due, l.again), l.due)
	}
	return due
}
