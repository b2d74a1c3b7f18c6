// SPDX-License-Identifier: Apache-2.0

package era

import (
	"bytes"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An input is one question of a modern server to a legacy client.
type input struct {
	id     wire.ID // of the request to the client
	name   string  // that the server gave it
	of     *round
	result []byte // raw; nil until it has answered
}

const (
	maxInputs = 32      // of one round
	maxState  = 1 << 20 // bytes of a requestState
	maxEmpty  = 3       // rounds that ask for nothing: the server wants time
	emptyWait = time.Second
)

// inputRequired asks the client, request by request, for what the server needs.
func (t *toModern) inputRequired(k *round, m *wire.Message, now time.Time) {
	delete(t.calls, k.id)
	k.id, k.inputs, k.due = wire.ID{}, nil, 0
	requests, state := m.Result.Get("inputRequests"), m.Result.Get("requestState")
	switch {
	case k.n >= t.o.rounds:
		t.giveUp(k, errRounds)
		return
	case k.msg == nil, !requests.Exists() && !state.Exists(),
		requests.Exists() && requests.Kind() != '{', requests.Len() > maxInputs,
		state.Exists() && state.Kind() != '"', len(state.Raw()) > maxState:
		t.giveUp(k, errAnswer)
		return
	}
	k.n++
	k.state = bytes.Clone(state.Raw())
	if requests.Len() == 0 {
		if k.empty++; k.empty > maxEmpty {
			t.giveUp(k, errRounds)
			return
		}
		k.again = now.Add(emptyWait << (k.empty - 1))
		t.shed[k.client] = k
		return
	}
	var questions []*wire.Message
	for name, request := range requests.Members() {
		method := request.Get("method").Text()
		raw, fits := t.question(method, request.Get("params"))
		if !fits {
			t.giveUp(k, errInput)
			return
		}
		i := &input{id: t.ownID(), of: k, name: clone(name)}
		k.inputs = append(k.inputs, i)
		q := wire.NewRequest(i.id, strings.Clone(method), raw)
		if q.Parse() != nil {
			t.giveUp(k, errAnswer)
			return
		}
		q.Related = k.client
		questions = append(questions, q)
	}
	k.due = len(questions)
	for n, q := range questions {
		t.inputs[q.ID] = k.inputs[n]
		t.pass(q)
	}
}

// question spells params as the client's revision has them; false if the
// client cannot be asked this.
func (t *toModern) question(method string, params strictjson.Value) (raw []byte, fits bool) {
	if !t.can.Accepts(method, params) || params.Exists() && params.Kind() != '{' {
		return nil, false
	}
	if !params.Exists() {
		return nil, method == mcpmsg.ListRoots
	}
	var e strictjson.Edits
	switch method {
	case mcpmsg.Elicit:
		mode := params.Get("mode")
		if t.version < lastLegacy {
			e.Remove(mode) // there is one
		}
		if mode.Text() == "url" && !params.Get("elicitationId").Exists() {
			id, ok := t.handle()
			if !ok {
				return nil, false
			}
			e.Append(params, "elicitationId", quoted(id))
		}
	case mcpmsg.Sample:
		if t.version < lastLegacy && !singleContents(&e, params) {
			return nil, false
		}
	}
	return e.Apply(nil, params), true
}

// singleContents makes the content of each message one block, as revisions
// before 2025-11-25 have it; false where that cannot be.
func singleContents(e *strictjson.Edits, params strictjson.Value) bool {
	if params.Get("tools").Exists() {
		return false
	}
	for message := range params.Get("messages").Elements() {
		content := message.Get("content")
		if content.Kind() != '[' {
			continue
		}
		if content.Len() != 1 {
			return false
		}
		for block := range content.Elements() {
			e.Replace(content, block.Raw())
		}
	}
	return true
}

// giveUp ends a round with an error of our own.
func (t *toModern) giveUp(k *round, f *fault) {
	t.withdraw(k)
	t.forget(k)
	t.fail(k.client, f)
}

// withdraw tells the client that its input is no longer needed.
func (t *toModern) withdraw(k *round) {
	for _, i := range k.inputs {
		if t.inputs[i.id] == i && i.result == nil {
			m := wire.NewCancellation(i.id, "", false)
			m.Related = k.client
			t.deliver(m, wire.ID{})
		}
	}
}

// input takes an answer of the client.
func (t *toModern) input(m *wire.Message, now time.Time) {
	i := t.inputs[m.ID]
	if i == nil {
		return
	}
	delete(t.inputs, m.ID)
	k := i.of
	if m.Kind != wire.Response {
		t.giveUp(k, errInput)
		return
	}
	i.result = bytes.Clone(m.Body())
	if k.due--; k.due == 0 {
		t.retry(k)
	}
}

// retry sends the client's request again, with the input and the state that the
// server gave.
func (t *toModern) retry(k *round) {
	k.id = t.ownID()
	t.calls[k.id] = k
	var e strictjson.Edits
	params := k.msg.Params
	e.Remove(params.Get("task"))
	e.Remove(params.Get("inputResponses"))
	e.Remove(params.Get("requestState"))
	if len(k.inputs) > 0 {
		dst := []byte{'{'}
		for _, i := range k.inputs {
			dst = append(append(append(append(dst, quoted(i.name)...), ':'), i.result...), ',')
		}
		dst[len(dst)-1] = '}'
		e.Append(params, "inputResponses", dst)
	}
	if len(k.state) > 0 {
		e.Append(params, "requestState", k.state)
	}
	k.inputs, k.state = nil, nil
	t.modern(k, k.msg, &e)
}

// serverNotification takes a notification of the server: of a subscription that this package has opened,
// or of a request under way.
func (t *toModern) serverNotification(m *wire.Message, now time.Time) {
	if l := t.streamOf(m); l != nil {
		t.heard(l, m, now)
		return
	}
	if t.version == "" {
		t.pass(m) // the client is modern, or has not sent initialize yet
		return
	}
	switch m.Method {
	case mcpmsg.ToolsChanged, mcpmsg.PromptsChanged, mcpmsg.ResourcesChanged, mcpmsg.ResourceUpdated, mcpmsg.Acknowledged, mcpmsg.Cancelled:
		m.Release() // the client has not subscribed to it
		return
	}
	if k := t.calls[m.Related]; k != nil {
		m.Related = k.client
	} else if isOwn(m.Related) {
		m.Related = wire.ID{}
	}
	if m.Method == mcpmsg.Progress && t.version < "2025-03-26" && m.Params.Get("message").Exists() {
		var e strictjson.Edits
		e.Remove(m.Params.Get("message"))
		t.change(m, &e, wire.ID{})
		return
	}
	t.pass(m)
}
