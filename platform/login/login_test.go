// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRun: what the requests of a login hold.
func TestRun(t *testing.T) {
	s := newSite(t)
	s.challenge += `, scope="a c"`
	s.metadata["scopes_supported"] = []string{"offline_access", "openid"}
	var shown Prompt
	l, err := s.login(t, Options{Name: "far", Show: func(p Prompt) { shown = p; go s.agree(t, p.URL) }})
	if err != nil {
		t.Fatal(err)
	}
	if l.Access != "access-1" || l.Refresh != "refresh-1" || l.Issuer != s.URL || l.Resource != s.URL+"/mcp" || l.ClientID != "registered" ||
		!slices.Equal(l.Scopes, []string{"a", "c", "offline_access"}) || !l.Usable(time.Now()) || l.Expires.Before(time.Now().Add(time.Hour-time.Minute)) {
		t.Errorf("%+v", *l)
	}
	u, _ := url.Parse(shown.URL)
	q := u.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": "registered", "code_challenge_method": "S256", "resource": s.URL + "/mcp",
		"scope": "a c offline_access", "prompt": "consent"} {
		if q.Get(name) != want {
			t.Errorf("%s=%s, want %s", name, q.Get(name), want)
		}
	}
	if !strings.HasPrefix(q.Get("redirect_uri"), "http://127.0.0.1:") || len(q.Get("state")) != 43 || len(q.Get("code_challenge")) != 43 {
		t.Errorf("%v", q)
	}
	f := s.forms[0]
	if f.Get("grant_type") != "authorization_code" || f.Get("code") != "code-1" || f.Get("resource") != s.URL+"/mcp" || f.Get("redirect_uri") != q.Get("redirect_uri") || len(f.Get("code_verifier")) != 43 {
		t.Errorf("token request: %v", f)
	}
	for _, text := range []string{fmt.Sprint(l), fmt.Sprintf("%+v %#v %s", l, l, l)} {
		if strings.Contains(text, "access-") || strings.Contains(text, "refresh-") {
			t.Errorf("a token is printed: %s", text)
		}
	}
}

// TestIssuerWithSlash: the slash of an empty path makes no other issuer, wherever it stands.
func TestIssuerWithSlash(t *testing.T) {
	for name, do := range map[string]func(s *site, o *Options){
		"in the server's metadata": func(s *site, _ *Options) { s.resource["authorization_servers"] = []string{s.URL + "/"} },
		"in the issuer's metadata": func(s *site, _ *Options) { s.metadata["issuer"] = s.URL + "/" },
		"in the answer": func(s *site, _ *Options) {
			s.redirect = func(q url.Values) url.Values { q.Set("iss", s.URL+"/"); return q }
		},
		"on the command line": func(s *site, o *Options) { o.Issuer = s.URL + "/" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			var o Options
			do(s, &o)
			if l, err := s.login(t, o); err != nil || l.Access != "access-1" {
				t.Errorf("%v, %v", l, err)
			}
		})
	}
}

// TestRunDevice: the user decides after a while, and the client waits as it is told.
func TestRunDevice(t *testing.T) {
	s := newSite(t)
	tries := 0
	s.token = func(w http.ResponseWriter, form url.Values) {
		if tries++; tries < 2 {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"authorization_pending"}`)
			return
		}
		s.issue(w, form, 60)
	}
	var shown Prompt
	l, err := s.login(t, Options{Device: true, Show: func(p Prompt) { shown = p }})
	if err != nil || l.Access != "access-1" || shown.Code != "ABCD-1234" || shown.URL != s.URL+"/activate" || tries != 2 {
		t.Errorf("%v %v %d", err, shown, tries)
	}
	s.token = func(w http.ResponseWriter, _ url.Values) {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"error":"access_denied","error_description":"`+secret+`"}`)
	}
	if _, err := s.login(t, Options{Device: true, Show: func(Prompt) {}}); err != errCancelled {
		t.Error(err)
	}
}

// hostile is what a server or an authorization server may do to a login.
var hostile = []struct {
	name   string
	do     func(s *site)
	o      Options
	want   string // in the error
	silent bool   // the user was not sent anywhere
}{
	{"another resource", func(s *site) { s.resource["resource"] = "https://other.example/mcp" }, Options{}, "those of another resource", true},
	{"part of the path", func(s *site) { s.resource["resource"] = s.URL + "/m" }, Options{}, "those of another resource", true},
	{"the whole host, from a place of its own", func(s *site) { s.resource["resource"] = s.URL }, Options{}, "those of another resource", true},
	{"no resource", func(s *site) { delete(s.resource, "resource") }, Options{}, "those of another resource", true},
	{"metadata at a file", func(s *site) { s.challenge = `Bearer resource_metadata="file:///etc/passwd"` }, Options{}, "not acceptable: not https", true},
	{"metadata over http", func(s *site) { s.challenge = `Bearer resource_metadata="http://example.com/x"` }, Options{}, "not acceptable: not https", true},
	{"issuers that are none", func(s *site) {
		s.resource["authorization_servers"] = []string{"file:///x", "http://example.com", "https://user@example.com", "javascript:x"}
	}, Options{}, "no acceptable authorization server", true},
	{"another issuer", func(s *site) { s.metadata["issuer"] = "https://other.example" }, Options{}, "those of another issuer", true},
	{"no metadata", func(s *site) { s.metadata = nil }, Options{}, "the metadata of the authorization server", true},
	{"page at a file", func(s *site) { s.metadata["authorization_endpoint"] = "file:///etc/passwd" }, Options{}, "authorization_endpoint: not https", true},
	{"page is a script", func(s *site) { s.metadata["authorization_endpoint"] = "javascript:alert(1)" }, Options{}, "authorization_endpoint: not", true},
	{"tokens over http", func(s *site) { s.metadata["token_endpoint"] = "http://example.com/token" }, Options{}, "token_endpoint: not https", true},
	{"no PKCE", func(s *site) { delete(s.metadata, "code_challenge_methods_supported") }, Options{}, "PKCE", true},
	{"plain PKCE", func(s *site) { s.metadata["code_challenge_methods_supported"] = []string{"plain"} }, Options{}, "PKCE", true},
	{"no registration", func(s *site) { delete(s.metadata, "registration_endpoint") }, Options{}, "--client-id", true},
	{"no documents", func(s *site) {}, Options{ClientID: "https://client.example/id.json"}, "client ID metadata documents", true},
	{"issuer that is not named", func(s *site) {}, Options{Issuer: "https://other.example"}, "does not name that authorization server", true},
	{"registration refused", func(s *site) {
		s.register = func(w http.ResponseWriter, _ map[string]any) { http.Error(w, secret, http.StatusForbidden) }
	}, Options{}, "status 403", true},
	{"registration with a bad ID", func(s *site) {
		s.register = func(w http.ResponseWriter, _ map[string]any) { io.WriteString(w, `{"client_id":"a\u202eb"}`) }
	}, Options{}, "registration that the authorization server has made", true},
	{"cancelled", func(s *site) {
		s.redirect = func(q url.Values) url.Values {
			return url.Values{"state": q["state"], "iss": q["iss"], "error": {"access_denied"}, "error_description": {secret}}
		}
	}, Options{}, "the user has refused the login, or cancelled it", false},
	{"unknown error", func(s *site) {
		s.redirect = func(q url.Values) url.Values {
			return url.Values{"state": q["state"], "iss": q["iss"], "error": {secret}}
		}
	}, Options{}, "the authorization server refused the request", false},
	{"another issuer answers", func(s *site) {
		s.redirect = func(q url.Values) url.Values { q.Set("iss", "https://other.example/"+secret); return q }
	}, Options{}, "another authorization server has answered", false},
	{"two issuers answer", func(s *site) {
		s.redirect = func(q url.Values) url.Values { q.Add("iss", s.URL); return q }
	}, Options{}, "another authorization server has answered", false},
	{"no issuer in the answer", func(s *site) {
		s.redirect = func(q url.Values) url.Values { q.Del("iss"); return q }
	}, Options{}, "does not say which authorization server it is of", false},
	{"no code", func(s *site) {
		s.redirect = func(q url.Values) url.Values { q.Del("code"); return q }
	}, Options{}, "no acceptable code", false},
	{"nobody answers", func(s *site) {
		s.redirect = func(q url.Values) url.Values { q.Set("state", "x"); return q }
	}, Options{Wait: 300 * time.Millisecond}, "has not agreed within", false},
	{"ten megabytes of tokens", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			io.WriteString(w, `{"access_token":"x","token_type":"Bearer","x":"`+strings.Repeat("y", 10<<20)+`"}`)
		}
	}, Options{}, "too long", false},
	{"ten megabytes of metadata", func(s *site) { s.metadata["x"] = strings.Repeat("y", 10<<20) }, Options{}, "too long", true},
	{"no token", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) { io.WriteString(w, `{"token_type":"Bearer"}`) }
	}, Options{}, "no acceptable access token", false},
	{"token with a line end", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			io.WriteString(w, `{"access_token":"x\r\nX-Evil: 1","token_type":"Bearer"}`)
		}
	}, Options{}, "no acceptable access token", false},
	{"token of another type", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			io.WriteString(w, `{"access_token":"x","token_type":"DPoP"}`)
		}
	}, Options{}, "not a bearer token", false},
	{"twice the token", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			io.WriteString(w, `{"access_token":"x","access_token":"y","token_type":"Bearer"}`)
		}
	}, Options{}, "not a JSON object", false},
	{"redirect of the token endpoint", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	}, Options{}, "status 307", false},
	{"redirect of the metadata", func(s *site) {
		s.also = func(w http.ResponseWriter, r *http.Request) bool {
			if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server") {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return true
			}
			return false
		}
	}, Options{}, "the metadata of the authorization server", true},
	{"code refused", func(s *site) {
		s.token = func(w http.ResponseWriter, _ url.Values) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant","error_description":"`+secret+`"}`)
		}
	}, Options{}, "no longer accepts the login", false},
	{"device: page at a file", func(s *site) {
		s.also = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/device" {
				io.WriteString(w, `{"device_code":"d","user_code":"ABCD","verification_uri":"file:///x"}`)
			}
			return r.URL.Path == "/device"
		}
	}, Options{Device: true}, "page at which to enter the code is not acceptable", true},
	{"device: code with control characters", func(s *site) {
		s.also = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/device" {
				io.WriteString(w, `{"device_code":"d","user_code":"AB\u001b[2J","verification_uri":"`+s.URL+`"}`)
			}
			return r.URL.Path == "/device"
		}
	}, Options{Device: true}, "no acceptable code", true},
	{"device: not offered", func(s *site) { delete(s.metadata, "device_authorization_endpoint") }, Options{Device: true}, "leave --device out", true},
}

// TestHostile: each fails with an error of constant text.
func TestHostile(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			tt.do(s)
			sent := false
			o := tt.o
			o.Show = func(p Prompt) {
				if sent = true; !o.Device {
					go s.agree(t, p.URL)
				}
			}
			l, err := s.login(t, o)
			if err == nil || l != nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v; want %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "example") || strings.Contains(err.Error(), "passwd") {
				t.Errorf("the error repeats what the server says: %v", err)
			}
			if sent == tt.silent {
				t.Errorf("the user was sent somewhere: %v", sent)
			}
		})
	}
}

// TestResourceOfHost: the metadata of a whole host count where they lie at its own place.
func TestResourceOfHost(t *testing.T) {
	s := newSite(t)
	doc := fmt.Sprintf(`{"resource":%q,"authorization_servers":[%q]}`, s.URL, s.URL)
	s.resource, s.challenge = nil, ""
	s.also = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == resourcePath {
			io.WriteString(w, doc)
		}
		return r.URL.Path == resourcePath
	}
	if l, err := s.login(t, Options{}); err != nil || l.Resource != s.URL {
		t.Errorf("%v %v", l, err)
	}
}

// TestOldServer: a server of 2025-03-26 has no metadata of its own, and is its own authorization server.
func TestOldServer(t *testing.T) {
	s := newSite(t)
	s.resource, s.challenge = nil, ""
	if l, err := s.login(t, Options{}); err != nil || l.Resource != s.URL+"/mcp" || l.Issuer != s.URL {
		t.Errorf("%v %v", l, err)
	}
	s.metadata = nil
	if _, err := s.login(t, Options{}); err != errNoLogin {
		t.Error(err)
	}
}

// TestClients: the ways in which the program says who it is.
func TestClients(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       Options
		methods []string
		id      string
		basic   bool
		secret  string
	}{
		{"document", Options{ClientID: "https://client.example/id.json"}, nil, "https://client.example/id.json", false, ""},
		{"given ID", Options{ClientID: "mine"}, nil, "mine", false, ""},
		{"given secret", Options{ClientID: "mine", ClientSecret: "x"}, nil, "", true, ""},
		{"given secret, in the body", Options{ClientID: "mine", ClientSecret: "x"}, []string{"client_secret_post"}, "mine", false, "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.metadata["client_id_metadata_document_supported"] = true
			s.metadata["token_endpoint_auth_methods_supported"] = tt.methods
			basic := false
			s.also = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					_, pass, ok := r.BasicAuth()
					basic = ok && pass == "x"
				}
				return false
			}
			if _, err := s.login(t, tt.o); err != nil {
				t.Fatal(err)
			}
			f := s.forms[0]
			if f.Get("client_id") != tt.id || f.Get("client_secret") != tt.secret || basic != tt.basic || slices.Contains(s.asked, "/register") {
				t.Errorf("%v, basic %v, asked %v", f, basic, s.asked)
			}
		})
	}
}

// TestStray: requests that are not the answer do not end a login.
func TestStray(t *testing.T) {
	s := newSite(t)
	l, err := s.login(t, Options{Show: func(p Prompt) {
		u, _ := url.Parse(p.URL)
		back := u.Query().Get("redirect_uri")
		for _, stray := range []string{back, back + "?state=x&code=evil&iss=" + s.URL, back + "?state=" + u.Query().Get("state") + "&state=y&code=evil", strings.Replace(back, "/callback", "/", 1)} {
			resp, err := http.Get(stray)
			if err != nil || resp.StatusCode/100 != 4 {
				t.Errorf("%s: %v %v", stray, resp, err)
			}
		}
		req, _ := http.NewRequest(http.MethodGet, back+"?state="+u.Query().Get("state")+"&code=evil&iss="+s.URL, nil)
		req.Host = "attacker.example"
		if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("another host: %v", err)
		}
		go s.agree(t, p.URL)
	}})
	if err != nil || l.Access != "access-1" || s.forms[0].Get("code") != "code-1" {
		t.Errorf("%v %v", err, s.forms)
	}
}

// TestInterrupted: Ctrl-C ends a login that waits.
func TestInterrupted(t *testing.T) {
	s := newSite(t)
	ctx, stop := context.WithCancel(t.Context())
	_, err := Run(ctx, Options{Server: s.URL + "/mcp", Show: func(Prompt) { stop() }})
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Error(err)
	}
}

// TestHangs: a server that never ends its answer costs a bounded time.
func TestHangs(t *testing.T) {
	s := newSite(t)
	stop := make(chan struct{})
	defer close(stop)
	s.also = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/register" {
			w.(http.Flusher).Flush()
			<-stop
		}
		return r.URL.Path == "/register"
	}
	began := time.Now()
	_, err := s.login(t, Options{})
	if err == nil || !strings.Contains(err.Error(), "does not answer in time") || time.Since(began) > 4*requestWait {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

func TestParseServer(t *testing.T) {
	for server, ok := range map[string]bool{
		"https://example.com/mcp": true, "http://127.0.0.1:1/mcp": true, "http://localhost/mcp": true, "https://example.com/mcp?key=x": true,
		"http://example.com/mcp": false, "file:///etc/passwd": false, "https://u:p@example.com": false, "https:opaque": false, "": false, "https://": false,
		"https://example.com/#x": false, "javascript:x": false, "http://127.0.0.1.example.com": false,
	} {
		if _, err := ParseServer(server); (err == nil) != ok {
			t.Errorf("%q: %v", server, err)
		}
	}
}
