// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestFrontRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *FrontOptions) { o.MaxBody = 1 << 16 })
	_, id := b.begin("2025-11-25", "X-Principal", "ada")
	mine := []string{"X-Principal", "ada", "Mcp-Session-Id", id}
	modern := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list"}
	for _, tt := range []struct {
		name, method, body string
		headers            []string
		status, code       int
	}{
		{"no content type", "POST", listBody, append(mine, "Content-Type", ""), 415, -32600},
		{"form", "POST", listBody, append(mine, "Content-Type", "text/plain"), 415, -32600},
		{"coding", "POST", listBody, append(mine, "Content-Encoding", "gzip"), 415, -32600},
		{"no accept", "POST", listBody, append(mine, "Accept", ""), 406, -32600},
		{"half an accept", "POST", listBody, append(mine, "Accept", "application/json"), 406, -32600},
		{"accept of GET", "GET", "", append(mine, "Accept", "application/json"), 406, -32600},
		{"empty", "POST", "", mine, 400, -32700},
		{"no JSON", "POST", "{", mine, 400, -32700},
		{"duplicate member", "POST", `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, mine, 400, -32700},
		{"trailing data", "POST", listBody + "{}", mine, 400, -32700},
		{"bad UTF-8", "POST", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", mine, 400, -32700},
		{"other JSON-RPC", "POST", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, mine, 400, -32600},
		{"null id", "POST", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, mine, 400, -32600},
		{"too long", "POST", strings.Repeat(" ", 1<<17), mine, 413, -32600},
		{"batch", "POST", "[" + listBody + "]", mine, 400, -32600},
		{"modern batch", "POST", "[" + listBody + "]", modern, 400, -32600},
		{"method", "PUT", "", mine, 405, -32600},
		{"modern GET", "GET", "", modern, 405, -32600},
		{"modern DELETE", "DELETE", "", modern, 405, -32600},
		{"no session", "POST", listBody, nil, 400, 7407},
		{"no session to listen to", "GET", "", nil, 400, 7407},
		{"no session to end", "DELETE", "", nil, 400, 7407},
		{"unknown session", "POST", listBody, []string{"Mcp-Session-Id", "ABC"}, 404, 7407},
		{"another's session", "POST", listBody, []string{"Mcp-Session-Id", id}, 404, 7407},
		{"another's session to listen to", "GET", "", []string{"Mcp-Session-Id", id, "X-Principal", "bob"}, 404, 7407},
		{"another's session to end", "DELETE", "", []string{"Mcp-Session-Id", id, "X-Principal", "bob"}, 404, 7407},
		{"initialize again", "POST", initializeBody, mine, 400, -32600},
		{"unknown version", "POST", listBody, append(mine, "Mcp-Protocol-Version", "2020-01-01"), 400, -32022},
		{"foreign event", "GET", "", append(mine, "Last-Event-ID", "9-9"), 400, -32600},
		{"future event", "GET", "", append(mine, "Last-Event-ID", "0-9"), 400, -32600},
		{"no event", "GET", "", append(mine, "Last-Event-ID", "0-0x"), 400, -32600},
		{"modern without header", "POST", modernBody("tools/list", ""), nil, 400, -32020},
		{"modern with a legacy header", "POST", modernBody("tools/list", ""), append(mine, "Mcp-Protocol-Version", "2025-11-25"), 400, -32020},
		{"modern without _meta", "POST", listBody, modern, 400, -32602},
		{"future version", "POST", strings.ReplaceAll(modernBody("tools/list", ""), "2026-07-28", "2030-01-01"), append(modern, "Mcp-Protocol-Version", "2030-01-01"), 400, -32022},
		{"no version", "POST", strings.ReplaceAll(modernBody("tools/list", ""), "2026-07-28", "v9"), append(modern, "Mcp-Protocol-Version", "v9"), 400, -32022},
		{"no Mcp-Method", "POST", modernBody("tools/list", ""), modern[:2], 400, -32020},
		{"other Mcp-Method", "POST", modernBody("tools/call", ""), modern, 400, -32020},
		{"broken Mcp-Name", "POST", modernBody("tools/list", ""), append(modern, "Mcp-Name", "=?base64?!?="), 400, -32020},
		{"broken Mcp-Param", "POST", modernBody("tools/list", ""), append(modern, "Mcp-Param-A", "=?base64?!?="), 400, -32020},
		{"modern response", "POST", `{"jsonrpc":"2.0","id":7,"result":{}}`, append(modern, "Mcp-Method", ""), 400, -32600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := b.do(t.Context(), tt.method, tt.body, tt.headers...)
			body := all(t, resp)
			var answer struct {
				Error struct {
					Code    int
					Message string
				}
			}
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%d %q", resp.StatusCode, body)
			}
			if resp.StatusCode != tt.status || answer.Error.Code != tt.code || !strings.HasPrefix(answer.Error.Message, "pellucid: ") {
				t.Errorf("%d %s, want %d %d", resp.StatusCode, body, tt.status, tt.code)
			}
		})
	}
	if n := b.f.Sessions(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
}

// TestFrontRepeatedHeaders: a header that is there twice means nothing.
func TestFrontRepeatedHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-X"} {
		req, _ := http.NewRequest(http.MethodPost, b.http.URL, strings.NewReader(modernBody("tools/list", "")))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
		if name == "Mcp-Session-Id" {
			req.Body = io.NopCloser(strings.NewReader(listBody))
			req.ContentLength = int64(len(listBody))
			delete(req.Header, "Mcp-Protocol-Version")
		}
		if len(req.Header[name]) == 0 {
			req.Header[name] = []string{"a"}
		}
		req.Header[name] = append(req.Header[name], req.Header[name][0])
		resp, err := b.http.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if body := all(t, resp); resp.StatusCode != 400 || !strings.Contains(body, "-32020") {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
	}
}

func TestFrontLegacy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	if v.s.Era != Legacy {
		t.Error("era")
	}
	session := []string{"Mcp-Session-Id", id, "Mcp-Protocol-Version", "2025-11-25"}
	if resp := b.postTo(v, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, session, func(m *Message) {
		if m.Method != "notifications/initialized" {
			t.Errorf("read %+v", m)
		}
	}); resp.StatusCode != 202 || all(t, resp) != "" {
		t.Errorf("notification: %d", resp.StatusCode)
	}

	// An answer alone is a stream of one event without an id, or one body.
	resp := b.postTo(v, listBody, session, func(m *Message) { v.result(m, `{"tools":[]}`) })
	if body := all(t, resp); resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" ||
		body != "event: message\nretry: 1000\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"tools\":[]}}\n\n" {
		t.Errorf("answer: %q", body)
	}
	resp = b.postTo(v, listBody, session, func(m *Message) {
		answer := NewResult(m.ID, []byte("{\n}"))
		answer.Whole = true
		v.write(answer)
	})
	if body := all(t, resp); resp.Header.Get("Content-Type") != "application/json" || body != "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\n}}" {
		t.Errorf("answer: %q", body)
	}

	// What belongs to a request comes before its answer, on its stream; line ends do not cut it.
	resp = b.postTo(v, listBody, session, func(m *Message) {
		v.notify(m.ID, "one")
		ask := NewRequest(IntID(1), "roots/list", []byte("{\r\n}"))
		ask.Related = m.ID
		v.write(ask)
		v.notify(ID{}, "elsewhere")
		v.result(m, "{}")
	})
	got := events(t, resp.Body, -1)
	want := []string{`4-1 {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"one"}}`,
		`4-2 {"jsonrpc":"2.0","id":1,"method":"roots/list","params":{  }}`, `4-3 {"jsonrpc":"2.0","id":7,"result":{}}`}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}

	// The rest waits for the client to listen.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	listen := b.do(ctx, http.MethodGet, "", session...)
	if got := events(t, listen.Body, 2); len(got) != 2 || got[0] != "0-0" || !strings.HasPrefix(got[1], "0-1 ") || !strings.Contains(got[1], "elsewhere") {
		t.Errorf("heard %q", got)
	}
	listen.Body.Close()

	if resp := b.do(t.Context(), http.MethodDelete, "", session...); resp.StatusCode != 204 {
		t.Errorf("DELETE: %d", resp.StatusCode)
	}
	if resp := b.post(listBody, session...); resp.StatusCode != 404 {
		t.Errorf("after DELETE: %d", resp.StatusCode)
	}
	if _, err := v.conn.Read(t.Context()); err != io.EOF {
		t.Errorf("Read after DELETE: %v", err)
	}
}

// TestFrontModern: requests with one id from several clients do not meet.
func TestFrontModern(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "=?base64?w6k=?=", "Mcp-Param-Zone", "eu"}
	bodies := make(chan string, 8)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			resp := b.post(modernBody("tools/call", fmt.Sprintf(`"n":%d,`, i)), headers...)
			body := all(t, resp)
			if !strings.Contains(body, fmt.Sprintf(`"n":%d`, i)) || !strings.Contains(body, `"id":7`) || resp.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%d: %s", i, body)
			}
			bodies <- body
		})
	}
	v := b.next()
	if v.s.Era != Modern {
		t.Error("era")
	}
	var messages []*Message
	for range 8 {
		m := v.read()
		if m.Claim == nil || m.Claim.Name != "\u00e9" || m.Claim.Params["zone"] != "eu" || m.Alias != IntID(7) {
			t.Errorf("claim %+v alias %v", m.Claim, m.Alias)
		}
		messages = append(messages, m)
	}
	for i := range messages { // in another order
		m := messages[len(messages)-1-i]
		if i%2 == 0 {
			v.notify(m.ID, "progress")
		}
		v.result(m, `{"n":`+string(m.Params.Get("n").Raw())+`}`)
	}
	wg.Wait()
	close(bodies)
	progressed := 0
	for body := range bodies {
		progressed += strings.Count(body, "progress")
	}
	if progressed != 4 {
		t.Errorf("%d notifications, want 4", progressed)
	}

	// A client cannot cancel what may be another's, and is not asked anything.
	if resp := b.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "notifications/cancelled"); resp.StatusCode != 202 {
		t.Errorf("notification: %d", resp.StatusCode)
	}
	go v.write(NewRequest(IntID(4), "roots/list", nil)) // the answer comes in the midst of it
	if m := v.read(); m.Kind != ErrorResponse || m.ID != IntID(4) {
		t.Errorf("answer to a request: %+v", m)
	}
	if b.f.Sessions() != 1 {
		t.Errorf("%d sessions", b.f.Sessions())
	}
}

func TestFrontModernStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	go func() {
		v := b.next()
		for range 5 {
			m := v.read()
			v.write(NewError(m.ID, []byte(`{"code":`+string(m.Params.Get("code").Raw())+`,"message":"m"}`)))
		}
	}()
	for code, status := range map[string]int{"-32601": 404, "-32602": 400, "-32020": 400, "-32603": 200, "7": 200} {
		resp := b.post(modernBody("x/y", `"code":`+code+`,`), "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "x/y")
		if body := all(t, resp); resp.StatusCode != status || !strings.Contains(body, `"id":7`) {
			t.Errorf("%s: %d %s, want %d", code, resp.StatusCode, body, status)
		}
	}
}

func TestFrontBatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-03-26")
	const batch = `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":2,"method":"c"}]`
	got := make(chan string, 1)
	go func() { got <- all(t, b.post(batch, "Mcp-Session-Id", id)) }()
	a, n, c := v.read(), v.read(), v.read()
	if a.Method+n.Method+c.Method != "abc" {
		t.Errorf("%s %s %s", a.Method, n.Method, c.Method)
	}
	v.result(c, "{}")
	v.result(a, "{}")
	if body := <-got; strings.Count(body, "data:") != 2 || !strings.Contains(body, `"id":1`) || !strings.Contains(body, `"id":2`) {
		t.Errorf("%q", body)
	}
	for _, bad := range []string{`[]`, `[1]`, `[` + initializeBody + `]`, `[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"a"}]`} {
		if resp := b.post(bad, "Mcp-Session-Id", id); resp.StatusCode != 400 {
			t.Errorf("%s: %d", bad, resp.StatusCode)
		}
	}
	if resp := b.postTo(v, `[{"jsonrpc":"2.0","method":"b"}]`, []string{"Mcp-Session-Id", id}, func(*Message) {}); resp.StatusCode != 202 {
		t.Errorf("notifications: %d", resp.StatusCode)
	}
}

func TestFrontDuplicateID(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, id := b.begin("2025-11-25")
	got := make(chan *http.Response, 1)
	go func() { got <- b.post(listBody, "Mcp-Session-Id", id) }()
	m := v.read()
	if resp := b.post(listBody, "Mcp-Session-Id", id); resp.StatusCode != 400 {
		t.Errorf("%d %s", resp.StatusCode, all(t, resp))
	}
	v.result(m, `{"a":1}`)
	if body := all(t, <-got); !strings.Contains(body, `"a":1`) {
		t.Errorf("%s", body)
	}
}

// TestCaller: each message has the claims of the token with which it came, whatever those of its session's others.
func TestCaller(t *testing.T) {
	b := newBench(t, func(o *FrontOptions) {
		o.Claims = func(r *http.Request) []byte { return []byte(r.Header.Get("X-Claims")) }
	})
	v, id := b.begin("2025-03-26", "X-Claims", `{"n":0}`)
	for claims, body := range map[string]string{`{"n":1}`: listBody, `{"n":2}`: `[` + listBody + `]`, "": listBody} {
		got := ""
		all(t, b.postTo(v, body, []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-03-26", "X-Claims", claims}, func(m *Message) {
			got = string(m.Caller)
			v.result(m, `{"tools":[]}`)
		}))
		if got != claims {
			t.Errorf("%s has %q", body, got)
		}
	}
}
