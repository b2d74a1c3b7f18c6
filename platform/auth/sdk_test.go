// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// An mcpServer is the SDK's server behind this package. Its tool "whoami" says
// who calls and whether the token came through.
func mcpServer(t *testing.T) (srv *httptest.Server, mux *http.ServeMux, inner http.Handler) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		p, _ := FromContext(ctx)
		text := p.ID
		if len(req.Extra.Header["Authorization"]) > 0 {
			text += " with a token"
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	mux = http.NewServeMux()
	srv = httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv, mux, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
}

func whoami(t *testing.T, s *mcp.ClientSession) string {
	t.Helper()
	res, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

// TestSDKClientAuthorizes has the official SDK's client find its way by itself:
// from the 401 to the metadata, to the authorization server, to a token for this
// resource with the scope asked for, and on to the tool.
func TestSDKClientAuthorizes(t *testing.T) {
	as := newAS(t, false)
	ed := newSigner(t, "EdDSA", "ed")
	srv, mux, inner := mcpServer(t)
	resource := srv.URL + "/ground/mcp"

	meta, err := json.Marshal(oauthex.AuthServerMeta{
		Issuer: as.URL, JWKSURI: as.URL + "/keys", AuthorizationEndpoint: as.URL + "/authorize", TokenEndpoint: as.URL + "/token",
		ResponseTypesSupported: []string{"code"}, CodeChallengeMethodsSupported: []string{"S256"}, TokenEndpointAuthMethodsSupported: []string{"client_secret_post"},
	})
	if err != nil {
		t.Fatal(err)
	}
	as.serve("/.well-known/oauth-authorization-server", text200(string(meta)))
	as.serve("/keys", text200(jwks(t, ed)))
	var mu sync.Mutex
	var asked url.Values // of the authorization request
	as.serve("/token", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		token := ed.sign(t, ed.header(), object{"iss": as.URL, "sub": "alice", "aud": r.PostFormValue("resource"), "exp": time.Now().Unix() + 60, "iat": time.Now().Unix(), "scope": asked.Get("scope")})
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(object{"access_token": token, "token_type": "Bearer", "expires_in": 60})
	})

	rs := mustServer(t, ResourceOptions{Resource: resource, Issuers: []Issuer{{Name: "corp", URL: as.URL}}, DangerouslyHTTPOnLoopback: true})
	mux.Handle("/.well-known/oauth-protected-resource/", rs.Metadata())
	limit, err := NewLimit(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	mux.Handle("/ground/mcp", Local(LocalOptions{}, Require(Any(knows("x", Principal{ID: "x"}), rs), "ground:query", limit(inner))))

	handler, err := sdkauth.NewAuthorizationCodeHandler(&sdkauth.AuthorizationCodeHandlerConfig{
		PreregisteredClient: &oauthex.ClientCredentials{ClientID: "client", ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "secret"}},
		RedirectURL:         "http://127.0.0.1:1/callback",
		AuthorizationCodeFetcher: func(ctx context.Context, args *sdkauth.AuthorizationArgs) (*sdkauth.AuthorizationResult, error) {
			u, err := url.Parse(args.URL)
			if err != nil {
				return nil, err
			}
			mu.Lock()
			defer mu.Unlock()
			asked = u.Query()
			return &sdkauth.AuthorizationResult{Code: "code", State: asked.Get("state")}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	httpClient := &http.Client{Transport: &http.Transport{}}
	defer httpClient.CloseIdleConnections()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: resource, OAuthHandler: handler, HTTPClient: httpClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := whoami(t, session); got != "corp:alice" {
		t.Errorf("whoami = %q", got)
	}
	if asked.Get("scope") != "ground:query" || asked.Get("resource") != resource {
		t.Errorf("the client asked for %v", asked)
	}
}

// withToken sends a token with each request.
type withToken struct {
	base  http.RoundTripper
	token string
}

func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.base.RoundTrip(r)
}

// bindSession shows how the SDK's sessions are bound to our principal: its
// handler compares the UserID that its own middleware has put into the context,
// and that middleware wants a header to look at.
func bindSession(next http.Handler) http.Handler {
	strip := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r)
	})
	bound := sdkauth.RequireBearerToken(func(ctx context.Context, _ string, r *http.Request) (*sdkauth.TokenInfo, error) {
		p, _ := FromContext(ctx)
		return &sdkauth.TokenInfo{UserID: p.ID, Scopes: p.Scopes}, nil
	}, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(strip)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := FromContext(r.Context()); !ok {
			next.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer principal")
		bound.ServeHTTP(w, r)
	})
}

// TestSDKSessionBinding steals a session id: with another principal's token it
// is worth nothing.
func TestSDKSessionBinding(t *testing.T) {
	srv, mux, inner := mcpServer(t)
	a := Any(knows("alice", Principal{ID: "alice"}), knows("bob", Principal{ID: "bob"}))
	mux.Handle("/mcp", Require(a, "", bindSession(inner)))
	base := &http.Transport{}
	defer base.CloseIdleConnections()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "client", Version: "1"}, nil).
		Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL + "/mcp", HTTPClient: &http.Client{Transport: withToken{base, "alice"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := whoami(t, session); got != "alice" {
		t.Errorf("whoami = %q", got)
	}
	if session.ID() == "" {
		t.Fatal("no session")
	}
	for token, want := range map[string]int{"alice": 200, "bob": 403, "mallory": 401} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":99,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Mcp-Session-Id", session.ID())
		resp, err := withToken{base, token}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s in alice's session: %d, want %d", token, resp.StatusCode, want)
		}
	}
}

// TestSDKVerifier compares our verdict on the header with the SDK's, which is
// more lenient: what we let through it lets through, with the same token.
func TestSDKVerifier(t *testing.T) {
	for _, tt := range bearerTests {
		var theirs []string
		h := sdkauth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*sdkauth.TokenInfo, error) {
			theirs = append(theirs, token)
			return &sdkauth.TokenInfo{}, nil
		}, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(http.NotFoundHandler())
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Authorization", tt.header)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if tt.token != "" && !slices.Equal(theirs, []string{tt.token}) {
			t.Errorf("%.40q: theirs %.40q, ours %.40q", tt.header, theirs, tt.token)
		}
	}
}
