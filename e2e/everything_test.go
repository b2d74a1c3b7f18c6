// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The features of the older revisions are what is tested here.

package e2e

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A host is a client of the Go SDK that remembers what a server told it.
type host struct {
	*mcp.ClientSession
	mu       sync.Mutex
	progress []*mcp.ProgressNotificationParams
	logs     []string
	updated  []string
	asked    []string // elicitation messages
	sampled  int
}

func (h *host) note(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// until waits for what the host should have been told.
func (h *host) until(t *testing.T, what string, told func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var ok bool
		h.note(func() { ok = told() })
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come", what)
		}
	}
}

// connect starts cmd with a host at its end. The session must end well.
func connect(t *testing.T, cmd *exec.Cmd) *host {
	t.Helper()
	h := new(host)
	client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			h.note(func() { h.progress = append(h.progress, r.Params) })
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			b, _ := json.Marshal(r.Params.Data)
			h.note(func() { h.logs = append(h.logs, string(b)) })
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			h.note(func() { h.updated = append(h.updated, r.Params.URI) })
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			h.note(func() { h.asked = append(h.asked, r.Params.Message) })
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "check": true}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			h.note(func() { h.sampled++ })
			return &mcp.CreateMessageResult{Role: "assistant", Model: "e2e", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{ListChanged: true},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///e2e", Name: "e2e"})
	stderr := new(transcript)
	cmd.Stderr = stderr
	session, err := client.Connect(soon(t), &mcp.CommandTransport{Command: cmd, TerminateDuration: 15 * time.Second}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n%q", err, stderr.tail())
	}
	h.ClientSession = session
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if t.Failed() {
			t.Logf("stderr: %q", stderr.tail())
		}
	})
	return h
}

// call calls a tool and opens the fences of its text.
func (h *host) call(t *testing.T, in *install, server, tool string, args any) (text string, r *mcp.CallToolResult) {
	t.Helper()
	r, err := h.CallTool(soon(t), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	var first frame.Origin
	for _, c := range r.Content {
		if b, ok := c.(*mcp.TextContent); ok {
			text += in.openedFurther(t, b.Text, server, &first)
		}
	}
	return text, r
}

// TestEverything drives server-everything with the Go SDK as a host would.
func TestEverything(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	t.Cleanup(func() { gone(t, m) })
	cmd := in.command(append([]string{"--name", "everything", "--env", "E2E_GIVEN", "--env", "E2E_SET=there", "--"},
		npmServer(t, "everything", "stdio", m)...)...)
	cmd.Env = append(cmd.Env, "E2E_SECRET=secret-of-the-host", "E2E_GIVEN=here")
	h := connect(t, cmd)

	if s := h.InitializeResult().Instructions; !strings.Contains(s, frame.Instructions) || !strings.HasPrefix(s, "# Everything Server") {
		t.Errorf("instructions %+q", s)
	}
	tools := make(map[string]bool)
	for tool, err := range h.Tools(soon(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools[tool.Name] = true
	}
	for _, c := range []struct {
		tool string
		args any
		want string // in the text
	}{
		{"echo", map[string]any{"message": "hi"}, "Echo: hi"},
		{"get-annotated-message", map[string]any{"messageType": "error", "includeImage": true}, "Error"},
		{"get-env", nil, `"PATH"`},
		{"get-resource-links", map[string]any{"count": 3}, "resource links"},
		{"get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}, "resource"},
		{"get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 2}, "resource"},
		{"get-structured-content", map[string]any{"location": "Chicago"}, "temperature"},
		{"get-sum", map[string]any{"a": 2, "b": 3}, "5"},
		{"get-tiny-image", nil, "image"},
		{"get-roots-list", nil, "file:///e2e"},
		{"gzip-file-as-resource", map[string]any{"name": "x.gz", "data": "data:text/plain,hi", "outputType": "resourceLink"}, ""},
	} {
		if !tools[c.tool] {
			t.Errorf("%s is not in the list", c.tool)
			continue
		}
		text, r := h.call(t, in, "everything", c.tool, c.args)
		if r.IsError || !strings.Contains(text, c.want) {
			t.Errorf("%s: %+q, want %q in it", c.tool, text, c.want)
		}
	}

	t.Run("environment", func(t *testing.T) {
		text, _ := h.call(t, in, "everything", "get-env", nil)
		for name, want := range map[string]bool{
			"secret-of-the-host": false, "PELLUCID_STATE": false,
			`"E2E_GIVEN": "here"`: true, `"E2E_SET": "there"`: true,
		} {
			if strings.Contains(text, name) != want {
				t.Errorf("the server sees %s: %t, want %t", name, !want, want)
			}
		}
	})
	t.Run("progress", func(t *testing.T) {
		p := &mcp.CallToolParams{Name: "trigger-long-running-operation", Arguments: map[string]any{"duration": 0.5, "steps": 5}}
		p.SetProgressToken("a token, byte for byte")
		if _, err := h.CallTool(soon(t), p); err != nil {
			t.Fatal(err)
		}
		h.until(t, "progress", func() bool { return len(h.progress) == 5 })
		if p := h.progress[4]; p.ProgressToken != "a token, byte for byte" || p.Progress != 5 || p.Total != 5 {
			t.Errorf("progress %+v", p)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(soon(t), 200*time.Millisecond)
		defer cancel()
		if _, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "trigger-long-running-operation",
			Arguments: map[string]any{"duration": 10, "steps": 10}}); err == nil {
			t.Error("a cancelled call succeeded")
		}
		h.call(t, in, "everything", "echo", map[string]any{"message": "still here"})
	})
	t.Run("logging", func(t *testing.T) {
		if err := h.SetLoggingLevel(soon(t), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
		before := len(h.logs)
		h.call(t, in, "everything", "toggle-simulated-logging", nil)
		h.until(t, "a log message", func() bool { return len(h.logs) > before })
		h.call(t, in, "everything", "toggle-simulated-logging", nil)
	})
	t.Run("elicitation", func(t *testing.T) {
		text, _ := h.call(t, in, "everything", "trigger-elicitation-request", nil)
		if !strings.Contains(text, "Ada") {
			t.Errorf("%+q", text)
		}
		h.note(func() {
			if len(h.asked) != 1 || h.asked[0] != "Please provide inputs for the following fields:" {
				t.Errorf("asked %+q", h.asked)
			}
		})
	})
	t.Run("sampling is denied", func(t *testing.T) {
		r, err := h.CallTool(soon(t), &mcp.CallToolParams{Name: "trigger-sampling-request", Arguments: map[string]any{"prompt": "hi"}})
		if err == nil && !r.IsError {
			t.Error("the call succeeded")
		}
		h.note(func() {
			if h.sampled > 0 {
				t.Error("the host's model was asked")
			}
		})
	})
	t.Run("resources", func(t *testing.T) { everythingResources(t, h, in) })
	t.Run("prompts", func(t *testing.T) { everythingPrompts(t, h) })
}

func everythingResources(t *testing.T, h *host, in *install) {
	n := 0
	for _, err := range h.Resources(soon(t), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n < 7 {
		t.Errorf("%d resources", n)
	}
	for uri, want := range map[string]string{
		"demo://resource/dynamic/text/7": "Resource 7",
		"demo://resource/dynamic/blob/7": "",
	} {
		r, err := h.ReadResource(soon(t), &mcp.ReadResourceParams{URI: uri})
		if err != nil {
			t.Fatal(err)
		}
		if c := r.Contents[0]; c.URI != uri || !strings.HasPrefix(c.Text, want) || want == "" && len(c.Blob) == 0 {
			t.Errorf("%s: %+v", uri, c)
		}
	}
	uri := "demo://resource/dynamic/text/1"
	if err := h.Subscribe(soon(t), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	h.call(t, in, "everything", "toggle-subscriber-updates", nil)
	h.until(t, "resources/updated", func() bool { return len(h.updated) > 0 })
	if h.updated[0] != uri {
		t.Errorf("updated %q", h.updated)
	}
	h.call(t, in, "everything", "toggle-subscriber-updates", nil)
	if err := h.Unsubscribe(soon(t), &mcp.UnsubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
}

func everythingPrompts(t *testing.T, h *host) {
	r, err := h.GetPrompt(soon(t), &mcp.GetPromptParams{Name: "args-prompt", Arguments: map[string]string{"city": "Paris"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := r.Messages[0].Content.(*mcp.TextContent).Text; text != "What's weather in Paris?" {
		t.Errorf("args-prompt: %+q", text)
	}
	if _, err := h.GetPrompt(soon(t), &mcp.GetPromptParams{Name: "resource-prompt",
		Arguments: map[string]string{"resourceType": "Text", "resourceId": "1"}}); err != nil {
		t.Fatal(err)
	}
	c, err := h.Complete(soon(t), &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: "completable-prompt"},
		Argument: mcp.CompleteParamsArgument{Name: "department", Value: "E"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Completion.Values) != 1 || c.Completion.Values[0] != "Engineering" {
		t.Errorf("completion %+q", c.Completion.Values)
	}
}

// TestTask drives a tool that is only to be had as a task: methods that the
// SDK does not know, and an answer of a tool that comes by tasks/result.
func TestTask(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	t.Cleanup(func() { gone(t, m) })
	s := start(t, in.wrap("everything", npmServer(t, "everything", "stdio", m)...))
	s.initializeWith(`{"elicitation":{"form":{}},"tasks":{"requests":{"elicitation":{"create":{}}}}}`)
	s.result("tools/list", "")
	var created struct{ Task struct{ TaskID string } }
	r := s.result("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"tea"},"task":{"ttl":60000}}`)
	if err := json.Unmarshal(r, &created); err != nil || created.Task.TaskID == "" {
		t.Fatalf("tools/call: %+q", r)
	}
	id := `{"taskId":` + quote(created.Task.TaskID) + `}`
	if got := s.result("tasks/get", id); !strings.Contains(string(got), created.Task.TaskID) {
		t.Errorf("tasks/get: %+q", got)
	}
	var result mcp.CallToolResult
	raw := s.result("tasks/result", id)
	if err := json.Unmarshal(raw, &result); err != nil {
		t.Fatal(err)
	}
	// What answers a tool is tool text, whichever method brings it.
	text := in.opened(t, result.Content[0].(*mcp.TextContent).Text, "everything")
	if !strings.HasPrefix(text, "# Research Report: tea") {
		t.Errorf("tasks/result: %+q", text)
	}
	if code := s.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestEverythingCapabilities: server-everything offers tools to capable clients only. What
// check has pinned covers them, and a client that comes with more capabilities than any
// before is no change of the server.
func TestEverythingCapabilities(t *testing.T) {
	t.Parallel()
	server := npmServer(t, "everything", "stdio", mark())
	open := func(t *testing.T, in *install, capabilities string) (tools string, stderr func() string) {
		s := start(t, in.wrap("everything", server...))
		s.initializeWith(capabilities)
		list := string(s.result("tools/list", `{}`))
		s.exit()
		return list, s.stderr.String
	}
	capable := `{"sampling":{},"elicitation":{},"roots":{}}`
	t.Run("checked before", func(t *testing.T) {
		in := newInstall(t)
		if code, out, errs := in.check(t, append([]string{"--"}, server...)...); code != 0 || !strings.Contains(out, "pinned") {
			t.Fatalf("exit %d: %s%s", code, out, errs)
		}
		if tools, errs := open(t, in, capable); !strings.Contains(tools, `"get-roots-list"`) || strings.Contains(errs(), "was not approved") || strings.Contains(errs(), "than any before") {
			t.Errorf("%s\n%s", tools, errs())
		}
	})
	t.Run("a capable client comes later", func(t *testing.T) {
		in := newInstall(t)
		if tools, _ := open(t, in, `{}`); strings.Contains(tools, `"get-roots-list"`) || !strings.Contains(tools, `"echo"`) {
			t.Fatal(tools)
		}
		for range 2 {
			if tools, errs := open(t, in, capable); !strings.Contains(tools, `"get-roots-list"`) || strings.Contains(errs(), "was not approved") {
				t.Errorf("%s\n%s", tools, errs())
			}
		}
		if got := in.pins(t, "list", "--json"); !strings.Contains(got, `"pending":0`) {
			t.Error(got)
		}
	})
}

// TestTaskHold: what the rule of a tool holds is held of the result of its task too, of no other tool's, and waits in the queue under
// the tool's name. Once it is released, the same request gets it.
func TestTaskHold(t *testing.T) {
	t.Parallel()
	in, m := newInstall(t), mark()
	t.Cleanup(func() { gone(t, m) })
	everything := yamlCommand(npmServer(t, "everything", "stdio", m))
	base, _ := in.serveUp(t, "version: 1\nservers:\n  strict: {command: "+everything+", tools: {simulate-research-query: {hold: [hidden-tag]}}}\n"+
		"  other: {command: "+everything+", tools: {echo: {hold: [hidden-tag]}}}\n")
	task := func(server string) (s *httpSession, id string) {
		s = &httpSession{t: t, url: base + "/mcp/" + server}
		s.result("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}},"clientInfo":{"name":"e2e","version":"1"}}`)
		s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		var created struct{ Task struct{ TaskID string } }
		r := s.result("tools/call", `{"name":"simulate-research-query","arguments":{"topic":"te\udb40\udc41a"},"task":{"ttl":60000}}`)
		if err := json.Unmarshal(r, &created); err != nil || created.Task.TaskID == "" {
			t.Fatalf("tools/call: %+q", r)
		}
		return s, `{"taskId":` + quote(created.Task.TaskID) + `}`
	}
	s, id := task("strict")
	held := string(s.result("tasks/result", id))
	item := evidenceID.FindString(held)
	if strings.Contains(held, "Research Report") || item == "" {
		t.Fatalf("not held: %+q", held)
	}
	if show := in.says(t, "quarantine", "show", item); !strings.Contains(show, "simulate-research-query") || !strings.Contains(show, "hidden-tag") {
		t.Errorf("quarantine show: %s", show)
	}
	in.says(t, "quarantine", "release", item)
	if got := string(s.result("tasks/result", id)); !strings.Contains(got, "# Research Report: tea") {
		t.Errorf("released: %+q", got)
	}
	s.end()
	s, id = task("other")
	if got := string(s.result("tasks/result", id)); !strings.Contains(got, "# Research Report: tea") {
		t.Errorf("of a tool without a rule: %+q", got)
	}
	s.end()
}
