// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// relay passes messages between a front and an upstream until either ends.
func relay(ctx context.Context, front, up ReadConn) {
	pump := func(from, to ReadConn) {
		for {
			m, err := from.Read(ctx)
			var v *Violation
			if errors.As(err, &v) {
				continue
			}
			if err != nil {
				return
			}
			m.Route = routeOf(m)
			if err := to.Write(ctx, m); err != nil {
				return
			}
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() { pump(front, up); up.Close(); front.Close() })
	wg.Go(func() { pump(up, front); front.Close(); up.Close() })
	wg.Wait()
}

func routeOf(m *Message) (r Route) {
	r.Version = strings.Clone(m.Params.Get("_meta").Get("io.modelcontextprotocol/protocolVersion").Text())
	switch m.Method {
	case "tools/call", "prompts/get":
		r.Name = strings.Clone(m.Params.Get("name").Text())
	case "resources/read":
		r.Name = strings.Clone(m.Params.Get("uri").Text())
	case "notifications/cancelled":
		r.Cancels, _ = IDOf(m.Params.Get("requestId"))
	}
	return r
}

type sayIn struct {
	Text string `json:"text"`
}

func sayServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "say", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "say"}, func(_ context.Context, _ *mcp.CallToolRequest, in sayIn) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "progress"}, func(ctx context.Context, r *mcp.CallToolRequest, in sayIn) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
		}
		return &mcp.CallToolResult{}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in sayIn) (*mcp.CallToolResult, any, error) {
		a, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "sure?"})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: a.Action}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, in sayIn) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return nil, nil, errors.New("waited")
	})
	return s
}

// sdkClient connects a go-sdk client to up through a relay.
func sdkClient(t *testing.T, up ReadConn, version string, progress func()) *mcp.ClientSession {
	t.Helper()
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	front := pullLines(r1, w2, LinesOptions{})
	done := make(chan struct{})
	go func() { defer close(done); relay(context.Background(), front, up) }()
	c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(context.Context, *mcp.ProgressNotificationClientRequest) { progress() },
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})
	var opts *mcp.ClientSessionOptions
	if version != "" {
		opts = &mcp.ClientSessionOptions{ProtocolVersion: version}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cs, err := c.Connect(ctx, &mcp.IOTransport{Reader: r2, Writer: w1}, opts)
	if err != nil {
		front.Close()
		<-done
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cs.Close()
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Error("the relay did not end with its client")
		}
	})
	return cs
}

// TestSDK walks a go-sdk client and a go-sdk server through every transport here.
func TestSDK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		opt     *mcp.StreamableHTTPOptions // nil = stdio
		version string
		asks    bool // server-to-client requests
	}{
		{"stdio", nil, "2025-11-25", true},
		{"stdio modern", nil, "", false},
		{"legacy SSE", &mcp.StreamableHTTPOptions{}, "2025-11-25", true},
		{"legacy JSON", &mcp.StreamableHTTPOptions{JSONResponse: true}, "2025-11-25", false},
		{"legacy oldest", &mcp.StreamableHTTPOptions{}, "2025-03-26", false},
		{"legacy resumable", &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}, "2025-11-25", true},
		{"legacy, client probes", &mcp.StreamableHTTPOptions{}, "", false},
		{"modern SSE", &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}, "2026-07-28", false},
		{"modern JSON", &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, PropagateRequestCancellation: true}, "2026-07-28", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			up := sdkUpstream(t, tt.opt)
			var mu sync.Mutex
			progress := 0
			cs := sdkClient(t, up, tt.version, func() { mu.Lock(); progress++; mu.Unlock() })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()

			tools, err := cs.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 4 {
				t.Fatalf("ListTools: %v", err)
			}
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					text := fmt.Sprint(i, strings.Repeat(" \u65e5\u672c\"\n", i*4000))
					say(t, ctx, cs, "say", text, text)
				})
			}
			wg.Wait()
			if tt.asks {
				say(t, ctx, cs, "ask", "", "decline")
			}
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "progress", Meta: mcp.Meta{"progressToken": "p"}}); err != nil {
				t.Error(err)
			}
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "none"}); err == nil {
				t.Error("an unknown tool was called")
			}
			short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			defer stop()
			if _, err := cs.CallTool(short, &mcp.CallToolParams{Name: "wait", Arguments: sayIn{}}); err == nil {
				t.Error("a cancelled call succeeded")
			}
			say(t, ctx, cs, "say", "after", "after")
		})
	}
}

func say(t *testing.T, ctx context.Context, cs *mcp.ClientSession, tool, text, want string) {
	t.Helper()
	r, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: sayIn{text}})
	if err != nil {
		t.Errorf("%s: %v", tool, err)
		return
	}
	if got := r.Content[0].(*mcp.TextContent).Text; got != want {
		t.Errorf("%s = %.50q, want %.50q", tool, got, want)
	}
}

func sdkUpstream(t *testing.T, opt *mcp.StreamableHTTPOptions) ReadConn {
	t.Helper()
	if opt == nil {
		r1, w1 := io.Pipe()
		r2, w2 := io.Pipe()
		ss, err := sayServer().Connect(t.Context(), &mcp.IOTransport{Reader: r1, Writer: w2}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ss.Close() })
		return pullLines(r2, w1, LinesOptions{})
	}
	server := sayServer()
	ts := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opt))
	t.Cleanup(func() { ts.CloseClientConnections(); ts.Close() })
	up, err := NewHTTP(ts.URL, HTTPOptions{Limits: strictjson.Limits{}, Notice: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	return Pull(up)
}
