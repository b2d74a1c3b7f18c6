// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

func TestCallIsFenced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request(`"a"`, "tools/call", `{"name":"read","arguments":{"n":1.50,"z":[]}}`)
	m := r.result(up, `{"content":[{"type":"text","text":"hello \ud83d\ude00"}],"isError":false}`)
	if m.str("id") != "a" {
		t.Errorf("id %s", m["id"])
	}
	origin, body, err := r.key.Open(m.text("result", "content", 0, "text"), frame.Origin{})
	if err != nil || body != "hello \U0001F600" || origin.Server != "srv" || origin.Tool != "read" {
		t.Errorf("fence: %v %q %v", origin, body, err)
	}
	prov := m.at("result", "_meta", "dev.pellucid/provenance")
	if !strings.Contains(string(prov), `"untrusted":true`) || !strings.Contains(string(prov), `"frame":"fence"`) {
		t.Errorf("provenance %s", prov)
	}
	d := r.sink.all()
	if len(d) != 1 || d[0].Tool != "read" || d[0].Verdict != Passed || d[0].Method != "tools/call" {
		t.Errorf("decisions %+v", d)
	}
}

func TestArgumentsPassAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	params := `{ "name":"read", "arguments":{"x":1e2,"\u0061":"\u200b<|im_start|>"} , "_meta":{"progressToken":7}}`
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":` + params + `}`)
	got := r.server.next()
	if !strings.Contains(got, params) {
		t.Errorf("params changed: %s", got)
	}
}

func TestUnlistedToolIsOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request("1", "tools/call", `{"name":"sneaky"}`)
	m := r.result(up, `{"content":[{"type":"text","text":"x"}]}`)
	if origin, _, err := r.key.Open(m.text("result", "content", 0, "text"), frame.Origin{}); err != nil || origin.Tool != "other" {
		t.Errorf("origin %v %v", origin, err)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request(`"x"`, "ping", "")
	r.client.send(`{"jsonrpc":"2.0","id":"x","method":"ping"}`) // in flight twice
	if m := parse(t, r.client.next()); m.text("error", "message") != errDuplicate.text {
		t.Errorf("duplicate: %s", m["error"])
	}
	r.server.send(`{"jsonrpc":"2.0","id":999,"result":{}}`) // nobody asked
	r.server.send(`{"jsonrpc":"2.0","id":"x` + up + `","result":{}}`)
	r.client.none()
	if m := r.result(up, `{}`); m.str("id") != "x" || string(m["result"]) != `{}` {
		t.Errorf("answer %v", m)
	}
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`) // a second time
	r.client.none()
	if n := len(r.sink.all()); n != 3 {
		t.Errorf("%d records of dropped answers, want 3", n)
	}
}

func TestServerRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.send(`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
	m := parse(t, r.client.next())
	if m.str("method") != "roots/list" || string(m["id"]) == `"q"` {
		t.Fatalf("request %v", m)
	}
	r.client.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"result":{"roots":[ ]}}`)
	if got := r.server.next(); got != `{"jsonrpc":"2.0","id":"q","result":{"roots":[ ]}}` {
		t.Errorf("answer %s", got)
	}

	r.server.send(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`)
	if m := parse(t, r.server.next()); m.text("error", "message") != errNoSampling.text || !strings.Contains(r.log.String(), "allow_with=dangerously_allow_sampling") {
		t.Errorf("sampling: %v", m)
	}
	r.client.none()

	r.server.send(`{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"hi\u200b","requestedSchema":{"type":"object","properties":{}}}}`)
	m = parse(t, r.client.next())
	if m.text("params", "message") != "hi" || m.at("params", "_meta", "dev.pellucid/provenance") == nil {
		t.Errorf("elicitation %v", m)
	}
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request(`"c"`, "ping", "")
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"reason":"x","requestId":"c"}}`)
	if got := r.server.next(); !strings.Contains(got, `{"reason":"x","requestId":`+up+`}`) {
		t.Errorf("cancellation %s", got)
	}
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
	r.client.none()
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}`)
	r.server.none()

	r.server.send(`{"jsonrpc":"2.0","id":"s","method":"ping"}`)
	down := string(parse(t, r.client.next())["id"])
	r.server.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}`)
	if m := parse(t, r.client.next()); string(m.at("params", "requestId")) != down {
		t.Errorf("cancellation %v, want id %s", m, down)
	}
}

func TestSubscriptionID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request(`"sub"`, "subscriptions/listen", `{}`)
	meta := `{"io.modelcontextprotocol/subscriptionId":` + up + `}`
	r.server.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":` + meta + `}}`)
	if m := parse(t, r.client.next()); m.text("params", "_meta", "io.modelcontextprotocol/subscriptionId") != "sub" {
		t.Errorf("notification %s", m["params"])
	}
	m := r.result(up, `{"resultType":"complete","_meta":`+meta+`}`)
	if m.text("result", "_meta", "io.modelcontextprotocol/subscriptionId") != "sub" {
		t.Errorf("result %s", m["result"])
	}
}

func TestServerGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.request("1", "ping", "")
	r.server.w.Close()
	if m := parse(t, r.client.next()); m.text("error", "message") != errGone.text {
		t.Errorf("answer %v", m)
	}
	if err := r.end(); !errors.Is(err, ErrUpstreamGone) {
		t.Errorf("Run: %v", err)
	}
}

func TestClientGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request("1", "ping", "")
	r.client.w.Close()
	if m := r.result(up, `{}`); m["result"] == nil {
		t.Errorf("the last answer was lost: %v", m)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

func TestViolations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, line := range []string{
		"Server listening on stdio \x1b[31m",
		`{"jsonrpc":"2.0","method":"notifications/message","method":"x"}`,
		`[]`, `null`, `{`, strings.Repeat("[", 1000), "\x00", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`,
	} {
		r.server.send(line)
	}
	r.client.none()
	up := r.request("1", "ping", "")
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{"a":1,"a":2}}`)
	if m := parse(t, r.client.next()); m.text("error", "message") != errBadAnswer.text {
		t.Errorf("answer %v", m)
	}
	if strings.ContainsAny(r.log.String(), "\x1b\x00") {
		t.Error("log holds raw bytes")
	}
	r.client.send(`{"jsonrpc":"2.0","id":"k","method":"ping","x":1}`)
	if m := parse(t, r.client.next()); m.str("id") != "k" || m["error"] == nil {
		t.Errorf("client's violation: %v", m)
	}
	r.client.send(`{"jsonrpc":"2.0",`)
	if m := parse(t, r.client.next()); string(m["id"]) != "null" || string(m.at("error", "code")) != "-32700" {
		t.Errorf("client's violation: %v", m)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.Timeout = 100 * time.Millisecond })
	up := r.request("1", "ping", "")
	if m := parse(t, r.client.next()); m.text("error", "message") != errTimeout.text {
		t.Errorf("answer %v", m)
	}
	if m := parse(t, r.server.next()); m.str("method") != "notifications/cancelled" || string(m.at("params", "requestId")) != up {
		t.Errorf("cancellation %v", m)
	}
	r.server.send(`{"jsonrpc":"2.0","id":` + up + `,"result":{}}`)
	r.client.none()
}

func TestProgressResetsTimeout(t *testing.T) { synctest.Test(t, progressResetsTimeout) }

func progressResetsTimeout(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Timeout = 400 * time.Millisecond })
	up := r.request("1", "ping", `{"_meta":{"progressToken":"p"}}`)
	for range 6 {
		time.Sleep(100 * time.Millisecond)
		r.server.send(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`)
		if m := parse(t, r.client.next()); m.str("method") != "notifications/progress" {
			t.Fatalf("got %v", m)
		}
	}
	if m := r.result(up, `{}`); m["result"] == nil {
		t.Errorf("answer %v", m)
	}
}

func TestInFlightLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.inFlight = 2 })
	r.request("1", "ping", "")
	r.request("2", "ping", "")
	r.client.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if m := parse(t, r.client.next()); m.text("error", "message") != errBusy.text {
		t.Errorf("answer %v", m)
	}
	for i := range 3 {
		r.server.send(`{"jsonrpc":"2.0","id":` + string(rune('1'+i)) + `,"method":"ping"}`)
	}
	r.client.next()
	r.client.next()
	if m := parse(t, r.server.next()); m.text("error", "message") != errBusy.text {
		t.Errorf("answer to the server %v", m)
	}
}

// TestDefaultProfile: whatever a server's tools do, its text is scrubbed as Faithful, which
// keeps digits, fractions and the joiners of languages. Nothing is listed to find that out.
func TestDefaultProfile(t *testing.T) {
	t.Parallel()
	const text = "10\u2076 Hz, 3\u00bd, \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645, \U0001f468\u200d\U0001f469\u200d\U0001f467"
	r := newRig(t)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	r.result(r.awaits("tools/list"), `{"tools":[{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
	r.client.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"f:x"}}`)
	m := r.result(r.awaits("resources/read"), `{"contents":[{"uri":"f:x","text":"`+text+`"}]}`)
	if got := m.text("result", "contents", 0, "text"); got != text {
		t.Errorf("%+q", got)
	}
	for _, d := range r.sink.all() {
		if d.Profile != "faithful" {
			t.Errorf("decision %+v", d)
		}
	}

	first := newRig(t)
	first.client.send(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"f:x"}}`)
	if m := parse(t, first.server.next()); m.str("method") != "resources/read" {
		t.Errorf("server heard %v", m)
	}
}

func TestModernListingCarriesContext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	meta := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":3}`
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":` + meta + `}}`)
	m := parse(t, r.server.next())
	got := string(m.at("params", "_meta"))
	want := `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	if m.str("method") != "tools/list" || got != want {
		t.Errorf("listing %v", m)
	}
}

func TestServerThatWillNotList(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`)
	m := parse(t, r.server.next())
	r.server.send(`{"jsonrpc":"2.0","id":` + string(m["id"]) + `,"error":{"code":-32601,"message":"no"}}`)
	up := r.awaits("tools/call")
	if m := r.result(up, `{"content":[]}`); m["result"] == nil {
		t.Errorf("answer %v", m)
	}
}

func TestChangedListIsAskedForAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request("1", "tools/call", `{"name":"new"}`)
	m := r.result(up, `{"content":[{"type":"text","text":"x"}]}`)
	if origin, _, _ := r.key.Open(m.text("result", "content", 0, "text"), frame.Origin{}); origin.Tool != "other" {
		t.Errorf("origin %v", origin)
	}
	r.server.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	r.client.next()
	r.client.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"new"}}`)
	list := parse(t, r.server.next())
	if list.str("method") != "tools/list" {
		t.Fatalf("server heard %v", list)
	}
	r.server.send(`{"jsonrpc":"2.0","id":` + string(list["id"]) + `,"result":{"tools":[{"name":"new","inputSchema":{"type":"object"}}]}}`)
	m = r.result(r.awaits("tools/call"), `{"content":[{"type":"text","text":"x"}]}`)
	if origin, _, err := r.key.Open(m.text("result", "content", 0, "text"), frame.Origin{}); err != nil || origin.Tool != "new" {
		t.Errorf("origin %v %v", origin, err)
	}
}

func TestCancelledWhileHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.client.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read"}}`)
	list := parse(t, r.server.next())
	r.client.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	r.client.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	r.awaits("ping") // so the cancellation has been seen
	r.server.send(`{"jsonrpc":"2.0","id":` + string(list["id"]) + `,"result":` + testTools + `}`)
	r.server.none()
}

func TestNoToolsNoListing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	up := r.request("1", "initialize", "{}")
	r.result(up, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{}},"serverInfo":{"name":"s","version":"1"}}`)
	r.client.send(`{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x:y"}}`)
	if m := parse(t, r.server.next()); m.str("method") != "resources/read" {
		t.Errorf("server heard %v", m)
	}
}

func TestBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.server.send(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"a"}}]`)
	r.client.none()
	up := r.request("1", "initialize", "{}")
	r.result(up, `{"protocolVersion":"2025-03-26","capabilities":{}}`)
	r.client.send(`[{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`)
	a, b := r.awaits("ping"), r.awaits("ping")
	r.server.send(`[{"jsonrpc":"2.0","id":` + b + `,"result":{}},{"jsonrpc":"2.0","id":` + a + `,"result":{"x":"\u200b"}}]`)
	if m := parse(t, r.client.next()); string(m["id"]) != "3" {
		t.Errorf("answer %v", m)
	}
	if m := parse(t, r.client.next()); string(m["id"]) != "2" || m.text("result", "x") != "" {
		t.Errorf("answer %v", m)
	}
}
