// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
)

const (
	form    = `{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}`
	formed  = `{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}`
	address = `{"mode":"url","message":"Which?","url":"https://a.example/","elicitationId":"e"}`
)

// asks are what a server can ask, and by which capabilities of a client.
var asks = []struct {
	method, params string
	by             string // capabilities
	want           bool
}{
	{mcpmsg.Elicit, form, `{"elicitation":{}}`, true},
	{mcpmsg.Elicit, formed, `{"elicitation":{"form":{}}}`, true},
	{mcpmsg.Elicit, address, `{"elicitation":{"form":{},"url":{}}}`, true},
	{mcpmsg.ListRoots, `{}`, `{"roots":{}}`, true},
	{mcpmsg.Sample, `{"messages":[],"maxTokens":1}`, `{"sampling":{}}`, true},
	{mcpmsg.Elicit, form, `{"roots":{},"sampling":{}}`, false},
	{mcpmsg.Elicit, form, `{"elicitation":{"url":{}}}`, false},
	{mcpmsg.Elicit, address, `{"elicitation":{}}`, false},
	{mcpmsg.Elicit, address, `{"elicitation":{"form":{}}}`, false},
	{mcpmsg.Elicit, `{"mode":"other","message":"Which?"}`, `{"elicitation":{"form":{},"url":{}}}`, false},
	{mcpmsg.ListRoots, `{}`, `{"roots":null}`, false},
	{mcpmsg.ListRoots, `{}`, `{"elicitation":{}}`, false},
	{mcpmsg.Sample, `{"messages":[],"maxTokens":1}`, `{"elicitation":{},"roots":{}}`, false},
}

// greetAble begins a session of a legacy client.
func (r *rig) greetAble(capabilities string) {
	r.t.Helper()
	up := r.request(`"hello"`, mcpmsg.Initialize, `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"c","version":"1"}}`)
	r.result(up, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}`)
}

// dropped is how many decisions say that a message of that method was dropped.
func (r *rig) dropped(kind string) (n int) {
	for _, d := range r.sink.all() {
		if d.Verdict == Dropped && d.Kind == kind {
			n++
		}
	}
	return n
}

// TestAsksOffered: a client hears only the questions for which it has declared a capability. To the others the
// server has an answer at once.
func TestAsksOffered(t *testing.T) {
	t.Parallel()
	for _, tt := range asks {
		r := newRig(t, func(c *Config) { c.DangerouslyAllowSampling, c.Validation.Mode = true, policy.Off })
		r.greetAble(tt.by)
		r.server.send(`{"jsonrpc":"2.0","id":"ask","method":"` + tt.method + `","params":` + tt.params + `}`)
		if tt.want {
			if m := parse(t, r.client.next()); m.str("method") != tt.method {
				t.Errorf("%s of %s: the client hears %v", tt.method, tt.by, m)
			}
			continue
		}
		if m := parse(t, r.server.next()); m.str("id") != "ask" || !strings.Contains(string(m["error"]), `-32601`) {
			t.Errorf("%s of %s: the server hears %v", tt.method, tt.by, m)
		}
		r.client.none()
		if r.dropped("request") != 1 || !strings.Contains(r.log.String(), "has not declared the capability") {
			t.Errorf("%s of %s: not recorded, or not told", tt.method, tt.by)
		}
	}
}

// TestAsksOfferedAfterDiscover: a client that asks for server/discover first, and then begins a session of the legacy
// era, hears what it has declared there.
func TestAsksOfferedAfterDiscover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request("1", mcpmsg.Discover, `{"_meta":{"`+mcpmsg.KeyVersion+`":"2026-07-28","`+mcpmsg.KeyClientCaps+`":{}}}`)
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"error":{"code":-32601,"message":"no"}}`)
	r.client.next()
	r.greetAble(`{"elicitation":{}}`)
	r.server.send(`{"jsonrpc":"2.0","id":"ask","method":"` + mcpmsg.Elicit + `","params":` + asks[0].params + `}`)
	if m := parse(t, r.client.next()); m.str("method") != mcpmsg.Elicit {
		t.Errorf("the client hears %v", m)
	}
	r.server.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
	if m := parse(t, r.client.next()); m.text("params", "level") != "info" {
		t.Errorf("%v", m)
	}
}

// TestAsksOfferedInResults is that of the modern era, where a question stands in a result.
func TestAsksOfferedInResults(t *testing.T) {
	t.Parallel()
	for _, tt := range asks {
		if strings.Contains(tt.by, "null") || strings.Contains(tt.params, "other") {
			continue
		}
		r := newRig(t, func(c *Config) { c.DangerouslyAllowSampling, c.Validation.Mode = true, policy.Off })
		up := r.request("1", mcpmsg.CallTool, `{"name":"read","_meta":{"`+mcpmsg.KeyVersion+`":"2026-07-28","`+mcpmsg.KeyClientCaps+`":`+tt.by+`}}`)
		m := r.result(up, `{"resultType":"input_required","inputRequests":{"a":{"method":"`+tt.method+`","params":`+tt.params+`}}}`)
		if got := m.text("result", "inputRequests", "a", "method") == tt.method; got != tt.want {
			t.Errorf("%s of %s: %v", tt.method, tt.by, m)
		}
	}
}

// TestLogLevel: a client hears no log message below the level that it has set.
func TestLogLevel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.greetAble(`{}`)
	says := func(level string, want bool) {
		t.Helper()
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":"x"}}`)
		if !want {
			r.client.none()
		} else if m := parse(t, r.client.next()); m.text("params", "level") != level {
			t.Errorf("%v", m)
		}
	}
	says("debug", true) // before a level is set, the server decides
	sets := func(level, answer string) {
		t.Helper()
		up := r.request(`"level"`, mcpmsg.SetLevel, `{"level":"`+level+`"}`)
		r.server.send(`{"jsonrpc":"2.0","id":` + up + `,` + answer + `}`)
		r.client.next()
	}
	sets("warning", `"result":{}`)
	says("info", false)
	says("warning", true)
	says("emergency", true)
	sets("error", `"error":{"code":-32601,"message":"none"}`) // a server without levels says all
	says("warning", false)
	says("error", true)
	sets("loud", `"error":{"code":-32602,"message":"none"}`)
	says("error", true)
	says("warning", false)
	sets("debug", `"result":{}`)
	says("debug", true)
	if n := r.dropped("notification"); n != 3 {
		t.Errorf("%d records", n)
	}
}

// TestLogLevelOfRequests: a modern client hears the messages that belong to a request with a level.
func TestLogLevelOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ask := func(id, level string) string {
		meta := `"` + mcpmsg.KeyVersion + `":"2026-07-28","` + mcpmsg.KeyClientCaps + `":{}`
		if level != "" {
			meta += `,"` + mcpmsg.KeyLogLevel + `":"` + level + `"`
		}
		return r.request(id, mcpmsg.CallTool, `{"name":"read","_meta":{`+meta+`}}`)
	}
	const info = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	one := ask("1", "")
	r.server.send(info)
	r.client.none()
	two := ask("2", "info") // of two requests under way it is not known which it belongs to
	r.server.send(info)
	if m := parse(t, r.client.next()); m.str("method") != mcpmsg.LogMessage {
		t.Errorf("%v", m)
	}
	r.result(two, `{"resultType":"complete","content":[]}`)
	r.server.send(info)
	r.client.none()
	r.result(one, `{"resultType":"complete","content":[]}`)
}

// TestProgressOfRequests: progress of what the client does not wait for is dropped.
func TestProgressOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	progress := func(token string, want bool) {
		t.Helper()
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`)
		if !want {
			r.client.none()
		} else if m := parse(t, r.client.next()); m.text("params", "progressToken") != strings.Trim(token, `"`) {
			t.Errorf("%s: %v", token, m)
		}
	}
	asks := func(id, token string) string {
		return r.request(id, mcpmsg.CallTool, `{"name":"read","_meta":{"progressToken":`+token+`}}`)
	}
	progress(`"made up"`, false)
	up := asks("1", `"a"`)
	progress(`"a"`, true)
	progress(`1`, false) // another type than the token, and the id of the request
	r.result(up, `{"content":[]}`)
	progress(`"a"`, false)

	asks("2", `"b"`)
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	r.awaits(mcpmsg.Cancelled)
	progress(`"b"`, false)

	up = asks("3", `"c"`)
	r.result(up, `{"task":{"taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}}`)
	progress(`"c"`, true) // spec: the token of a call stays valid while its task lasts
	if n := r.dropped("notification"); n != 4 {
		t.Errorf("%d records", n)
	}
}
