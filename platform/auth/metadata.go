// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/json"
	"net/http"
	"strings"
)

// metadataPath is where protected resource metadata lie (RFC 9728 §3).
const metadataPath = "/.well-known/oauth-protected-resource"

// metadataDocument is what RFC 9728 §2 defines, as far as it is known here.
func metadataDocument(o ResourceOptions) []byte {
	doc := struct {
		Resource             string   `json:"resource"`
		AuthorizationServers []string `json:"authorization_servers"`
		ScopesSupported      []string `json:"scopes_supported,omitempty"`
		BearerMethods        []string `json:"bearer_methods_supported"`
	}{Resource: o.Resource, ScopesSupported: o.Scopes, BearerMethods: []string{"header"}}
	for _, iss := range o.Issuers {
		doc.AuthorizationServers = append(doc.AuthorizationServers, iss.URL)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err) // strings alone always marshal
	}
	return append(b, '\n')
}

// Metadata serves the protected resource metadata (RFC 9728) to everybody, web
// pages included, at /.well-known/oauth-protected-resource followed by the path of
// the resource, and at the same without it, where MCP clients look next. Other
// paths get 404. It belongs in front of Local and Require.
func (s *ResourceServer) Metadata() http.Handler {
	own := strings.TrimPrefix(s.metadataURL, s.resource.Scheme+"://"+s.resource.Host)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		if p := r.URL.EscapedPath(); p != own && p != metadataPath {
			http.NotFound(w, r)
			return
		}
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			h.Set("Content-Type", "application/json")
			h.Set("Cache-Control", "max-age=3600")
			h.Set("X-Content-Type-Options", "nosniff")
			w.Write(s.metadata)
		case http.MethodOptions: // preflight of a page that sets its own headers
			h.Set("Access-Control-Allow-Methods", "GET")
			h.Set("Access-Control-Allow-Headers", "*")
			w.WriteHeader(http.StatusNoContent)
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			refuse(w, http.StatusMethodNotAllowed)
		}
	})
}
