// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// longServer is a server whose tool answers with a long text: as JSON, or as an event. Its tool "slow" begins an
// answer and never ends it.
func longServer(t *testing.T, size int, json bool, slow *sync.WaitGroup) string {
	s := mcp.NewServer(&mcp.Implementation{Name: "long", Version: "1"}, nil)
	long := strings.Repeat("Honest text. ", size/13)
	for _, name := range []string{"read", "slow"} {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: long}}}, nil, nil
		})
	}
	next := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{JSONResponse: json})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || !strings.Contains(string(b), `"name":"slow"`) {
			r.Body = io.NopCloser(strings.NewReader(string(b)))
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s`, 99, long[:size/2])
		slow.Done()
		for err == nil && r.Context().Err() == nil {
			_, err = io.WriteString(w, strings.Repeat("x", 4<<10))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestLongAnswers: many long answers at a time, which need several times the memory that there is, arrive whole, from
// several servers and to several principals, while other servers never end theirs.
func TestLongAnswers(t *testing.T) {
	const size, each = 2 << 20, 6
	alice, bob := "Kq3alice-7f3axW9zLmN4vB7cYp2RtU8", "Zr5bob-15c8dehJ6gFdS1aQeXoI0kMnV"
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[{"principal":"alice","scopes":["call"],"token":"env:ALICE"},{"principal":"bob","scopes":["call"],"token":"env:BOB"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var slow sync.WaitGroup
	g := apptest.Start(t, fmt.Sprintf("version: 1\nauth: {tokens: 'file:%s'}\nlimits: {memory: %d}\ndefaults: {max_chars: 4000000}\nservers:\n  json: {url: %s}\n  events: {url: %s}\n", tokens, 40<<20,
		longServer(t, size, true, &slow), longServer(t, size, false, &slow)), map[string]string{"ALICE": alice, "BOB": bob})
	var sessions []*mcp.ClientSession
	for _, path := range []string{"/mcp/json", "/mcp/events"} {
		for _, token := range []string{alice, bob} {
			sessions = append(sessions, g.Must(path, token, "2025-11-25"))
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	var work, endless sync.WaitGroup
	slow.Add(2)
	for _, s := range sessions[:2] {
		endless.Go(func() {
			if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}); err == nil {
				t.Error("an answer without end has one")
			}
		})
	}
	slow.Wait()
	for _, s := range sessions {
		for range each {
			work.Go(func() {
				r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "read"})
				if err != nil {
					t.Error(err)
				} else if text := r.Content[0].(*mcp.TextContent).Text; len(text) < size {
					t.Errorf("%d of %d bytes: %.300q", len(text), size, text)
				}
			})
		}
	}
	work.Wait()
	stop()
	endless.Wait()
}
