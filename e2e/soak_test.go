// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
	"github.com/pellucid-mcp/pellucid/platform/child"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// soakFootprint is what must not grow.
type soakFootprint struct {
	heap       uint64
	goroutines int
	files      int
	children   int64
}

// TestSoakChildren opens and ends sessions that have a process each, and lets
// every third of the clients go away without a word. $PELLUCID_SOAK says how many
// sessions; the sessions without processes are TestFrontChurn's.
func TestSoakChildren(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("PELLUCID_SOAK"))
	if n == 0 {
		t.Skip("$PELLUCID_SOAK is not set")
	}
	bin, err := pellucid()
	if err != nil {
		t.Fatal(err)
	}
	var children atomic.Int64
	const room = 16
	serve := func(ctx context.Context, s wire.Conn) error {
		p, err := child.Start(child.Command{Args: []string{bin, "bench", "gateway", "--play", "upstream"}})
		if err != nil {
			return err
		}
		children.Add(1)
		defer children.Add(-1)
		defer p.Stop(context.Background())
		up := wire.NewLines(p.Stdout, p.Stdin, wire.LinesOptions{Limits: strictjson.Limits{MendSurrogates: true}})
		return gateway.Run(ctx, s, up, gateway.Config{Name: "upstream", Sink: gateway.NewLines(io.Discard)})
	}
	front := wire.NewFront(wire.FrontOptions{Sessions: room, Accept: func(ctx context.Context, s *wire.FrontSession, ended func(error)) {
		go func() { ended(serve(ctx, s)) }()
	}})
	server := httptest.NewServer(front)
	defer server.Close()
	client := &http.Client{Timeout: time.Minute}
	measure := func() soakFootprint {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		open, _ := os.ReadDir("/proc/self/fd")
		return soakFootprint{m.HeapAlloc, runtime.NumGoroutine(), len(open), children.Load()}
	}
	var before soakFootprint
	t.Logf("%10s %12s %12s %8s %10s", "sessions", "heap", "goroutines", "files", "children")
	row := func(i int, f soakFootprint) {
		t.Logf("%10d %12d %12d %8d %10d", i, f.heap, f.goroutines, f.files, f.children)
	}
	for i := range n {
		soakSession(t, client, server.URL, i%3 != 0)
		if i == min(n/2, 4*room) {
			before = measure() // pools and caches are warm
			row(i, before)
		} else if i > 0 && i%max(n/5, 1) == 0 {
			row(i, measure())
		}
	}
	after := measure()
	row(n, after)
	if after.heap > 2*before.heap+8<<20 || after.goroutines > 2*before.goroutines+64 || after.files > 2*before.files+64 || after.children > 2*room {
		t.Errorf("grown from %+v to %+v", before, after)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := front.Shutdown(ctx); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if left := children.Load(); left != 0 {
		t.Errorf("%d processes are left", left)
	}
}

// soakSession is the life of a session: hello, one call, and perhaps goodbye.
func soakSession(t *testing.T, client *http.Client, url string, polite bool) {
	t.Helper()
	session := ""
	send := func(method, body string, want int) string {
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s: status %d, %v", method, resp.StatusCode, err)
		}
		if session == "" {
			session = resp.Header.Get("Mcp-Session-Id")
		}
		return string(got)
	}
	send("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, 200)
	send("POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 202)
	got := send("POST", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"script":"ascii","bytes":1024}}}`, 200)
	if len(got) < 1024 || !strings.Contains(got, "The build finished") {
		t.Fatalf("not the answer: %d bytes", len(got))
	}
	if polite {
		send("DELETE", "", 204)
	}
}
