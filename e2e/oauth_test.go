// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An issuer stands for an authorization server: it publishes its metadata and keys
// and signs access tokens. It is no part of the product and grants nothing.
type issuer struct {
	*httptest.Server
	keys map[string]crypto.Signer // by algorithm
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{keys: map[string]crypto.Signer{"RS256": rsaKey, "ES256": ecKey}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "token_endpoint": i.URL + "/token"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
		var set jose.JSONWebKeySet
		for alg, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: alg, Algorithm: alg, Use: "sig"})
		}
		json.NewEncoder(w).Encode(set)
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// token is a good one but for what claims say otherwise; a nil claim is left out.
func (i *issuer) token(t *testing.T, alg string, key crypto.Signer, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL, "sub": "alice", "aud": resource, "scope": "mcp files",
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(), "client_id": "c", "jti": "1"}
	for name, v := range claims {
		if all[name] = v; v == nil {
			delete(all, name)
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.SignatureAlgorithm(alg), Key: key},
		(&jose.SignerOptions{}).WithType("at+jwt").WithHeader("kid", alg))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	s, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// resource is what tokens are issued for: the gateway, as clients see it.
const resource = "https://mcp.example.org"

// heard is everything that an upstream server was sent.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h.mu.Lock()
		fmt.Fprintf(&h.text, "%s %s\n%v\n%s\n", r.Method, r.URL, r.Header, body)
		h.mu.Unlock()
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		next.ServeHTTP(w, r)
	})
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// TestOAuth: `up` as an OAuth resource server. Clients learn where to go, tokens are
// checked for who made them, for whom, until when and for what, and none of them
// reaches the server behind.
func TestOAuth(t *testing.T) {
	t.Parallel()
	as, upstream := newIssuer(t), &heard{}
	server := mcp.NewServer(&mcp.Implementation{Name: "one", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "here"}}}, nil, nil
	})
	up := httptest.NewServer(upstream.wrap(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	t.Cleanup(up.Close)
	base, _ := newInstall(t).serveUp(t, fmt.Sprintf(`version: 1
public_url: %s
auth:
  oauth: {issuers: [{url: %s, name: corp}], scopes: [mcp], dangerously_http_on_loopback: true}
servers:
  one: {url: %s, scopes: [files]}
  two: {url: %[3]s}
`, resource, as.URL, up.URL))

	resp, err := http.Get(base + "/.well-known/oauth-protected-resource")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var metadata map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&metadata); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]any{"resource": resource, "authorization_servers": []any{as.URL},
		"scopes_supported": []any{"mcp"}, "bearer_methods_supported": []any{"header"}}, metadata); d != "" {
		t.Errorf("metadata (-want +got): %s", d)
	}

	rs, es := as.keys["RS256"], as.keys["ES256"]
	stranger, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	type claims = map[string]any
	const at = `resource_metadata="` + resource + `/.well-known/oauth-protected-resource"`
	for _, tc := range []struct {
		name, path, token string
		status            int
		challenge         []string
	}{
		{"RS256", "/mcp/one", as.token(t, "RS256", rs, nil), 200, nil},
		{"ES256", "/mcp/one", as.token(t, "ES256", es, nil), 200, nil},
		{"one audience of several", "/mcp", as.token(t, "ES256", es, claims{"aud": []string{"x", resource}}), 200, nil},
		{"without the scope of another server", "/mcp/two", as.token(t, "ES256", es, claims{"scope": "mcp"}), 200, nil},
		{"none", "/mcp/one", "", 401, []string{at, `scope="mcp"`}},
		{"none, everything", "/mcp", "", 401, []string{at}},
		{"expired", "/mcp/one", as.token(t, "RS256", rs, claims{"exp": time.Now().Add(-time.Hour).Unix()}), 401, []string{at, `error="invalid_token"`}},
		{"without end", "/mcp/one", as.token(t, "RS256", rs, claims{"exp": nil}), 401, []string{`error="invalid_token"`}},
		{"not yet", "/mcp/one", as.token(t, "RS256", rs, claims{"nbf": time.Now().Add(time.Hour).Unix()}), 401, []string{`error="invalid_token"`}},
		{"for somebody else", "/mcp/one", as.token(t, "RS256", rs, claims{"aud": up.URL}), 401, []string{`error="invalid_token"`}},
		{"for nobody", "/mcp/one", as.token(t, "RS256", rs, claims{"aud": nil}), 401, []string{`error="invalid_token"`}},
		{"for a path of ours", "/mcp/one", as.token(t, "RS256", rs, claims{"aud": resource + "/mcp/one"}), 401, []string{`error="invalid_token"`}},
		{"of another issuer", "/mcp/one", as.token(t, "RS256", rs, claims{"iss": "https://evil.example"}), 401, []string{`error="invalid_token"`}},
		{"signed by a stranger", "/mcp/one", as.token(t, "ES256", stranger, nil), 401, []string{`error="invalid_token"`}},
		{"without the resource's scope", "/mcp/two", as.token(t, "ES256", es, claims{"scope": "files"}), 403, []string{at, `error="insufficient_scope"`, `scope="mcp"`}},
		{"without any scope", "/mcp", as.token(t, "ES256", es, claims{"scope": nil}), 403, []string{`error="insufficient_scope"`}},
		{"without the server's scope", "/mcp/one", as.token(t, "ES256", es, claims{"scope": "mcp"}), 403, []string{at, `error="insufficient_scope"`, `scope="files mcp"`}},
		{"not a token", "/mcp/one", "e30.e30.e30", 401, []string{`error="invalid_token"`}},
	} {
		req, err := http.NewRequest(http.MethodPost, base+tc.path, strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if tc.token != "" {
			req.Header.Set("Authorization", "Bearer "+tc.token)
		}
		before := len(upstream.String())
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		challenge := resp.Header.Get("WWW-Authenticate")
		if resp.StatusCode != tc.status {
			t.Errorf("%s: %d, want %d: %s", tc.name, resp.StatusCode, tc.status, body)
		}
		for _, want := range tc.challenge {
			if !strings.Contains(challenge, want) {
				t.Errorf("%s: challenge %s, want %s", tc.name, challenge, want)
			}
		}
		if after := len(upstream.String()); tc.status != 200 && after != before {
			t.Errorf("%s: the server has heard of it", tc.name)
		}
	}

	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		token := as.token(t, "RS256", rs, claims{"sub": "bob", "jti": version})
		for path, tool := range map[string]string{"/mcp/one": "echo", "/mcp": "one_echo"} {
			client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
			s, err := client.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: base + path,
				HTTPClient: &http.Client{Transport: bearing(token)}}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatalf("%s, %s: %v", version, path, err)
			}
			r, err := s.CallTool(soon(t), &mcp.CallToolParams{Name: tool})
			if err != nil || !strings.Contains(textOf(r), "\nhere\n") {
				t.Errorf("%s, %s: %v, %v", version, path, r, err)
			}
			s.Close()
		}
		if got := upstream.String(); !strings.Contains(got, "tools/call") || strings.Contains(got, token) || strings.Contains(got, token[:40]) ||
			strings.Contains(got, "Authorization") || strings.Contains(got, "Bearer") {
			t.Error("the server has seen the client's token")
		}
	}
}

// bearing adds a token to every request.
type bearing string

func (b bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}
