// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const testResource = "https://mcp.example/ground/mcp"

// An asServer is an authorization server on loopback.
type asServer struct {
	*httptest.Server
	mu    sync.Mutex
	pages map[string]http.HandlerFunc // by path
	hits  atomic.Int32
}

func newAS(t *testing.T, tls bool) *asServer {
	t.Helper()
	as := &asServer{pages: map[string]http.HandlerFunc{}}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		as.hits.Add(1)
		as.mu.Lock()
		page := as.pages[r.URL.Path]
		as.mu.Unlock()
		if page == nil {
			http.NotFound(w, r)
			return
		}
		page(w, r)
	})
	as.Server = httptest.NewUnstartedServer(h)
	as.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	if tls {
		as.StartTLS()
	} else {
		as.Start()
	}
	t.Cleanup(as.Close)
	return as
}

func (as *asServer) serve(path string, h http.HandlerFunc) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.pages[path] = h
}

func text200(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}
}

// transport trusts the server's certificate.
func (as *asServer) transport() http.RoundTripper {
	return &http.Transport{TLSClientConfig: as.Client().Transport.(*http.Transport).TLSClientConfig, DisableKeepAlives: true}
}

func (as *asServer) metadata(issuer string) string {
	return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"token_endpoint":"https://as.example/token"}`, issuer, as.URL+"/keys")
}

// options accept the tokens of the server as issuer, with all there is to it.
func (as *asServer) options(issuer string) ResourceOptions {
	return ResourceOptions{
		Resource: testResource, transport: as.transport(),
		Issuers: []Issuer{{Name: "corp", URL: issuer}}, timeout: 5 * time.Second,
	}
}

func mustServer(t *testing.T, o ResourceOptions) *ResourceServer {
	t.Helper()
	s, err := NewResourceServer(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func authenticate(a Authenticator, token string) (Principal, error) {
	r := httptest.NewRequest("POST", "/ground/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return a.Authenticate(r)
}

func redirectTo(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusFound) }
}
