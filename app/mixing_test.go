// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

var tag = regexp.MustCompile(`[0-9]+z[0-9]+z[0-9]+y`)

// checkTags holds an answer to be the whole of its own call's text, and of no other's.
func checkTags(got, own, want string) error {
	for _, t := range tag.FindAllString(got, -1) {
		if t != own {
			return fmt.Errorf("the answer to %s holds %s", own, t)
		}
	}
	if !strings.Contains(got, want) {
		return fmt.Errorf("the answer to %s has %d bytes, of %d", own, len(got), len(want))
	}
	return nil
}

// TestNoMixing: sessions of several principals call every kind of server on every route at the
// same time, some give calls up, some read slowly. No answer holds a byte of another call.
func TestNoMixing(t *testing.T) {
	const principals, callers, calls = 3, 2, 12
	secrets := []string{"Kq3alice7f3a9bxW9zLmN4vB7cYp2RtU8", "Zr5bob15c8de02hJ6gFdS1aQeXoI0kMnV", "Wm2vT9qLx4Hc7Zr1Np6Kd3Bf8Gs5Jy0a"}
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[
		{"principal":"a","scopes":["servers:read"],"token":"env:T0"},
		{"principal":"b","scopes":["servers:read"],"token":"env:T1"},
		{"principal":"c","scopes":["servers:read"],"token":"env:T2"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := apptest.Start(t, fmt.Sprintf(`version: 1
auth: {tokens: "file:%s"}
http: {rate: 0, concurrency: 1000}
servers:
  both: {url: %s}
  old: {url: %s}
  child: {command: [%q], env: {%s: legacy}}
  shared: {command: [%[4]q], env: {%[5]s: legacy}, share: shared}
`, filepath.ToSlash(tokens), apptest.Upstream(t, "both", nil), legacyUpstream(t, "old"), os.Args[0], roleVariable),
		map[string]string{"T0": secrets[0], "T1": secrets[1], "T2": secrets[2]})
	g.Eventually("every server is checked", func() bool {
		return strings.Count(g.Log.String(), "server admitted") == 4
	})
	var wg sync.WaitGroup
	var session, answered atomic.Int64
	for p := range principals {
		for _, path := range []string{"/mcp/both", "/mcp/old", "/mcp/child", "/mcp/shared", "/mcp"} {
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				s := g.Must(path, secrets[p], version)
				n := session.Add(1)
				for c := range callers {
					wg.Go(func() {
						for i := range calls {
							tool := "echo"
							if path == "/mcp" {
								tool = []string{"both", "old", "child", "shared"}[i%4] + "_echo"
							}
							own := fmt.Sprintf("%dz%dz%dy", n, c, i)
							want := strings.Repeat(own, 1+rand.IntN([]int{4, 100, 4000}[i%3]))
							ctx, stop := context.WithTimeout(t.Context(), time.Minute)
							given := i%5 == 4
							if given {
								time.AfterFunc(time.Duration(rand.IntN(5))*time.Millisecond, stop)
							}
							r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": want}})
							stop()
							if err != nil {
								if !given || !errors.Is(err, context.Canceled) {
									t.Errorf("%s %s %s: %v", path, version, own, err)
								}
								continue
							}
							answered.Add(1)
							if err := checkTags(r.Content[0].(*mcp.TextContent).Text, own, want); err != nil {
								t.Errorf("%s %s: %v", path, version, err)
							}
						}
					})
				}
			}
		}
		wg.Go(func() { readSlowly(t, g, secrets[p], int(session.Add(1))) })
	}
	wg.Wait()
	if n := answered.Load(); n < principals*callers*calls*8 {
		t.Errorf("%d answers", n)
	}
}

// readSlowly takes answers as whole bodies, a few bytes at a time.
func readSlowly(t *testing.T, g *apptest.Gateway, token string, n int) {
	for i := range 4 {
		own := fmt.Sprintf("%dz0z%dy", n, i)
		want := strings.Repeat(own, 30_000)
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"same","method":"tools/call","params":{"name":"both_echo","arguments":{"text":%q},`+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, want)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.Base+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "both_echo"} {
			req.Header.Set(k, v)
		}
		resp, err := apptest.Bearer(token).RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		var got strings.Builder
		for {
			_, err := io.CopyN(&got, resp.Body, 16<<10)
			if err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		resp.Body.Close()
		if !strings.Contains(got.String(), `"id":"same"`) {
			t.Errorf("%d: %.300q", resp.StatusCode, got.String())
		} else if err := checkTags(got.String(), own, want); err != nil {
			t.Error(err)
		}
	}
}
