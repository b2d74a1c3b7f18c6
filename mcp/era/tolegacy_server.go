// SPDX-License-Identifier: Apache-2.0

package era

import (
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// server takes a message of the server.
func (t *toLegacy) server(m *wire.Message, now time.Time) {
	switch m.Kind {
	case wire.Request:
		t.serverRequest(m, now)
	case wire.Notification:
		t.serverNotification(m)
	default:
		t.response(m, now)
	}
}

// response takes an answer of the server: to a request of this package, to a call, or to a request of a
// legacy client. The answer to a call whose client is being asked for input is kept until the retry.
func (t *toLegacy) response(m *wire.Message, now time.Time) {
	k := t.calls[m.ID]
	switch {
	case t.settle(m, now):
	case k != nil:
		delete(t.calls, k.id) // it is answered once
		if k.client.IsZero() {
			t.keep(k, m)
			return
		}
		id := k.client
		t.forget(k)
		t.finish(k, m, id)
	case isOwn(m.ID), !t.native, t.byClient[m.ID] != nil, t.listens[m.ID] != nil:
		m.Release() // late, or an answer to what it was not asked
	default:
		if m.ID == t.hello && m.Kind == wire.Response {
			t.hello = wire.ID{}
			t.greeted(m)
		}
		t.pass(m)
	}
}

// finish gives the client, who waits as id, the server's answer to k.
func (t *toLegacy) finish(k *call, m *wire.Message, id wire.ID) {
	m.Related = wire.ID{}
	if m.Kind == wire.ErrorResponse {
		t.finishError(k, m, id)
		return
	}
	var e strictjson.Edits
	r := m.Result
	e.Append(r, "resultType", []byte(`"complete"`))
	// What a legacy server cannot mean must not look as if it did.
	e.Remove(r.Get("inputRequests"))
	e.Remove(r.Get("requestState"))
	if cacheable(k.method) {
		e.Append(r, "ttlMs", []byte("0"))
		e.Append(r, "cacheScope", []byte(`"private"`))
	}
	t.change(m, &e, id)
	k.msg.Release()
}

// finishError gives the client, which waits as id, the error that the server has answered k with. Where
// the eras have different codes, it changes the code.
func (t *toLegacy) finishError(k *call, m *wire.Message, id wire.ID) {
	code, _ := m.Error.Get("code").Int64()
	switch {
	case code == wire.CodeNoResource && k.method == mcpmsg.ReadResource && !m.Local:
		var e strictjson.Edits
		e.Replace(m.Error.Get("code"), strconv.AppendInt(nil, wire.CodeParams, 10))
		t.change(m, &e, id)
	case code == wire.CodeURLElicitation && k.can.URL && k.msg != nil && t.putLinks(k, m, id):
		m.Release()
	default:
		m.ID = id
		t.pass(m)
	}
}

// violation takes bytes of the server that are not an acceptable message. If they have the id of a
// request, that request is answered with an error.
func (t *toLegacy) violation(v *wire.Violation, now time.Time) {
	k := t.calls[v.ID]
	e := t.errands[v.ID]
	switch {
	case v.Kind == wire.Request && !v.ID.IsZero() && !t.native:
		t.refuse(v.ID, &fault{v.Code, "pellucid: " + v.Reason})
		v.ID = wire.ID{}
	case v.Kind == wire.Request:
	case e != nil:
		delete(t.errands, v.ID)
		e.then(nil, now)
		v.ID = wire.ID{}
	case k != nil && k.client.IsZero():
		t.cancelAsks(k)
		delete(t.calls, k.id)
		v.ID = wire.ID{}
	case k != nil:
		v.ID = k.client
		t.forget(k)
	}
	t.down = append(t.down, item{v: v})
}

// serverNotification takes a notification of the server.
func (t *toLegacy) serverNotification(m *wire.Message) {
	if t.native && len(t.calls) == 0 && len(t.listens) == 0 {
		t.pass(m)
		return
	}
	switch m.Method {
	case mcpmsg.Progress:
		t.progress(m)
	case mcpmsg.LogMessage:
		t.log(m)
	case mcpmsg.ToolsChanged, mcpmsg.PromptsChanged, mcpmsg.ResourcesChanged, mcpmsg.ResourceUpdated:
		t.changed(m)
	case mcpmsg.Cancelled:
		if !t.withdraw(idOf(m.Params.Get("requestId"))) && t.native {
			t.pass(m)
			return
		}
		m.Release()
	case mcpmsg.ElicitationComplete, mcpmsg.TaskStatus:
		if t.native {
			t.pass(m)
			return
		}
		m.Release() // the modern era has none
	default:
		t.related(m)
		t.pass(m)
	}
}

// related replaces the id that the server knows by the client's id.
func (t *toLegacy) related(m *wire.Message) *call {
	if m.Related.IsZero() {
		return nil
	}
	k := t.calls[m.Related]
	if k != nil {
		m.Related = k.client
	} else if isOwn(m.Related) {
		m.Related = wire.ID{}
	}
	return k
}

// progress passes a progress message on, with the token that the client has chosen.
func (t *toLegacy) progress(m *wire.Message) {
	token := m.Params.Get("progressToken")
	k := t.byToken[string(token.Raw())]
	if k == nil {
		if t.native {
			t.pass(m)
			return
		}
		m.Release()
		return
	}
	if k.client.IsZero() || k.shown == "" {
		m.Release() // the client does not wait for it, or did not ask for progress
		return
	}
	if k.shown == k.token {
		m.Related = k.client
		t.pass(m)
		return
	}
	var e strictjson.Edits
	e.Replace(token, []byte(k.shown))
	m.Related = k.client
	t.change(m, &e, wire.ID{})
}

// log passes a log message on to the request that it belongs to, or may.
//
// spec: 2026-07-28: a request without a level gets none.
func (t *toLegacy) log(m *wire.Message) {
	level := mcpmsg.LevelOf(m.Params.Get("level").Text())
	k := t.related(m)
	if k == nil && m.Related.IsZero() {
		for _, other := range t.calls {
			if !other.client.IsZero() && other.level >= 0 && other.level <= level && (k == nil || other.olderThan(k)) {
				k = other
			}
		}
	}
	if k == nil && t.native {
		t.pass(m)
		return
	}
	if k == nil || k.client.IsZero() || k.level < 0 || level < k.level {
		m.Release()
		return
	}
	m.Related = k.client
	t.pass(m)
}

func (k *call) olderThan(other *call) bool {
	a, _ := k.id.Int()
	b, _ := other.id.Int()
	return a < b
}

// withLevel goes on once the server logs all that the requests under way want to hear.
func (t *toLegacy) withLevel(k *call, now time.Time, goOn func()) {
	if k.level < 0 || !t.id.can("logging") {
		goOn()
		return
	}
	want := k.level
	for _, other := range t.calls {
		if other.level >= 0 {
			want = min(want, other.level)
		}
	}
	if want == t.level {
		goOn()
		return
	}
	t.level = want
	t.ask(mcpmsg.SetLevel, []byte(`{"level":"`+mcpmsg.Levels[want]+`"}`), wire.Route{}, now, func(m *wire.Message, _ time.Time) {
		if m == nil || m.Kind != wire.Response {
			t.level = -1
		}
		goOn()
	})
}
