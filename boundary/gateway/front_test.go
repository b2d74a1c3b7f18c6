// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// stack is an SDK's server behind a gateway whose client's end is HTTP.
type stack struct {
	front *wire.Front
	url   string
	runs  atomic.Int64
	conns *http.Transport
}

// newStack serves s. over is "http" or "stdio", and says how the gateway reaches it.
func newStack(t testing.TB, s *mcp.Server, over string, modern bool, adjust ...func(*wire.FrontOptions)) *stack {
	t.Helper()
	k := &stack{conns: &http.Transport{}}
	var upstream *httptest.Server
	if over == "http" {
		upstream = httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
			&mcp.StreamableHTTPOptions{Stateless: modern, PropagateRequestCancellation: true}))
	}
	serve := func(ctx context.Context, c wire.Conn) error {
		k.runs.Add(1)
		cfg := Config{Name: "real", Sink: &memory{}, DangerouslyAllowSampling: true}
		if upstream != nil {
			up, err := wire.NewHTTP(upstream.URL, wire.HTTPOptions{Limits: testLimits})
			if err != nil {
				return err
			}
			return Run(ctx, c, up, cfg)
		}
		fromServer, serverW := io.Pipe()
		serverR, toServer := io.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.Run(ctx, &mcp.IOTransport{Reader: serverR, Writer: serverW}) }()
		err := Run(ctx, c, wire.NewLines(fromServer, toServer, wire.LinesOptions{Limits: testLimits}), cfg)
		<-served
		return err
	}
	opt := wire.FrontOptions{Accept: func(ctx context.Context, c *wire.FrontSession, ended func(error)) {
		go func() { ended(serve(ctx, c)) }()
	}}
	for _, f := range adjust {
		f(&opt)
	}
	k.front = wire.NewFront(opt)
	server := httptest.NewServer(k.front)
	k.url = server.URL
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		if err := k.front.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		k.conns.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
		if upstream != nil {
			upstream.CloseClientConnections()
			upstream.Close()
		}
	})
	return k
}

// connect connects an unmodified client.
func (k *stack) connect(t testing.TB, version string, opt *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, opt)
	session, err := c.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: k.url, HTTPClient: &http.Client{Transport: k.conns}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

const modernVersion = "2026-07-28"

// pairings are the ways of reaching a server that the tests below walk through.
func pairings(t *testing.T, versions []string, test func(t *testing.T, over, version string)) {
	for _, over := range []string{"http", "stdio"} {
		for _, version := range versions {
			t.Run(over+"/"+version, func(t *testing.T) { test(t, over, version) })
		}
	}
}

func TestFrontRealPeers(t *testing.T) {
	t.Parallel()
	pairings(t, []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", modernVersion}, func(t *testing.T, over, version string) {
		k := newStack(t, sdkServer(), over, version == modernVersion)
		s := k.connect(t, version, nil)
		if v := s.InitializeResult().ProtocolVersion; v != version {
			t.Errorf("version %s, want %s", v, version)
		}
		testPeer(t, s, frame.Key{})
	})
}

// talkative is a server that speaks while it works.
func talkative() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "talkative", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "count"}, func(ctx context.Context, r *mcp.CallToolRequest, in struct{ Who string }) (*mcp.CallToolResult, any, error) {
		for i := range 3 {
			r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Message: in.Who})
			time.Sleep(time.Millisecond)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "counted for " + in.Who}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(got.Content["name"])}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "new"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		return &mcp.CallToolResult{}, nil, nil
	})
	return s
}

func soon(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(stop)
	return ctx
}

func textOf(t testing.TB, res *mcp.CallToolResult, err error) string {
	t.Helper()
	if err != nil || len(res.Content) == 0 {
		t.Fatalf("call: %+v %v", res, err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// TestFrontConversation: what a server asks and tells while it works reaches the
// client that it works for, and the list that changes reaches whoever listens.
func TestFrontConversation(t *testing.T) {
	t.Parallel()
	pairings(t, []string{"2025-06-18", "2025-11-25"}, func(t *testing.T, over, version string) {
		k := newStack(t, talkative(), over, false)
		changed := make(chan bool, 16)
		s := k.connect(t, version, &mcp.ClientOptions{
			ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
			},
			ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- true },
		})
		res, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "ask", Arguments: map[string]any{}})
		if text := textOf(t, res, err); !strings.Contains(text, "Ada") {
			t.Errorf("elicitation: %q", text)
		}
		if _, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "grow", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-soon(t).Done():
			t.Error("nobody was told that the list has changed")
		}
	})
}

// TestFrontCrowd: clients that use the same ids and the same progress tokens at
// the same time get their own answers and nobody else's progress.
func TestFrontCrowd(t *testing.T) {
	pairings(t, []string{"2025-11-25", modernVersion}, func(t *testing.T, over, version string) {
		k := newStack(t, talkative(), over, version == modernVersion)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				who := "client" + strconv.Itoa(i)
				var mine, others atomic.Int64
				s := k.connect(t, version, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
						if r.Params.ProgressToken != "token" || r.Params.Message != who {
							others.Add(1)
						}
						mine.Add(1)
					}})
				for range 10 {
					p := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"Who": who}}
					p.SetProgressToken("token")
					res, err := s.CallTool(soon(t), p)
					if err != nil {
						t.Errorf("%s: %v", who, err)
						return
					}
					if text := textOf(t, res, err); !strings.Contains(text, "counted for "+who) {
						t.Errorf("%s got %q", who, text)
					}
				}
				for end := time.Now().Add(time.Minute); mine.Load() < 30 && time.Now().Before(end); time.Sleep(time.Millisecond) {
				}
				if mine.Load() != 30 || others.Load() != 0 {
					t.Errorf("%s heard of %d steps, %d of others", who, mine.Load(), others.Load())
				}
			})
		}
		wg.Wait()
		if version == modernVersion && k.runs.Load() != 1 {
			t.Errorf("%d sessions for one principal", k.runs.Load())
		}
	})
}

// TestFrontCancel: what a client gives up ends at the server.
func TestFrontCancel(t *testing.T) {
	t.Parallel()
	pairings(t, []string{"2025-11-25", modernVersion}, func(t *testing.T, over, version string) {
		server := talkative()
		ended := make(chan bool, 1)
		ctx, stop := context.WithCancel(soon(t))
		defer stop()
		mcp.AddTool(server, &mcp.Tool{Name: "block"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			stop() // the client gives up what the server has begun
			<-ctx.Done()
			ended <- true
			return nil, nil, ctx.Err()
		})
		k := newStack(t, server, over, version == modernVersion)
		s := k.connect(t, version, nil)
		if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "block", Arguments: map[string]any{}}); !errors.Is(err, context.Canceled) {
			t.Errorf("call: %v", err)
		}
		select {
		case <-ended:
		case <-soon(t).Done():
			t.Error("the server still works")
		}
	})
}

// zoned is a tool with an argument that a header repeats.
func zoned(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}}}, nil
}

// TestFrontChurn opens and ends sessions; $PELLUCID_CHURN says how many.
func TestFrontChurn(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 200
	}
	if s := os.Getenv("PELLUCID_CHURN"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	for _, over := range []string{"stdio", "http"} {
		t.Run(over, func(t *testing.T) { churnOver(t, over, n) })
		n /= 4
	}
}

func churnOver(t *testing.T, over string, n int) {
	const room = 32
	k := newStack(t, sdkServer(), over, false, func(o *wire.FrontOptions) { o.Sessions = room })
	client := &http.Client{Transport: k.conns}
	before := measure()
	for i := range n {
		churn(t, client, k.url, i%2 == 0)
		if i == min(n/2, 10*room) {
			before = measure() // pools and caches are warm
		}
		if n >= 10_000 && i%(n/10) == 0 {
			t.Logf("%d sessions: %+v, %d open", i, measure(), k.front.Sessions())
		}
	}
	grown := func(f footprint) bool {
		return f.heap > 2*before.heap+8<<20 || f.goroutines > 2*before.goroutines+64 || f.files > before.files+64
	}
	after := measure()
	for end := time.Now().Add(time.Minute); grown(after) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		after = measure() // what sessions leave behind ends a moment later
	}
	t.Logf("%d sessions: %+v, then %+v", n, before, after)
	if open := k.front.Sessions(); open > room {
		t.Errorf("%d sessions open", open)
	}
	if n >= 400 && grown(after) {
		t.Errorf("grown from %+v to %+v", before, after)
	}
}

// churn is the life of one session. Every other client does not say goodbye.
func churn(t *testing.T, client *http.Client, url string, polite bool) {
	send := func(method, session, body string) *http.Response {
		req, _ := http.NewRequest(method, url, strings.NewReader(body))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	resp := send("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
	id := resp.Header.Get("Mcp-Session-Id")
	if resp.StatusCode != 200 || id == "" {
		t.Fatalf("initialize: %d", resp.StatusCode)
	}
	if resp := send("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); resp.StatusCode != 202 {
		t.Fatalf("initialized: %d", resp.StatusCode)
	}
	if resp := send("POST", id, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); resp.StatusCode != 200 {
		t.Fatalf("ping: %d", resp.StatusCode)
	}
	if polite {
		if resp := send("DELETE", id, ""); resp.StatusCode != 204 {
			t.Fatalf("DELETE: %d", resp.StatusCode)
		}
	}
}

type footprint struct {
	heap              uint64
	goroutines, files int
}

func measure() footprint {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd")
	return footprint{m.HeapAlloc, runtime.NumGoroutine(), len(open)}
}

// TestFrontVolume calls a tool with a result of 64 KiB; $PELLUCID_CALLS says how often.
func TestFrontVolume(t *testing.T) {
	n := 500
	if s := os.Getenv("PELLUCID_CALLS"); s != "" {
		n, _ = strconv.Atoi(s)
	}
	server := sdkServer()
	text := strings.Repeat("0123456789abcdef", 4096)
	mcp.AddTool(server, &mcp.Tool{Name: "large"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	for _, version := range []string{"2025-11-25", modernVersion} {
		k := newStack(t, server, "http", version == modernVersion)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				s := k.connect(t, version, nil)
				for range n / 8 {
					res, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: "large", Arguments: map[string]any{}})
					if err != nil {
						t.Errorf("%s: %v", version, err)
						return
					}
					if _, body, err := (frame.Key{}).Open(textOf(t, res, err), frame.Origin{}); err != nil || body != text {
						t.Errorf("%s: %d bytes, %v", version, len(body), err)
					}
				}
			})
		}
		wg.Wait()
	}
}
