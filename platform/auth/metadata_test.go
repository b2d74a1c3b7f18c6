// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

func metadataServer(t *testing.T, resource string) *ResourceServer {
	t.Helper()
	return mustServer(t, ResourceOptions{
		Resource: resource, Scopes: []string{"ground:query", "ground:feed"}, DangerouslyHTTPOnLoopback: true,
		Issuers: []Issuer{{Name: "a", URL: "https://as.example"}, {Name: "b", URL: "https://as.example/t"}},
	})
}

func TestMetadata(t *testing.T) {
	const well = "/.well-known/oauth-protected-resource"
	for _, tt := range []struct {
		resource, url string
		paths         []string // that have the document
	}{
		{"https://mcp.example", "https://mcp.example" + well, []string{well}},
		{"https://mcp.example/", "https://mcp.example" + well, []string{well}},
		{"https://mcp.example/ground/mcp", "https://mcp.example" + well + "/ground/mcp", []string{well, well + "/ground/mcp"}},
		{"https://mcp.example:8443/a%2Fb/", "https://mcp.example:8443" + well + "/a%2Fb", []string{well, well + "/a%2Fb"}},
	} {
		s := metadataServer(t, tt.resource)
		if got := s.ResourceMetadata(); got != tt.url {
			t.Errorf("ResourceMetadata of %s = %s, want %s", tt.resource, got, tt.url)
		}
		h := s.Metadata()
		var got []string
		for _, path := range []string{"/", well, well + "/", well + "/ground/mcp", well + "/ground/mcp/x", well + "/a%2Fb", well + "/a/b", "/ground/mcp"} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			if w.Code == 200 {
				got = append(got, path)
			}
		}
		if diff := cmp.Diff(tt.paths, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.resource, diff)
		}
	}
}

func TestMetadataDocument(t *testing.T) {
	h := metadataServer(t, "https://mcp.example/ground/mcp").Metadata()
	const path = "/.well-known/oauth-protected-resource/ground/mcp"
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"resource":                 "https://mcp.example/ground/mcp",
		"authorization_servers":    []any{"https://as.example", "https://as.example/t"},
		"scopes_supported":         []any{"ground:query", "ground:feed"},
		"bearer_methods_supported": []any{"header"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	for method, want := range map[string]int{"HEAD": 200, "OPTIONS": 204, "POST": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != want || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d, want %d, %v", method, w.Code, want, w.Header())
		}
	}
}

// TestMetadataBySDK has the official SDK read the document.
func TestMetadataBySDK(t *testing.T) {
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	s := metadataServer(t, srv.URL+"/ground/mcp")
	mux.Handle("/.well-known/oauth-protected-resource/", s.Metadata())
	got, err := oauthex.GetProtectedResourceMetadata(t.Context(), s.ResourceMetadata(), srv.URL+"/ground/mcp", srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.AuthorizationServers) != 2 || len(got.ScopesSupported) != 2 {
		t.Errorf("got %+v", got)
	}
}

// TestChallengeNamesMetadata follows the URL through everything that may stand
// between the ResourceServer and the answer.
func TestChallengeNamesMetadata(t *testing.T) {
	s := metadataServer(t, "https://mcp.example/ground/mcp")
	const url = "https://mcp.example/.well-known/oauth-protected-resource/ground/mcp"
	for name, a := range map[string]Authenticator{
		"alone": s, "first": Any(s, knows("x", Principal{ID: "x"})), "last": Any(knows("x", Principal{ID: "x"}), s), "nested": Any(Any(), Any(s)),
	} {
		w := httptest.NewRecorder()
		Require(a, "ground:query", http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
		if w.Code != 401 {
			t.Errorf("%s: %d", name, w.Code)
		}
		checkChallenge(t, w.Header(), map[string]string{"scope": "ground:feed ground:query", "resource_metadata": url})
	}
}
