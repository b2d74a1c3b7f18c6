// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// helperArg makes the test binary one of the servers below.
const helperArg = "e2e-helper"

// helperServer returns the command of the helper called role. The mark finds
// its processes.
func helperServer(t testing.TB, role, mark string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, helperArg, role, mark}
}

// helper is the main function of every helper.
func helper(role string) int {
	switch role {
	case "modern":
		err := newToolServer().Run(context.Background(), &mcp.StdioTransport{})
		fmt.Fprintln(os.Stderr, "modern:", err)
		return 0
	case "orders":
		err := newHostileServer().Run(context.Background(), &mcp.StdioTransport{})
		fmt.Fprintln(os.Stderr, "orders:", err)
		return 0
	case "client":
		return runClient()
	case "sleeper": // a grandchild that nobody asked for
		time.Sleep(time.Hour)
		return 0
	}
	if role == "letters" {
		return serveLetters(os.Args[3])
	}
	if what, lies := strings.CutPrefix(role, "lie-"); lies {
		return lie(liars[what], os.Args[3])
	}
	return serveLines(role)
}

// serveLines is a server written by hand, because an SDK would not let it
// misbehave. It has one read-only tool; what a call of it does is the role.
func serveLines(role string) int {
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	if role == "stubborn" {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		exec.Command(os.Args[0], helperArg, "sleeper", os.Args[3]).Start()
	}
	if role == "babbler" {
		babble(out)
	}
	for m := range requests(os.Stdin) {
		switch m.Method {
		case "initialize":
			answer(out, m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"helper","version":"1"}}`)
		case "tools/list":
			answer(out, m.ID, `{"tools":[{"name":"size","description":"Text of n bytes.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
		case "tools/call":
			if code := misbehave(role, m, out); code >= 0 {
				return code
			}
		default:
			noMethod(out, m.ID)
		}
		out.Flush()
	}
	if role == "stubborn" {
		time.Sleep(time.Hour)
	}
	return 0
}

// requests yields every request of a client on r, until that ends.
func requests(r io.Reader) iter.Seq[message] {
	in := bufio.NewReaderSize(r, 1<<20)
	return func(yield func(message) bool) {
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return
			}
			var m message
			if json.Unmarshal(line, &m) == nil && m.ID != nil && !yield(m) {
				return
			}
		}
	}
}

func noMethod(out io.Writer, id json.RawMessage) {
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", id)
}

func answer(out *bufio.Writer, id json.RawMessage, result string) {
	fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", id, result)
}

// misbehave answers a call of the tool `size` as the role wants it. It returns
// the code to exit with, or -1 to go on.
func misbehave(role string, m message, out *bufio.Writer) int {
	var p struct {
		Arguments struct {
			N    int
			Text string
		}
	}
	json.Unmarshal(m.Params, &p)
	n := p.Arguments.N
	if n >= 0 {
		unit := p.Arguments.Text
		if unit == "" {
			unit = "The quick brown fox jumps over the lazy dog.\n"
		}
		text := strings.ToValidUTF8(strings.Repeat(unit, n/len(unit)+1)[:n], "")
		answer(out, m.ID, `{"content":[{"type":"text","text":`+quote(text)+`}]}`)
		return -1
	}
	switch role { // a negative n asks for it
	case "dying":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"con`, m.ID)
		out.Flush()
		return 3
	case "huge":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		flood(out, 100<<20)
		fmt.Fprint(out, `"}]}}`+"\n")
	case "endless":
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		for flood(out, 1<<20) == nil {
		}
	case "silent":
	}
	return -1
}

func flood(out *bufio.Writer, n int) error {
	chunk := bytes.Repeat([]byte("a"), 1<<16)
	for ; n > 0; n -= len(chunk) {
		if _, err := out.Write(chunk); err != nil {
			return err
		}
	}
	return nil
}

// babble says everything that a server must not say before it is asked.
func babble(out *bufio.Writer) {
	fmt.Fprintln(out, "Server starting on stdio...")
	fmt.Fprintln(out, `{"jsonrpc":"2.0","id":4711,"result":{"content":[{"type":"text","text":"nobody asked"}]}}`)
	fmt.Fprintln(out, `{"jsonrpc":"2.0","id":1,"id":1,"method":"tools/list"}`)
	fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"bad utf-8: `+"\xff\xfe"+`"}}`)
	fmt.Fprintln(out, "{\x00}")
	out.Flush()
	for i := range 20000 {
		fmt.Fprintf(os.Stderr, "\x1b]0;owned\x07\x1b[31m line %d \u202e%s\n", i, strings.Repeat("x", 100))
	}
	os.Stderr.WriteString(strings.Repeat("\x9b\u200b", 1<<19)) // and no line feed
}

// newToolServer is a server of the Go SDK, which speaks every revision.
func newToolServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk-server", Version: "1"},
		&mcp.ServerOptions{Instructions: "Greets."})
	type in struct {
		Name string `json:"name" jsonschema:"whom to greet"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Says hello.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *mcp.CallToolRequest, a in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: "Hello, " + a.Name + "!"},
				&mcp.TextContent{Text: poison},
			}}, nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "count", Description: "Counts up to three."},
		func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if token := r.Params.GetProgressToken(); token != nil {
				for i := range 3 {
					r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
						ProgressToken: token, Progress: float64(i + 1), Total: 3, Message: "step\u200b " + strconv.Itoa(i+1)})
				}
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "3"}}}, nil, nil
		})
	s.AddResource(&mcp.Resource{Name: "note", URI: "note://1", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "note://1", Text: "A note."}}}, nil
		})
	s.AddPrompt(&mcp.Prompt{Name: "ask", Description: "Asks."},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{
				{Role: "user", Content: &mcp.TextContent{Text: "How are you?"}}}}, nil
		})
	return s
}

// statelessHandler serves newToolServer as 2026-07-28 does: every request alone.
func statelessHandler() http.Handler {
	s := newToolServer()
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{Stateless: true})
}
