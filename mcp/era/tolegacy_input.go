// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An ask is a request of a legacy server that a modern client gets as an input request.
type ask struct {
	id  wire.ID // the server's; zero if it waits for no answer
	raw []byte  // {"method":…,"params":…}
	can func(mcpmsg.Abilities) bool
	due time.Time // of an orphan
}

// An exchange is input that a client was asked for. Its handle is the
// requestState, good for one retry of the same request.
type exchange struct {
	handle string
	call   *call // goes on with the retry; nil: the retry is a new call
	asks   map[string]*ask
	method string
	print  [sha256.Size]byte // of the request
	rounds int
	due    time.Time
}

const (
	maxAsks     = 32        // of one call, and of orphans
	maxKept     = 32 << 20  // bytes of results that wait for their clients
	maxAskBytes = 1 << 20   // of one ask
	orphanWait  = time.Hour // never longer than hold
)

// serverRequest takes a request of the server, such as an elicitation. A modern client cannot get
// requests. So the request becomes input that a call needs: the call is answered with
// "input_required", and the client sends it again with its answers. A request that belongs to no call
// waits as an orphan for the next call.
func (t *toLegacy) serverRequest(m *wire.Message, now time.Time) {
	if t.native {
		if !m.Related.IsZero() {
			t.related(m)
		}
		t.pass(m)
		return
	}
	defer m.Release()
	if m.Method == mcpmsg.Ping {
		t.reply(m.ID, []byte("{}"))
		return
	}
	if m.Method == mcpmsg.Sample && !t.o.DangerouslyAllowSampling {
		t.refuse(m.ID, errNoSampling)
		return
	}
	a := t.newAsk(m)
	if a == nil || t.asked(m.ID) {
		t.refuse(m.ID, errCannotAsk)
		return
	}
	k, found := t.subject(m, a)
	switch {
	case found && (k == nil || len(k.open) >= maxAsks):
		t.refuse(m.ID, errCannotAsk)
	case !found && (len(t.orphans) >= maxAsks || t.phase == fresh):
		t.refuse(m.ID, errCannotAsk)
	case !found:
		a.due = now.Add(min(t.o.hold, orphanWait))
		t.orphans = append(t.orphans, a)
	default:
		k.open = append(k.open, a)
		if !k.client.IsZero() {
			t.put(k, now)
		}
	}
}

// newAsk turns a request of the server into an input request; nil if the modern era has none of this
// kind.
func (t *toLegacy) newAsk(m *wire.Message) *ask {
	switch m.Method {
	case mcpmsg.Elicit, mcpmsg.ListRoots, mcpmsg.Sample:
	default:
		return nil
	}
	if len(m.Params.Raw()) > maxAskBytes {
		return nil
	}
	raw := append([]byte(`{"method":"`), m.Method...)
	raw = append(raw, `","params":`...)
	if m.Params.Exists() {
		raw = append(raw, m.Params.Raw()...)
	} else {
		raw = append(raw, "{}"...) // there are clients that cannot do without
	}
	method, mode := m.Method, m.Params.Get("mode")
	url, plain := mode.Text() == "url", !mode.Exists() || mode.Text() == "form"
	return &ask{id: m.ID, raw: append(raw, '}'), can: func(c mcpmsg.Abilities) bool {
		switch method {
		case mcpmsg.Sample:
			return c.Sample
		case mcpmsg.ListRoots:
			return c.Roots
		}
		return plain && c.Form || url && c.URL
	}}
}

// asked reports whether the server has another request under way by this id.
func (t *toLegacy) asked(id wire.ID) bool {
	for _, a := range t.orphans {
		if a.id == id {
			return true
		}
	}
	for _, k := range t.calls {
		for _, a := range k.open {
			if a.id == id {
				return true
			}
		}
	}
	for _, x := range t.exchanges {
		for _, a := range x.asks {
			if a.id == id {
				return true
			}
		}
	}
	return false
}

// subject finds the call that a server's request is about: the one on whose
// stream it came, else the oldest whose client can be asked this, one that waits
// before one that does not. It matters little which it is: the answer goes to the
// server all the same, and each call's result to the client that waits for it. found is
// false where no call is under way at all.
func (t *toLegacy) subject(m *wire.Message, a *ask) (k *call, found bool) {
	if k := t.calls[m.Related]; k != nil && !m.Related.IsZero() {
		if !k.asks || !a.can(k.can) {
			return nil, true
		}
		return k, true
	}
	for _, c := range t.calls {
		if !c.asks {
			continue
		}
		found = true
		if !a.can(c.can) {
			continue
		}
		if k == nil || k.client.IsZero() && !c.client.IsZero() || k.client.IsZero() == c.client.IsZero() && c.olderThan(k) {
			k = c
		}
	}
	return k, found
}

// put answers the client of k with every input that the server has asked for. The client sends the
// call again with its answers, and gets the result then.
func (t *toLegacy) put(k *call, now time.Time) {
	x := t.newExchange(k.msg, k.open, k.rounds, now)
	if x == nil {
		for _, a := range k.open {
			t.refuse(a.id, errBusy)
		}
		k.open = nil
		return
	}
	x.call = k
	id := k.client
	k.open, k.msg = nil, nil // the retry says it all again
	t.detach(k)
	t.inputRequired(id, x)
}

// newExchange makes an exchange for the request m, whose retry has to bring answers to asks; nil if too
// many calls wait already, or this one has been asked too often.
func (t *toLegacy) newExchange(m *wire.Message, asks []*ask, rounds int, now time.Time) *exchange {
	if len(t.exchanges) >= t.o.parked || rounds >= t.o.rounds {
		return nil
	}
	handle, ok := t.handle()
	if !ok {
		return nil
	}
	x := &exchange{handle: handle, asks: map[string]*ask{}, method: m.Method, print: fingerprint(m), rounds: rounds + 1, due: now.Add(t.o.hold)}
	for i, a := range asks {
		x.asks["ask-"+strconv.Itoa(i+1)] = a
	}
	t.exchanges[handle] = x
	return x
}

// inputRequired answers the request id with the input that exchange x needs.
func (t *toLegacy) inputRequired(id wire.ID, x *exchange) {
	dst := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i := range len(x.asks) {
		key := "ask-" + strconv.Itoa(i+1)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `"`+key+`":`...), x.asks[key].raw...)
	}
	t.answer(id, append(dst, `},"requestState":"`+x.handle+`"}`...))
}

// fingerprint tells a retry of the same request from another.
func fingerprint(m *wire.Message) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, v := range [...]strictjson.Value{m.Params.Get("name"), m.Params.Get("uri"), m.Params.Get("arguments")} {
		raw := v.Raw()
		if c, err := strictjson.Canonical(nil, raw, strictjson.Limits{MendSurrogates: true}); err == nil {
			raw = c
		}
		h.Write(strconv.AppendInt(nil, int64(len(raw)), 10))
		h.Write([]byte{':'})
		h.Write(raw)
	}
	h.Sum(sum[:0])
	return sum
}

// retry goes on with what a client was asked for.
func (t *toLegacy) retry(m *wire.Message, now time.Time) {
	state := m.Params.Get("requestState")
	x := t.exchanges[state.Text()]
	if x == nil || state.Kind() != '"' || x.method != m.Method || x.print != fingerprint(m) {
		t.fail(m.ID, errState)
		return
	}
	if t.byClient[m.ID] != nil {
		t.fail(m.ID, errID)
		return
	}
	delete(t.exchanges, x.handle)
	responses := m.Params.Get("inputResponses")
	var left []*ask
	for i := range len(x.asks) {
		key := "ask-" + strconv.Itoa(i+1)
		a := x.asks[key]
		response := responses.Get(key)
		switch {
		case a.id.IsZero(): // withdrawn, or the server does not wait for it
		case response.Kind() == '{':
			// A copy: the call may be answered, and m given back, before the reply is written.
			t.reply(a.id, bytes.Clone(response.Raw()))
		default:
			left = append(left, a)
		}
	}
	k := x.call
	if k == nil {
		for _, a := range left {
			t.refuse(a.id, errInput)
		}
		t.forward(m, x.rounds, now)
		return
	}
	k.rounds, k.msg = x.rounds, m
	t.attach(k, m)
	if k.result != nil {
		for _, a := range left {
			t.refuse(a.id, errInput)
		}
		result := k.result
		k.result = nil
		t.kept -= len(result.Body())
		t.forget(k)
		t.finish(k, result, m.ID)
		return
	}
	k.open = append(left, k.open...)
	if len(k.open) > 0 {
		t.put(k, now)
	}
}

// putOrphans asks the client of m, before the server hears of its request, what
// the server asked for while no client could be asked.
func (t *toLegacy) putOrphans(m *wire.Message) bool {
	if len(t.orphans) == 0 {
		return false
	}
	can := mcpmsg.AbilitiesOf(m.Params.Get("_meta").Get(mcpmsg.KeyClientCaps), t.o.DangerouslyAllowSampling)
	var asks, others []*ask
	for _, a := range t.orphans {
		if a.can(can) {
			asks = append(asks, a)
		} else {
			others = append(others, a)
		}
	}
	if len(asks) == 0 {
		return false
	}
	x := t.newExchange(m, asks, 0, t.o.now())
	if x == nil {
		return false
	}
	t.orphans = others
	t.inputRequired(m.ID, x)
	return true
}

// putLinks turns the error of a server of 2025-11-25 that the user must visit a page first into
// a request for input. The retry is a new call.
func (t *toLegacy) putLinks(k *call, m *wire.Message, id wire.ID) bool {
	var asks []*ask
	for v := range m.Error.Get("data").Get("elicitations").Elements() {
		if v.Kind() != '{' || v.Get("mode").Text() != "url" || len(asks) == maxAsks || len(v.Raw()) > maxAskBytes {
			return false
		}
		raw := append([]byte(`{"method":"`+mcpmsg.Elicit+`","params":`), v.Raw()...)
		asks = append(asks, &ask{raw: append(raw, '}')})
	}
	if len(asks) == 0 {
		return false
	}
	x := t.newExchange(k.msg, asks, k.rounds, t.o.now())
	if x == nil {
		return false
	}
	t.inputRequired(id, x)
	return true
}

// keep holds the answer to a call whose client has yet to come back.
func (t *toLegacy) keep(k *call, m *wire.Message) {
	if t.byToken[k.token] == k {
		delete(t.byToken, k.token)
	}
	if t.kept+len(m.Body()) > maxKept {
		m.Release()
		m = errBusy.local(k.id, nil)
	}
	t.kept += len(m.Body())
	k.result = m
}

func (t *toLegacy) dropResult(k *call) {
	if k.result == nil {
		return
	}
	t.kept -= len(k.result.Body())
	k.result.Release()
	k.result = nil
}

// withdraw forgets what the server no longer asks.
func (t *toLegacy) withdraw(id wire.ID) bool {
	if id.IsZero() {
		return false
	}
	for i, a := range t.orphans {
		if a.id == id {
			t.orphans = append(t.orphans[:i:i], t.orphans[i+1:]...)
			return true
		}
	}
	for _, k := range t.calls {
		for i, a := range k.open {
			if a.id == id {
				k.open = append(k.open[:i:i], k.open[i+1:]...)
				return true
			}
		}
	}
	for _, x := range t.exchanges {
		for _, a := range x.asks {
			if a.id == id {
				a.id = wire.ID{}
				return true
			}
		}
	}
	return false
}

// expire ends an exchange whose client did not come back.
func (t *toLegacy) expire(x *exchange) {
	delete(t.exchanges, x.handle)
	for _, a := range x.asks {
		if !a.id.IsZero() {
			t.refuse(a.id, errExpired)
		}
	}
	if x.call != nil {
		t.abandon(x.call, errExpired)
	}
}

// cancelAsks keeps, for a call whose answer could not be read, an error.
func (t *toLegacy) cancelAsks(k *call) {
	t.keep(k, errAnswer.local(k.id, nil))
}
