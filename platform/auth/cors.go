// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"slices"
	"strings"
)

// A page of another origin may send and read this. Its requests carry no cookie:
// Access-Control-Allow-Credentials is never sent.
const (
	pageMethods = "GET, POST, DELETE"
	pageReads   = "Mcp-Session-Id, Mcp-Protocol-Version, WWW-Authenticate, Retry-After, Allow"
	pageSends   = "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"
	pageMaxAge  = "600" // seconds for which a browser need not ask again

	maxPageSends = 4 << 10
)

// answeredPreflight lets a page of one of the origins read the answer to r, and answers r itself
// if it is a preflight request of a browser.
func (l *local) answeredPreflight(w http.ResponseWriter, r *http.Request) bool {
	if len(l.origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin") // also without an Origin: a cache may keep the answer for a page
	values := r.Header["Origin"]
	if len(values) == 0 {
		return false
	}
	if o, ok := parseOrigin(values[0]); !ok || !slices.Contains(l.origins, o) {
		return false // a page of our own
	}
	h.Set("Access-Control-Allow-Origin", values[0])
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		h.Set("Access-Control-Expose-Headers", pageReads)
		return false
	}
	h.Add("Vary", "Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", pageMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Set("Access-Control-Max-Age", pageMaxAge)
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowedHeaders returns the headers that a page may send: those of MCP, and the others that
// it asks for. A program could send them as well.
func allowedHeaders(asked string) string {
	allowed := pageSends
	if len(asked) > maxPageSends {
		return allowed
	}
	for name := range strings.SplitSeq(asked, ",") {
		if name = strings.TrimSpace(name); isName(name, "-_") {
			allowed += ", " + name
		}
	}
	return allowed
}
