// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// legacyPost posts a message of a legacy session, "" before it has one.
func legacyPost(t *testing.T, base, session, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	resp, err := unkept.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// beginLegacy begins a legacy session whose client can be asked.
func beginLegacy(t *testing.T, base string) (session string) {
	t.Helper()
	resp := legacyPost(t, base, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	if session = resp.Header.Get("Mcp-Session-Id"); session == "" {
		t.Fatalf("no session: %d", resp.StatusCode)
	}
	legacyPost(t, base, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Body.Close()
	return session
}

// stream is the answer to a call, as it arrives.
type stream struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

// message returns the next message of the stream.
func (s *stream) message(t *testing.T) (m struct {
	ID            json.RawMessage
	Method        string
	Result, Error json.RawMessage
}) {
	t.Helper()
	for s.lines.Scan() {
		data, ok := strings.CutPrefix(s.lines.Text(), "data:")
		if ok && strings.TrimSpace(data) != "" && json.Unmarshal([]byte(data), &m) == nil && !strings.HasPrefix(m.Method, "notifications/") {
			return m
		}
	}
	t.Fatal("the stream has ended")
	return m
}

func callRaw(t *testing.T, base, session string, id int) *stream {
	t.Helper()
	resp := legacyPost(t, base, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{}}}`, id))
	t.Cleanup(func() { resp.Body.Close() })
	return &stream{resp.Body, bufio.NewScanner(resp.Body)}
}

// TestReplicasLateAnswer: a person answers a question of a server after the session has come back elsewhere: the
// answer is not taken for that to another question, which the server has asked meanwhile.
func TestReplicasLateAnswer(t *testing.T) {
	database := postgres.Database(t)
	config := "http: {drain: 1s}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + rawServer(t) + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	b.Eventually("two replicas", func() bool { return metric(t, b, "pellucid_replicas") == "2" })
	session := beginLegacy(t, a.Base+"/mcp/one")
	before := callRaw(t, a.Base+"/mcp/one", session, 1).message(t)
	if before.Method != "elicitation/create" {
		t.Fatalf("not asked: %+v", before)
	}
	a.Stop()
	err := <-a.Done
	a.Done <- err
	again := callRaw(t, b.Base+"/mcp/one", session, 2)
	now := again.message(t)
	if now.Method != "elicitation/create" || string(now.ID) == string(before.ID) {
		t.Fatalf("the server asks by %s %s, and the question before was %s", now.Method, now.ID, before.ID)
	}
	answer := func(id json.RawMessage, text string) {
		t.Helper()
		resp := legacyPost(t, b.Base+"/mcp/one", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"text":%q}}}`, id, text))
		if resp.Body.Close(); resp.StatusCode != http.StatusAccepted {
			t.Errorf("an answer: %d", resp.StatusCode)
		}
	}
	answer(before.ID, "an answer to the question before, which is longer")
	time.Sleep(200 * time.Millisecond)
	answer(now.ID, "yes")
	if got := again.message(t); string(got.ID) != "2" || !strings.Contains(string(got.Result), fmt.Sprintf("asked: %d", len(`{"action":"accept","content":{"text":"yes"}}`))) {
		t.Errorf("the server has heard %s %s", got.Result, got.Error)
	}
}

// TestReplicasDrainQuestion: while a replica that was asked to end still answers a call, the client answers a
// question of the server at another replica: the call goes on. Another session of the same client moves meanwhile.
func TestReplicasDrainQuestion(t *testing.T) {
	database := postgres.Database(t)
	config := "http: {drain: 1m}\nevidence: {mode: \"off\"}\nservers: {one: {url: " + rawServer(t) + "}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	b.Eventually("two replicas", func() bool { return metric(t, b, "pellucid_replicas") == "2" })
	session, quiet := beginLegacy(t, a.Base+"/mcp/one"), beginLegacy(t, a.Base+"/mcp/one")
	call := callRaw(t, a.Base+"/mcp/one", session, 1)
	question := call.message(t)
	a.Stop()
	b.Eventually("the session without a call is at the other replica", func() bool {
		return strings.Contains(sayRaw(t, b, quiet, "tools/call", echoHello), "hello") && metric(t, b, `pellucid_forwards_total{outcome="claimed"}`) == "1"
	})
	select {
	case err := <-a.Done:
		t.Fatalf("it has ended while a call was under way: %v", err)
	default:
	}
	resp := legacyPost(t, b.Base+"/mcp/one", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{}}}`, question.ID))
	if resp.Body.Close(); resp.StatusCode != http.StatusAccepted {
		t.Errorf("the answer: %d", resp.StatusCode)
	}
	if got := call.message(t); string(got.ID) != "1" || !strings.Contains(string(got.Result), "asked: ") {
		t.Errorf("the call: %s %s", got.Result, got.Error)
	}
	err := <-a.Done
	if a.Done <- err; err != nil {
		t.Error(err)
	}
	if got := sayRaw(t, b, session, "tools/call", echoHello); !strings.Contains(got, "hello") {
		t.Errorf("afterwards: %s", got)
	}
}
