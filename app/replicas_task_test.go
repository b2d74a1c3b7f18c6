// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// taskServer is a modern server whose tools answer with a task. The result holds hidden characters, and does not stand up to
// the schema of the tool sum.
func taskServer(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name, TaskID string }
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		const times = `"createdAt":"2026-11-01T10:00:00Z","lastUpdatedAt":"2026-11-01T10:00:00Z","ttlMs":60000`
		result := ""
		switch m.Method {
		case "tools/call":
			result = `{"resultType":"task","taskId":"task-of-` + m.Params.Name + `","status":"working",` + times + `}`
		case "server/discover":
			result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],` +
				`"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
		case "tools/list":
			result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"read","inputSchema":{"type":"object"}},` +
				`{"name":"sum","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}},` +
				`{"name":"look","inputSchema":{"type":"object"}}]}`
		case "tasks/get":
			result = `{"resultType":"complete","taskId":"` + m.Params.TaskID + `","status":"completed",` + times +
				`,"result":{"resultType":"complete","content":[{"type":"text","text":"be\udb40\udc41fore"}],"structuredContent":{"n":"no number"}}}`
		}
		answer := `"error":{"code":-32601,"message":"no"}`
		if result != "" {
			answer = `"result":` + result
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,`+answer+`}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// withTasks are the capabilities of a client that knows tasks.
const withTasks = `"extensions":{"io.modelcontextprotocol/tasks":{}}`

// TestReplicasTask: what the rule of a tool wants applies to the result of its task, also where another replica is asked for it.
func TestReplicasTask(t *testing.T) {
	database := postgres.Database(t)
	config := "evidence: {mode: \"off\"}\nservers: {one: {url: " + taskServer(t) + ", validate: audit, tools: {read: {hold: [hidden-tag]}, sum: {validate: enforce}}}}\n"
	a, b := startReplica(t, database, config, sharedKey), startReplica(t, database, config, sharedKey)
	for tool, want := range map[string]string{"read": `"code":7514`, "sum": `"code":7501`, "look": "before"} {
		id := "task-of-" + tool
		if got := askModern(t, a, "tools/call", tool, `"name":"`+tool+`","arguments":{},`, withTasks); !strings.Contains(got, id) {
			t.Fatalf("%s: no task: %s\n%s", tool, got, a.Log)
		}
		for name, g := range map[string]*apptest.Gateway{"the same replica": a, "another replica": b} {
			if got := askModern(t, g, "tasks/get", id, `"taskId":"`+id+`",`, withTasks); !strings.Contains(got, want) || (want != "before") == strings.Contains(got, "before") {
				t.Errorf("%s, %s: %s", tool, name, got)
			}
		}
	}
	// A task that no tool is known to have created is treated as the strictest rule wants it.
	if got := askModern(t, b, "tasks/get", "unknown", `"taskId":"unknown",`, withTasks); !strings.Contains(got, `"code":7514`) {
		t.Errorf("unknown: %s\n%s", got, b.Log)
	}
}
