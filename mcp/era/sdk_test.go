// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 The features of the older revisions are what is tested here.

package era

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/mcpmsg"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// crossings are all ways in which the eras of real peers differ.
func crossings(t *testing.T, f func(t *testing.T, c crossing)) {
	wraps := map[string]func(wire.Conn, Options) *Conn{"adapt": Adapt, "known": nil, "probed": Upstream}
	for how, wrap := range wraps {
		for name, over := range map[string]link{"pipe": overPipes, "http": overHTTP} {
			for _, c := range []crossing{{era: legacyOnly, version: modernVersion}, {era: modernOnly, version: "2025-11-25"}, {era: modernOnly, version: "2025-06-18"}} {
				c.over, c.wrap, c.http = over, wrap, name == "http"
				if how == "known" {
					if c.wrap = asLegacy; c.era == legacyOnly {
						c.wrap = asModern
					}
				}
				t.Run(fmt.Sprintf("%s/%s/%s client, %s server", how, name, c.version, c.era), func(t *testing.T) { f(t, c) })
			}
		}
	}
}

type crossing struct {
	era, version string
	over         link
	http         bool
	wrap         func(wire.Conn, Options) *Conn
}

func (c crossing) connect(t *testing.T, s *mcp.Server, opt *mcp.ClientOptions) *mcp.ClientSession {
	return cross(t, s, c.era, c.over, c.wrap, c.version, opt)
}

func (c crossing) server(opt mcp.ServerOptions) *mcp.Server {
	opt.SupportedProtocolVersions = versionsOf(c.era)
	s := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, &opt)
	if c.era == modernOnly {
		// The SDK answers initialize with a revision that it then does not speak.
		s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if method == mcpmsg.Initialize {
					return nil, &jsonrpc.Error{Code: wire.CodeNoMethod, Message: "no such method"}
				}
				return next(ctx, method, req)
			}
		})
	}
	return s
}

var anyObject = map[string]any{"type": "object"}

// tool adds a tool with a raw handler.
func tool(s *mcp.Server, name string, h func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	s.AddTool(&mcp.Tool{Name: name, InputSchema: anyObject}, h)
}

func said(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func textOf(t *testing.T, r *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil {
		t.Fatalf("call: %v", err)
	}
	if len(r.Content) == 0 {
		t.Fatalf("no content: %+v", r)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

var form = map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}

// asking is a tool that asks for a name, in the way of the server's era, twice.
func (c crossing) asking(s *mcp.Server) {
	tool(s, "ask", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if c.era == legacyOnly {
			var names []string
			for _, q := range []string{"first?", "second?"} {
				r, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: q, RequestedSchema: form})
				if err != nil {
					return nil, err
				}
				names = append(names, fmt.Sprint(r.Content["name"]))
			}
			return said(strings.Join(names, " ")), nil
		}
		if req.Params.RequestState == "" {
			return &mcp.CallToolResult{RequestState: "one \u00e9\"",
				InputRequests: mcp.InputRequestMap{"a": &mcp.ElicitParams{Message: "first?", RequestedSchema: form}}}, nil
		}
		got := fmt.Sprint(req.Params.InputResponses["a"].(*mcp.ElicitResult).Content["name"])
		if req.Params.RequestState == "one \u00e9\"" {
			return &mcp.CallToolResult{RequestState: "two " + got,
				InputRequests: mcp.InputRequestMap{"a": &mcp.ElicitParams{Message: "second?", RequestedSchema: form}}}, nil
		}
		return said(strings.TrimPrefix(req.Params.RequestState, "two ") + " " + got), nil
	})
}

func TestElicitation(t *testing.T) {
	crossings(t, func(t *testing.T, c crossing) {
		s := c.server(mcp.ServerOptions{})
		c.asking(s)
		var asked atomic.Int32
		session := c.connect(t, s, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": strings.TrimSuffix(r.Params.Message, "?")}}, nil
		}})
		if tools, err := session.ListTools(t.Context(), nil); err != nil || len(tools.Tools) != 1 {
			t.Fatalf("tools: %v %v", tools, err)
		}
		for range 2 {
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
			if got := textOf(t, r, err); got != "first second" {
				t.Errorf("got %q", got)
			}
		}
		if asked.Load() != 4 {
			t.Errorf("asked %d times", asked.Load())
		}
	})
}

func TestSampling(t *testing.T) {
	crossings(t, func(t *testing.T, c crossing) {
		s := c.server(mcp.ServerOptions{})
		params := &mcp.CreateMessageParams{MaxTokens: 5, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hi"}}}}
		tool(s, "sample", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c.era == legacyOnly {
				r, err := req.Session.CreateMessage(ctx, params)
				if err != nil {
					return nil, err
				}
				return said(r.Content.(*mcp.TextContent).Text), nil
			}
			if req.Params.InputResponses == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"s": params}}, nil
			}
			switch r := req.Params.InputResponses["s"].(type) {
			case *mcp.CreateMessageResult:
				return said(r.Content.(*mcp.TextContent).Text), nil
			case *mcp.CreateMessageWithToolsResult:
				return said(r.Content[0].(*mcp.TextContent).Text), nil
			default:
				return nil, fmt.Errorf("got %T", r)
			}
		})
		session := c.connect(t, s, &mcp.ClientOptions{CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "sampled"}}, nil
		}})
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "sample"})
		if got := textOf(t, r, err); got != "sampled" {
			t.Errorf("got %q", got)
		}
	})
}

// TestRoots asks for roots in a call and, of a legacy server, before there is any.
func TestRoots(t *testing.T) {
	crossings(t, func(t *testing.T, c crossing) {
		first := make(chan int, 1)
		s := c.server(mcp.ServerOptions{InitializedHandler: func(_ context.Context, r *mcp.InitializedRequest) {
			go func() {
				ctx, stop := context.WithTimeout(context.Background(), time.Minute)
				defer stop()
				roots, err := r.Session.ListRoots(ctx, nil)
				for err != nil && ctx.Err() == nil { // over HTTP there may be no stream for it yet
					time.Sleep(time.Millisecond)
					roots, err = r.Session.ListRoots(ctx, nil)
				}
				if err != nil {
					first <- -1
					return
				}
				first <- len(roots.Roots)
			}()
		}})
		tool(s, "roots", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if c.era == legacyOnly {
				r, err := req.Session.ListRoots(ctx, nil)
				if err != nil {
					return nil, err
				}
				return said(r.Roots[0].URI), nil
			}
			if req.Params.InputResponses == nil {
				return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}}, nil
			}
			return said(req.Params.InputResponses["r"].(*mcp.ListRootsResult).Roots[0].URI), nil
		})
		session := c.connect(t, s, nil)
		if c.era == legacyOnly {
			time.Sleep(50 * time.Millisecond) // for the server to have asked
		}
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "roots"})
		if got := textOf(t, r, err); got != "file:///root" {
			t.Errorf("got %q", got)
		}
		if c.era == legacyOnly {
			if n := receive(t, first); n != 1 {
				t.Errorf("asked first: %d", n)
			}
		}
	})
}

func TestProgressLoggingCancel(t *testing.T) {
	crossings(t, func(t *testing.T, c crossing) {
		s := c.server(mcp.ServerOptions{})
		began, cancelled, release := make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
		defer close(release)
		tool(s, "work", func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for i := range 3 {
				if err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: req.Params.GetProgressToken(), Progress: float64(i), Message: "m"}); err != nil {
					return nil, err
				}
			}
			req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "told"})
			req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "debug", Data: "untold"})
			time.Sleep(20 * time.Millisecond) // notifications over HTTP may be slower than the answer
			return said("done"), nil
		})
		tool(s, "wait", func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			began <- struct{}{}
			select {
			case <-ctx.Done():
				cancelled <- struct{}{}
			case <-release:
			}
			return nil, context.Canceled
		})
		progress, logs := make(chan float64, 16), make(chan any, 16)
		session := c.connect(t, s, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			LoggingMessageHandler:       func(_ context.Context, r *mcp.LoggingMessageRequest) { logs <- r.Params.Data },
		})
		params := &mcp.CallToolParams{Name: "work", Meta: mcp.Meta{"progressToken": "tok"}}
		if c.version == modernVersion {
			params.Meta[mcp.MetaKeyLogLevel] = "info"
		} else if err := session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Fatalf("level: %v", err)
		}
		r, err := session.CallTool(t.Context(), params)
		if got := textOf(t, r, err); got != "done" {
			t.Errorf("got %q", got)
		}
		for i := range 3 {
			if got := receive(t, progress); got != float64(i) {
				t.Errorf("progress %v, want %d", got, i)
			}
		}
		if got := receive(t, logs); got != "told" {
			t.Errorf("log %v", got)
		}
		if len(logs) > 0 {
			t.Errorf("log below the level: %v", <-logs)
		}

		before := cut.Load()
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer stop() // the client gives up what the server has begun
			select {
			case <-began:
			case <-time.After(time.Minute):
			}
		}()
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); err == nil {
			t.Error("cancelled call succeeded")
		}
		if c.http && c.era == modernOnly { // the stream is closed; the SDK does not tell its handler
			waittest.Until(t, "the stream is cut", func() bool { return cut.Load() > before })
			return
		}
		receive(t, cancelled)
	})
}

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	return v
}

func TestSubscriptions(t *testing.T) {
	crossings(t, func(t *testing.T, c crossing) {
		subscribed, unsubscribed := make(chan string, 4), make(chan string, 4)
		s := c.server(mcp.ServerOptions{
			SubscribeHandler:   func(_ context.Context, r *mcp.SubscribeRequest) error { subscribed <- r.Params.URI; return nil },
			UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error { unsubscribed <- r.Params.URI; return nil },
		})
		tool(s, "one", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return said("1"), nil })
		s.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///r", Text: "body"}}}, nil
		})
		changed, updated := make(chan struct{}, 16), make(chan string, 16)
		session := c.connect(t, s, &mcp.ClientOptions{
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
		})
		if err := session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "file:///r"}); err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		if got := receive(t, subscribed); got != "file:///r" {
			t.Errorf("subscribed to %q", got)
		}
		waittest.Until(t, "the resource is updated", func() bool {
			s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///r"})
			return len(updated) > 0
		})
		if got := receive(t, updated); got != "file:///r" {
			t.Errorf("updated %q", got)
		}
		n := 0
		waittest.Until(t, "the list of tools changes", func() bool {
			n++
			tool(s, fmt.Sprintf("more%d", n), func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return said("2"), nil })
			return len(changed) > 0
		})
		if r, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///r"}); err != nil || r.Contents[0].Text != "body" {
			t.Errorf("read: %v %v", r, err)
		}
		if _, err := session.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///none"}); err == nil {
			t.Error("read of nothing succeeded")
		}
		if err := session.Unsubscribe(t.Context(), &mcp.UnsubscribeParams{URI: "file:///r"}); err != nil {
			t.Errorf("unsubscribe: %v", err)
		}
		if got := receive(t, unsubscribed); got != "file:///r" {
			t.Errorf("unsubscribed from %q", got)
		}
	})
}

// TestSameEra proves that nothing is translated where nothing has to be.
func TestSameEra(t *testing.T) {
	for _, tt := range []struct{ era, version string }{
		{legacyOnly, "2024-11-05"}, {legacyOnly, "2025-03-26"}, {legacyOnly, "2025-06-18"}, {legacyOnly, "2025-11-25"}, {modernOnly, modernVersion},
		{bothEras, "2024-11-05"}, {bothEras, "2025-11-25"}, {bothEras, modernVersion},
	} {
		for name, over := range map[string]link{"pipe": overPipes, "http": overHTTP} {
			t.Run(tt.version+" "+name, func(t *testing.T) {
				c := crossing{era: tt.era, version: tt.version, over: over, wrap: Adapt}
				s := c.server(mcp.ServerOptions{})
				if tt.era == modernOnly || tt.era == legacyOnly && tt.version >= "2025-06-18" {
					c.asking(s)
				} else {
					tool(s, "ask", func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return said("first second"), nil
					})
				}
				session := c.connect(t, s, &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": strings.TrimSuffix(r.Params.Message, "?")}}, nil
				}})
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
				if got := textOf(t, r, err); got != "first second" {
					t.Errorf("got %q", got)
				}
			})
		}
	}
}
