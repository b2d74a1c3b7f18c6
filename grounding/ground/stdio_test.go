// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// stdio sends lines, closes the input, and returns what came back.
func stdio(t *testing.T, a *ground.Adapter, lines ...string) []string {
	t.Helper()
	fromServer, toClient := io.Pipe()
	done := make(chan error, 1)
	in := io.NopCloser(strings.NewReader(strings.Join(lines, "\n")))
	go func() { done <- a.ServeStdio(t.Context(), mcpOptions, in, toClient) }()
	out, err := io.ReadAll(fromServer)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("stdio: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

const (
	initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}`
	ready      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// TestStdioStrict: as TestMCPStrict, on standard input; a bad line ends nothing,
// and what was asked before the input ended is answered.
func TestStdioStrict(t *testing.T) {
	a := newAdapter(t, ground.Options{})
	for name, c := range rawCases {
		if len(c.header) > 0 {
			continue
		}
		got := stdio(t, a, initialize, ready, c.body, `{"jsonrpc":"2.0","id":"last","method":"ping"}`)
		all := strings.Join(got, "\n")
		if strings.Contains(all, marker) {
			t.Errorf("%s: echoes the request: %.300s", name, all)
		}
		if !strings.Contains(all, `{"jsonrpc":"2.0","id":"last","result":`) {
			t.Errorf("%s: ended the session: %.300s", name, all)
		}
		if name == "modern, no header" {
			continue // there are none here
		}
		want := 3
		if c.status == 202 {
			want = 2
		}
		if len(got) != want {
			t.Errorf("%s: %d answers, want %d: %.300s", name, len(got), want, all)
		}
		if c.code != 0 && c.code < 0 && !strings.Contains(all, fmt.Sprintf(`"code":%d`, c.code)) {
			t.Errorf("%s: want code %d: %.300s", name, c.code, all)
		}
	}
}

// TestStdioIDs: an id that is in use is refused, and holds up nothing.
func TestStdioIDs(t *testing.T) {
	a := newAdapter(t, ground.Options{})
	lines := []string{initialize, ready}
	for range 200 {
		lines = append(lines, rpc("tools/call", `{"name":"ground","arguments":{"query":"sky"}}`))
	}
	got := stdio(t, a, append(lines, `{"jsonrpc":"2.0","id":"last","method":"ping"}`)...)
	if len(got) != 202 {
		t.Errorf("%d answers to 202 requests", len(got))
	}
}

// TestStdioContext: the end of the context is the end of the session, also where
// nobody writes and nobody reads.
func TestStdioContext(t *testing.T) {
	a := newAdapter(t, ground.Options{})
	in, w := io.Pipe()
	r, out := io.Pipe()
	defer w.Close()
	defer r.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	go io.WriteString(w, initialize+"\n")
	if err := a.ServeStdio(ctx, mcpOptions, in, out); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want that of the context", err)
	}
}
