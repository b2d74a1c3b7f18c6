// SPDX-License-Identifier: Apache-2.0

package login

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/state"
)

// A site is an MCP server and its authorization server, on one port. A test changes what it says:
// secret stands in everything that must not be repeated.
type site struct {
	*httptest.Server
	resource, metadata map[string]any // documents; nil: 404
	challenge          string         // WWW-Authenticate of /mcp; "": none
	redirect           func(q url.Values) url.Values
	token              func(w http.ResponseWriter, form url.Values) // nil: issues tokens
	register           func(w http.ResponseWriter, body map[string]any)
	also               func(w http.ResponseWriter, r *http.Request) bool // answers first

	mu       sync.Mutex
	forms    []url.Values // that the token endpoint got
	asked    []string     // paths
	n        int          // of tokens
	rotating map[string]bool
}

const secret = "s3cret-\u202e"

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{rotating: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	s.resource = map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}, "scopes_supported": []string{"a", "b"}}
	s.metadata = map[string]any{"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"registration_endpoint": s.URL + "/register", "revocation_endpoint": s.URL + "/revoke", "device_authorization_endpoint": s.URL + "/device",
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
		"authorization_response_iss_parameter_supported": true}
	s.challenge = `Bearer resource_metadata="` + s.URL + `/.well-known/oauth-protected-resource/mcp"`
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.Path)
	s.mu.Unlock()
	if s.also != nil && s.also(w, r) {
		return
	}
	document := func(d map[string]any) {
		if d == nil {
			http.NotFound(w, r)
			return
		}
		json.NewEncoder(w).Encode(d)
	}
	switch r.URL.Path {
	case "/mcp":
		if s.challenge != "" {
			w.Header().Set("WWW-Authenticate", s.challenge)
		}
		http.Error(w, secret, http.StatusUnauthorized)
	case "/.well-known/oauth-protected-resource/mcp":
		document(s.resource)
	case "/.well-known/oauth-authorization-server":
		document(s.metadata)
	case "/register":
		var body map[string]any
		json.NewDecoder(r.Body).Decode(&body)
		if s.register != nil {
			s.register(w, body)
			return
		}
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"client_id":"registered"}`)
	case "/token":
		r.ParseForm()
		s.mu.Lock()
		s.forms = append(s.forms, r.PostForm)
		s.mu.Unlock()
		if s.token != nil {
			s.token(w, r.PostForm)
			return
		}
		s.issue(w, r.PostForm, 3600)
	case "/device":
		fmt.Fprintf(w, `{"device_code":"dev","user_code":"ABCD-1234","verification_uri":"%s/activate","interval":1,"expires_in":60}`, s.URL)
	case "/revoke":
	default:
		http.NotFound(w, r)
	}
}

// issue answers with tokens. Each refresh token works once.
func (s *site) issue(w http.ResponseWriter, form url.Values, life int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := form.Get("refresh_token"); form.Get("grant_type") == "refresh_token" && !s.rotating[old] {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"invalid_grant","error_description":"`+secret+`"}`)
		return
	} else if old != "" {
		delete(s.rotating, old)
	}
	s.n++
	refresh := fmt.Sprintf("refresh-%d", s.n)
	s.rotating[refresh] = true
	fmt.Fprintf(w, `{"access_token":"access-%d","token_type":"bearer","expires_in":%d,"refresh_token":%q}`, s.n, life, refresh)
}

// agree is the user's browser: it goes straight to the redirect.
func (s *site) agree(t *testing.T, to string) {
	u, err := url.Parse(to)
	if err != nil {
		t.Error(err)
		return
	}
	q := u.Query()
	back := url.Values{"state": {q.Get("state")}, "code": {"code-1"}, "iss": {s.URL}}
	if s.redirect != nil {
		back = s.redirect(back)
	}
	resp, err := http.Get(q.Get("redirect_uri") + "?" + back.Encode())
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(body), "s3cret") || resp.Header.Get("Content-Security-Policy") == "" || resp.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("page: %q %v", body, resp.Header)
	}
}

// login logs in at the site.
func (s *site) login(t *testing.T, o Options) (*Login, error) {
	t.Helper()
	o.Server = s.URL + "/mcp"
	if o.Show == nil {
		o.Show = func(p Prompt) {
			if !o.Device {
				go s.agree(t, p.URL)
			}
		}
	}
	return Run(t.Context(), o)
}

func newStore(t *testing.T) *Store {
	t.Helper()
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return OpenStore(dir)
}
