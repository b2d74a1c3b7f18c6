// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestGroundReplicas: two adapters on one Postgres behind a round robin answer a client of the SDK in every
// revision, as one; what one takes the other answers with, and both take a new key of the fences while they run.
func TestGroundReplicas(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(keys+".new", []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(keys+".new", keys); err != nil {
			t.Fatal(err)
		}
	}
	first, second := strings.Repeat("5a", 32), strings.Repeat("6b", 32)
	write(first)
	t.Setenv("PELLUCID_INSTALL_KEY", "file:"+keys)
	database := databases.Database(t)
	var at []*url.URL
	for range 2 {
		u, err := url.Parse(newInstall(t).serveGround(t, "--db", database, "--token", "env:GROUND_TOKEN"))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, u)
	}
	var asked atomic.Int64
	proxy := httptest.NewServer(buffered(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		to := at[asked.Add(1)%2]
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", to.Host, to.Host
	}}))
	defer proxy.Close()

	signed, err := os.ReadFile(signedFile(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at[0].String()+"attestations", strings.NewReader(string(signed)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+groundToken)
	req.Header.Set("Content-Type", "application/jsonl")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != http.StatusOK {
		t.Fatalf("feed: %d", resp.StatusCode)
	}

	// fenced is one answer, and whether the key has made its fence.
	fenced := func(s *mcp.ClientSession, hex string) (string, bool) {
		t.Helper()
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "ground", Arguments: map[string]any{"query": "Reservoir number 0 is full."}})
		if err != nil || r.IsError {
			t.Fatalf("%+v, %v", r, err)
		}
		text := r.Content[0].(*mcp.TextContent).Text
		return text, verifies(t, hex, text)
	}
	sessions := map[string]*mcp.ClientSession{}
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		c := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil)
		s, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: proxy.URL + "/ground/mcp"}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(version, err)
		}
		defer s.Close()
		sessions[version] = s
		for range 4 { // from both
			if text, ok := fenced(s, first); !ok || !strings.Contains(text, "SUPPORTED") {
				t.Errorf("%s: %v, %.200q", version, ok, text)
			}
		}
	}
	write(second + " " + first)
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		n := 0
		for range 4 { // twice from each
			if _, ok := fenced(sessions["2025-11-25"], second); ok {
				n++
			}
		}
		if n == 4 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d of 4 answers have a fence of the new key", n)
		}
	}
	for version, s := range sessions {
		if _, ok := fenced(s, second); !ok {
			t.Errorf("%s: not fenced by the new key", version)
		}
	}
}

// verifies reports whether a key has made the fence.
func verifies(t *testing.T, hexa, text string) bool {
	t.Helper()
	b, err := hex.DecodeString(hexa)
	if err != nil {
		t.Fatal(err)
	}
	k, err := frame.NewKey(b)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = k.Open(text, frame.Origin{})
	return err == nil
}
