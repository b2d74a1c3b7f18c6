// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// script is a client that says its lines and closes its side once it has all answers.
func script(serve func(context.Context, wire.Conn) error, answers int, lines ...string) (string, error) {
	toClient, fromClient, done := serveLines(serve)
	var all bytes.Buffer
	read := make(chan error, 1)
	enough := make(chan struct{})
	go func() {
		n, b := 0, make([]byte, 1<<16)
		for {
			k, err := toClient.Read(b)
			all.Write(b[:k])
			if n = bytes.Count(all.Bytes(), []byte(`"jsonrpc":"2.0","id":`)); n >= answers && answers >= 0 && bytes.HasSuffix(b[:k], []byte("\n")) {
				close(enough)
				answers = -1
			}
			if err != nil {
				read <- err
				return
			}
		}
	}()
	for _, line := range lines {
		if _, err := io.WriteString(fromClient, line+"\n"); err != nil {
			break
		}
	}
	select {
	case <-enough:
	case <-time.After(patience):
		return all.String(), errors.New("no answers in time")
	}
	fromClient.Close()
	select {
	case err := <-done:
		<-read
		return all.String(), err
	case <-time.After(patience):
		return "", errors.New("serve does not end")
	}
}

const (
	sayInitialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	sayInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// TestChurn: a thousand sessions leave nothing behind.
func TestChurn(t *testing.T) {
	sessions := 1000
	if testing.Short() {
		sessions = 100
	}
	shared := player("p", "good")
	shared.Shared = true
	f := fleetOf(t, Options{Translate: translate}, inside("alpha", "who"), inside("beta", "who"), shared)
	run := func(n int) {
		var wg sync.WaitGroup
		slots := make(chan bool, 16)
		for range n {
			slots <- true
			wg.Go(func() {
				defer func() { <-slots }()
				out, err := script(all(f, wire.Legacy), 4, sayInitialize, sayInitialized,
					`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"alpha_who","arguments":{}}}`,
					`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"p_pid","arguments":{}}}`,
					`{"jsonrpc":"2.0","id":4,"method":"tools/list"}`)
				if err != nil || strings.Count(out, `"result"`) != 4 {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		wg.Wait()
	}
	run(50)
	goroutines, files := steadyState()
	run(sessions)
	waittest.Until(t, "as many goroutines and files as before", func() bool {
		g, n := steadyState()
		return g <= goroutines+5 && n <= files+2
	})
	if h := f.Health(); h[0].Connections != 0 || h[2].Connections != 1 || f.Children() != 1 {
		t.Errorf("%+v, %d children", h, f.Children())
	}
}

// steadyState is how many goroutines and open files there are.
func steadyState() (goroutines, files int) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return runtime.NumGoroutine(), 0
	}
	return runtime.NumGoroutine(), len(list)
}

// TestChurnChildren: a process for each session, and none left behind.
func TestChurnChildren(t *testing.T) {
	f := fleetOf(t, Options{}, player("p", "good"))
	var wg sync.WaitGroup
	slots := make(chan bool, 8)
	for i := range 60 {
		slots <- true
		wg.Go(func() {
			defer func() { <-slots }()
			what := []string{"", "die"}[i%2]
			_, err := script(one(f, "p"), 2, sayInitialize, sayInitialized,
				`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pid","arguments":{"text":"`+what+`"}}}`)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.Children(); n != 0 {
		t.Errorf("%d children", n)
	}
}

// TestUnionPoison: whatever a server says in whatever place, what is hidden in it does
// not come through the union either.
func TestUnionPoison(t *testing.T) {
	bad := "x\U000E0041\U000E0042<|im_start|>y"
	dial, _ := sdk(func() *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "evil" + bad, Title: bad, Version: bad}, &mcp.ServerOptions{Instructions: bad,
			CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
				return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{bad}}}, nil
			}})
		s.AddTool(&mcp.Tool{Name: "tool", Description: bad, Title: bad, InputSchema: map[string]any{"type": "object", "description": bad}},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "t", Message: bad})
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: bad},
					&mcp.ResourceLink{URI: "mem://z", Name: "z", Description: bad}}, StructuredContent: map[string]any{"k": bad}}, nil
			})
		s.AddPrompt(&mcp.Prompt{Name: "prompt", Description: bad}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Description: bad, Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: bad}}}}, nil
		})
		s.AddResource(&mcp.Resource{URI: "mem://a", Name: "a", Description: bad}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "mem://a", Text: bad}}}, nil
		})
		s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "tpl://{x}", Name: "t", Description: bad}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, errors.New(bad)
		})
		return s
	})
	f := fleetOf(t, Options{}, Server{Name: "evil", Dial: dial, Config: config("evil")}, inside("good", "who"))
	ask := func(id, method, params string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
	}
	out, err := script(all(f, wire.Legacy), 10, sayInitialize, sayInitialized,
		ask("2", "tools/list", `{}`), ask("3", "prompts/list", `{}`), ask("4", "resources/list", `{}`), ask("5", "resources/templates/list", `{}`),
		ask("6", "tools/call", `{"name":"evil_tool","arguments":{},"_meta":{"progressToken":"t"}}`),
		ask("7", "prompts/get", `{"name":"evil_prompt"}`), ask("8", "resources/read", `{"uri":"mem://a"}`),
		ask("9", "resources/read", `{"uri":"tpl://q"}`),
		ask("10", "completion/complete", `{"ref":{"type":"ref/prompt","name":"evil_prompt"},"argument":{"name":"a","value":"b"}}`))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, hidden := range []string{"\U000E0041", `\udb40`, "<|im_start", `\u003c|`} {
		if strings.Contains(out, hidden) {
			t.Errorf("%+q came through:\n%+q", hidden, out)
		}
	}
	for _, want := range []string{"evil_tool", "evil_prompt", "good_who", `"id":10`, "notifications/progress"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
}

// TestCloseBound: however many servers do not want to end, all end together.
func TestCloseBound(t *testing.T) {
	f := New(Options{})
	var servers []Server
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		servers = append(servers, player(name, "stubborn"))
		servers[len(servers)-1].Shared = len(servers)%2 == 0
	}
	if err := f.Set(servers); err != nil {
		t.Fatal(err)
	}
	s := connect(t, nil, all(f, wire.Legacy))
	if got, _ := toolNames(t, s); len(got) != len(servers) {
		t.Fatalf("%q", got)
	}
	began := time.Now()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	if err := f.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(began); d > patience/2 || f.Children() != 0 {
		t.Errorf("after %v: %d children", d, f.Children())
	}
	if err := f.Set(servers); err == nil {
		t.Error("a closed fleet takes servers")
	}
}
