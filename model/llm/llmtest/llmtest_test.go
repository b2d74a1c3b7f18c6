// SPDX-License-Identifier: Apache-2.0

package llmtest_test

import (
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pellucid-mcp/pellucid/model/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRefuses: the fake refuses what the services refuse, so that a test against it
// can fail.
func TestRefuses(t *testing.T) {
	s, err := llmtest.NewServer(llmtest.Script(llmtest.Reply{Text: "OK"}), "sk-test")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer http.DefaultClient.CloseIdleConnections()
	const (
		chat     = "/chat/completions"
		call     = `{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result   = `{"role":"tool","tool_call_id":"1","content":"x"}`
		question = `{"role":"user","content":"x"}`
	)
	for _, tt := range []struct {
		name, path, key, body string
		want                  int
	}{
		{"another path", "/embeddings", "sk-test", `{}`, 404},
		{"no key", chat, "", `{}`, 401},
		{"another key", chat, "sk-other", `{}`, 401},
		{"no JSON", chat, "sk-test", `{`, 400},
		{"a member twice", chat, "sk-test", `{"model":"m","model":"m"}`, 400},
		{"no model", chat, "sk-test", `{"messages":[` + question + `]}`, 400},
		{"no message", chat, "sk-test", `{"model":"m","messages":[]}`, 400},
		{"orphaned result", chat, "sk-test", `{"model":"m","messages":[` + question + "," + result + `]}`, 400},
		{"call without a result", chat, "sk-test", `{"model":"m","messages":[` + question + "," + call + "," + question + `]}`, 400},
		{"no bound", "/messages", "sk-test", `{"model":"m","messages":[` + question + `]}`, 400},
		{"well", chat, "sk-test", `{"model":"m","messages":[` + question + "," + call + "," + result + `]}`, 200},
		{"the script is over", chat, "sk-test", `{"model":"m","messages":[` + question + `]}`, 500},
	} {
		req, err := http.NewRequest(http.MethodPost, s.URL+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tt.key)
		req.Header.Set("X-Api-Key", tt.key)
		req.Header.Set("Anthropic-Version", "2023-06-01")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, resp.StatusCode, tt.want)
		}
	}
	if len(s.Asks()) != 2 || s.Requests() != 12 {
		t.Errorf("%d understood of %d", len(s.Asks()), s.Requests())
	}
}
