// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// legacyUpstream is an Upstream of the legacy era alone.
func legacyUpstream(t *testing.T, name string) string {
	t.Helper()
	u, err := url.Parse(apptest.Upstream(t, name, nil))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(body, &m) == nil && m.Method == "server/discover" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// eachRoute runs f with a session on each route to a server: alone or among all servers, with a client of
// either era; to a server of both eras or the older one alone, over a connection of its own or one that all
// sessions share.
func eachRoute(t *testing.T, f func(t *testing.T, g *apptest.Gateway, s *mcp.ClientSession, tool string)) {
	t.Helper()
	g := apptest.Start(t, fmt.Sprintf(`version: 1
http: {rate: 0}
servers:
  both: {url: %s}
  old: {url: %s}
  child: {command: [%q], env: {%s: legacy}}
  shared: {command: [%[3]q], env: {%[4]s: legacy}, share: shared}
`, apptest.Upstream(t, "both", nil), legacyUpstream(t, "old"), os.Args[0], roleVariable), nil)
	g.Eventually("every server is checked", func() bool {
		return strings.Count(g.Log.String(), "server admitted") == 4
	})
	for _, server := range []string{"both", "old", "child", "shared"} {
		for _, path := range []string{"/mcp/" + server, "/mcp"} {
			for _, version := range []string{"2025-11-25", "2026-07-28"} {
				t.Run(server+path+" "+version, func(t *testing.T) {
					tool := "echo"
					if path == "/mcp" {
						tool = server + "_echo"
					}
					f(t, g, g.Must(path, "", version), tool)
				})
			}
		}
	}
}

// TestDecodes: a call and its answer are parsed once each, whatever route they take: alone or
// among all servers, to a server of the same era or of the other, over a connection of its own
// or one that all sessions share. Other messages of the process, such as those of a stream that
// is opened again, are counted as well, so the fewest of several tries count: no try can have
// fewer than the calls themselves need.
func TestDecodes(t *testing.T) {
	const calls = 20
	eachRoute(t, func(t *testing.T, g *apptest.Gateway, s *mcp.ClientSession, tool string) {
		if _, err := g.Say(s, tool, "first"); err != nil {
			t.Fatal(err)
		}
		fewest := int64(math.MaxInt64)
		for try := 0; try < 50 && fewest > 2*calls; try++ {
			before := wire.Decoded()
			for range calls {
				if _, err := g.Say(s, tool, "again"); err != nil {
					t.Fatal(err)
				}
			}
			fewest = min(fewest, wire.Decoded()-before)
		}
		if fewest != 2*calls {
			t.Errorf("%d decodes of %d calls", fewest, calls)
		}
	})
}
