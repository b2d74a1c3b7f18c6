// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestManyAtOnce: every answer goes to the question it answers.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	s := start(t, in.wrap("size", helperServer(t, "size", m)...))
	s.initializeWith(`{}`)
	answers := make([]<-chan message, 500)
	for i := range answers {
		_, answers[i] = s.request("tools/call", sizeArgs(i*7, "x"))
	}
	for i, answer := range answers {
		got, err := s.wait(answer)
		if err != nil || got.Error != nil {
			t.Fatalf("call %d: %+q, %v", i, got.Error, err)
		}
		var r mcp.CallToolResult
		if err := json.Unmarshal(got.Result, &r); err != nil {
			t.Fatal(err)
		}
		if body := in.opened(t, r.Content[0].(*mcp.TextContent).Text, "size"); body != strings.Repeat("x", i*7) {
			t.Errorf("call %d: %d bytes, want %d", i, len(body), i*7)
		}
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	gone(t, m)
}

// TestIDs: an id comes back as it was sent.
func TestIDs(t *testing.T) {
	t.Parallel()
	s := hostile(t, "size")
	for _, id := range []string{`"a"`, `"1"`, `0`, `-1`, `9007199254740991`, `""`, `"` + strings.Repeat("x", 200) + `"`, `"\"<>&"`} {
		c := make(chan message, 1)
		s.mu.Lock()
		s.waiting[id] = c
		s.put(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":` + behave + `}`)
		s.mu.Unlock()
		if got, err := s.wait(c); err != nil || got.Error != nil {
			t.Errorf("id %s: %+q, %v", id, got.Error, err)
		}
	}
}

// TestNewKey: what one installation fenced, another cannot open.
func TestNewKey(t *testing.T) {
	t.Parallel()
	var texts []string
	installs := []*install{newInstall(t), newInstall(t)}
	for _, in := range installs {
		m := mark()
		s := start(t, in.wrap("size", helperServer(t, "size", m)...))
		s.initializeWith(`{}`)
		var r mcp.CallToolResult
		if err := json.Unmarshal(s.tool("size", `{"n":10}`), &r); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, r.Content[0].(*mcp.TextContent).Text)
		s.exit()
		gone(t, m)
	}
	for i, in := range installs {
		in.opened(t, texts[i], "size")
		if _, _, err := in.key(t).Open(texts[1-i], frame.Origin{}); err == nil {
			t.Error("installation " + strconv.Itoa(i) + " opened a fence of the other")
		}
	}
}
