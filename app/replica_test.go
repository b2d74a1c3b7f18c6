// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/local"
)

// statefulServer is a modern server whose one tool answers when the client comes back
// with the state that it was given.
func statefulServer(t *testing.T) string {
	t.Helper()
	const given = `own "state"`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ RequestState string }
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := map[string]any{"resultType": "complete"}
		answer := map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result}
		switch {
		case m.Method == "server/discover":
			result["supportedVersions"], result["capabilities"] = []string{"2026-07-28"}, map[string]any{"tools": map[string]any{}}
			result["ttlMs"], result["cacheScope"] = 0, "private"
		case m.Method == "tools/list":
			result["tools"] = []any{map[string]any{"name": "ask", "inputSchema": map[string]any{"type": "object"}}}
			result["ttlMs"], result["cacheScope"] = 0, "private"
		case m.Method != "tools/call":
			delete(answer, "result")
			answer["error"] = map[string]any{"code": -32601, "message": "no"}
		case m.Params.RequestState == given:
			result["content"] = []any{map[string]any{"type": "text", "text": "it came back"}}
		case m.Params.RequestState != "":
			result["content"] = []any{map[string]any{"type": "text", "text": "not mine"}}
		default:
			result["resultType"], result["requestState"] = "input_required", given
			result["inputRequests"] = map[string]any{"who": map[string]any{"method": "elicitation/create", "params": map[string]any{
				"mode": "form", "message": "who?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// callAsk calls the tool of an statefulServer, and returns the result. more are further members of the request, each
// with a comma behind it.
func callAsk(t *testing.T, g *apptest.Gateway, more string) string {
	t.Helper()
	return askModern(t, g, "tools/call", "ask", `"name":"ask","arguments":{},`+more, `"elicitation":{"form":{}}`)
}

// askModern sends a modern request of a client with the capabilities, and returns the answer. The members of params have a
// comma behind each.
func askModern(t *testing.T, g *apptest.Gateway, method, name, params, capabilities string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{` + capabilities + `}}}}`
	req, err := http.NewRequest(http.MethodPost, g.Base+"/mcp/one", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name} {
		req.Header.Set(header, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSpace(answer))
}

// TestUpReplicas: what one replica has begun another finishes, where both have the same
// key, and where they do not it is refused.
func TestUpReplicas(t *testing.T) {
	server := statefulServer(t)
	config := "version: 1\nservers:\n  one: {url: " + server + "}\n"
	for _, tt := range []struct {
		name, first, second, want string
	}{
		{"one key", strings.Repeat("0a", 32), strings.Repeat("0a", 32), "it came back"},
		{"two keys", strings.Repeat("0a", 32), strings.Repeat("0b", 32), "error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("REPLICA_KEY", tt.first)
			t.Setenv(local.KeyVar, "env:REPLICA_KEY")
			a := apptest.Start(t, config, nil)
			t.Setenv("REPLICA_KEY", tt.second)
			b := apptest.Start(t, config, nil)
			var asked struct {
				Result struct{ ResultType, RequestState string }
			}
			if first := callAsk(t, a, ""); json.Unmarshal([]byte(first), &asked) != nil || asked.Result.ResultType != "input_required" {
				t.Fatalf("not asked: %s\n%s", first, a.Log)
			}
			if strings.Contains(asked.Result.RequestState, "own") {
				t.Errorf("the server's state went out as it is: %q", asked.Result.RequestState)
			}
			back := fmt.Sprintf(`"requestState":%q,"inputResponses":{"who":{"action":"accept","content":{}}},`, asked.Result.RequestState)
			if got := callAsk(t, b, back); !strings.Contains(got, tt.want) || strings.Contains(got, "not mine") {
				t.Errorf("the other replica says %s", got)
			}
		})
	}
}
