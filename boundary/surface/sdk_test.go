// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// An unmodified server over HTTP says the same of itself in either era.
func TestCollectSDK(t *testing.T) {
	srv := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, &mcp.ServerOptions{Instructions: "Use me.", PageSize: 7})
	for i := range 30 {
		mcp.AddTool(srv, &mcp.Tool{Name: fmt.Sprint("tool", i), Description: "Adds."},
			func(context.Context, *mcp.CallToolRequest, struct{ A, B int }) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
	}
	srv.AddPrompt(&mcp.Prompt{Name: "p"}, nil)
	srv.AddResource(&mcp.Resource{URI: "file:///r", Name: "r"}, nil)
	srv.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{x}", Name: "t"}, nil)
	collect := func(h http.Handler, opt CollectOptions) *Surface {
		t.Helper()
		ts := httptest.NewServer(h)
		defer ts.Close()
		up, err := wire.NewHTTP(ts.URL, wire.HTTPOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := wire.Pull(up)
		defer c.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		s, err := Collect(ctx, c, opt)
		if err != nil {
			t.Fatal(err)
		}
		if !s.whole() {
			t.Errorf("missing %v", s.Unlisted())
		}
		return s
	}
	sdk := func(stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return srv }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	}
	plain := collect(sdk(false), CollectOptions{Legacy: true})
	if len(plain.Items()) < 34 {
		t.Errorf("%d items", len(plain.Items()))
	}
	// A server that refuses what it does not know by an HTTP status.
	fallback := sdk(false)
	refusing := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "server/discover" {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		fallback.ServeHTTP(w, r)
	})
	if s := collect(refusing, CollectOptions{}); s.Fingerprint() != plain.Fingerprint() {
		t.Errorf("after a status of failure: %s", told(diff(plain.Items(), s.Items(), nil)))
	}
	modern := collect(sdk(true), CollectOptions{})
	for _, c := range diff(plain.Items(), modern.Items(), nil) {
		if c.Difference != Unchanged && c.Kind >= Tool {
			t.Errorf("%s is %s in the modern era", c.Key, c.Difference)
		}
	}
}
