// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// questionServer is a server of 2025 that keeps sessions: its tools repeat a text, ask the client, and add a resource. calls
// counts the calls that have reached it, by their text.
func questionServer(t *testing.T) (at string, calls func(text string) int) {
	t.Helper()
	var got [2]atomic.Int64
	text := func(s string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
	}
	type in struct {
		Text string `json:"text,omitempty"`
	}
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "questions", Version: "1"}, nil)
		mcp.AddTool(s, &mcp.Tool{Name: "echo", Description: "Repeats."}, func(_ context.Context, _ *mcp.CallToolRequest, v in) (*mcp.CallToolResult, any, error) {
			got[0].Add(1)
			return text(v.Text), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "Asks the user."}, func(ctx context.Context, r *mcp.CallToolRequest, _ in) (*mcp.CallToolResult, any, error) {
			got[1].Add(1)
			e, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}})
			if err != nil {
				return nil, nil, err
			}
			return text(fmt.Sprint(e.Content["name"])), nil, nil
		})
		mcp.AddTool(s, &mcp.Tool{Name: "grow", Description: "Adds a resource."}, func(context.Context, *mcp.CallToolRequest, in) (*mcp.CallToolResult, any, error) {
			s.AddResource(&mcp.Resource{Name: "new", URI: "new://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{}, nil
			})
			return text("grown"), nil, nil
		})
		s.AddResource(&mcp.Resource{Name: "old", URI: "old://1"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
		return s
	}, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") == "2026-07-28" {
			http.Error(w, "Bad Request: Unsupported protocol version", http.StatusBadRequest)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	return srv.URL, func(tool string) int { return int(got[map[string]int{"echo": 0, "ask": 1}[tool]].Load()) }
}

// passedOn is how many requests a gateway has passed on to another replica.
func passedOn(t *testing.T, base string) (n int) {
	t.Helper()
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?m)^pellucid_forwards_total\{outcome="forwarded"\} (\d+)$`).FindSubmatch(b); m != nil {
		n, _ = strconv.Atoi(string(m[1]))
	}
	return n
}

// TestProxiesReplicas: two replicas behind each of the proxies, with the file that the repository ships: where the servers of
// the proxy have the names of the replicas, no request of a session is passed on, and where they have not, requests go in turn and
// are. Either way clients of both eras get each answer, answer questions of a server of 2025, and hear what a
// stream brings; a replica that is asked to end ends no session and costs no call, and no call reaches the server twice.
func TestProxiesReplicas(t *testing.T) {
	t.Parallel()
	for name, p := range reverseProxies {
		for routed, names := range map[string][]string{"by name": {"r1", "r2"}, "in turn": {"other-1", "other-2"}} {
			t.Run(name+" "+routed, func(t *testing.T) {
				t.Parallel()
				throughReplicas(t, p, names, routed == "by name")
			})
		}
	}
}

func throughReplicas(t *testing.T, p reverseProxy, names []string, routed bool) {
	upstream, calls := questionServer(t)
	in := newInstall(t)
	database := databases.Database(t)
	var bases, servers []string
	var replicas []*exec.Cmd
	for _, name := range names {
		base, cmd := in.serveUp(t, fmt.Sprintf("version: 1\npublic_url: https://%s\nstore: %q\nevidence: {mode: required}\nhttp: {rate: 0, drain: 5s}\nreplicas: {name: %s, address: %q}\nservers:\n  s: {url: %s}\n",
			proxyName, database, name, freeAddress(t), upstream))
		bases, servers, replicas = append(bases, base), append(servers, strings.TrimPrefix(base, "http://")), append(replicas, cmd)
	}
	client := p.start(t, servers)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	grown := make(chan struct{}, 8)
	connect := func(version string) *mcp.ClientSession {
		t.Helper()
		c := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { grown <- struct{}{} },
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
			},
		})
		s, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: "https://" + proxyName + "/mcp/s", HTTPClient: client, MaxRetries: 10},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	call := func(s *mcp.ClientSession, tool, want string) {
		t.Helper()
		before := calls(tool)
		r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "hello"}})
		if err != nil || !strings.Contains(r.Content[0].(*mcp.TextContent).Text, want) {
			t.Fatalf("%s: %+v, %v", tool, r, err)
		}
		if n := calls(tool) - before; n != 1 && tool != "grow" {
			t.Errorf("%s reached the server %d times", tool, n)
		}
	}
	legacy := []*mcp.ClientSession{connect("2025-06-18"), connect("2025-11-25"), connect("2025-11-25"), connect("2025-11-25")}
	for _, s := range legacy {
		for range 3 {
			call(s, "echo", "hello")
			call(s, "ask", "Ada")
		}
	}
	if n := passedOn(t, bases[0]) + passedOn(t, bases[1]); (n == 0) != routed {
		t.Errorf("%d requests were passed on", n)
	}
	modern := connect("2026-07-28")
	for range 4 {
		call(modern, "echo", "hello")
		call(modern, "ask", "Ada")
	}
	call(legacy[1], "grow", "grown")
	select {
	case <-grown:
	case <-time.After(patience):
		t.Error("the stream brings nothing")
	}
	if err := replicas[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(legacy, modern) { // while it drains, and after
		call(s, "echo", "hello")
		call(s, "ask", "Ada")
	}
	for _, s := range append(legacy, modern) {
		if err := s.Close(); err != nil {
			t.Errorf("a session has ended: %v", err)
		}
	}
}
