// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestRequiredScopes: what the metadata tell clients to ask for, a token must have.
func TestRequiredScopes(t *testing.T) {
	as, ed := newAS(t, true), newSigner(t, "EdDSA", "ed")
	as.serve("/keys", text200(jwks(t, ed)))
	as.serve("/.well-known/oauth-authorization-server", text200(as.metadata(as.URL)))
	o := as.options(as.URL)
	o.Scopes = []string{"mcp", "a"}
	s := mustServer(t, o)
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
	h := Require(Any(knows("x", Principal{ID: "x"}), s), "", RequireAlso(s, []string{"files"}, inner))
	for scope, want := range map[string]struct {
		status int
		scopes string
	}{
		"":              {403, `scope="a mcp"`},
		"mcp":           {403, `scope="a mcp"`},
		"mcp files":     {403, `scope="a mcp"`},
		"a mcp":         {403, `scope="a files mcp"`},
		"mcp b files a": {200, ""},
	} {
		r, w := httptest.NewRequest("POST", "/ground/mcp", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+ed.sign(t, ed.header(), object{"iss": as.URL, "sub": "alice", "aud": testResource, "exp": time.Now().Unix() + 60, "scope": scope}))
		h.ServeHTTP(w, r)
		got := w.Header().Get("WWW-Authenticate")
		if w.Code != want.status || !strings.Contains(got, want.scopes) || w.Code == 403 && (!strings.Contains(got, `error="insufficient_scope"`) || !strings.Contains(got, `resource_metadata="`+s.ResourceMetadata()+`"`)) {
			t.Errorf("%q: %d %s", scope, w.Code, got)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/ground/mcp", nil))
	if got := w.Header().Get("WWW-Authenticate"); w.Code != 401 || !strings.Contains(got, `scope="a mcp"`) || strings.Contains(got, "error=") {
		t.Errorf("nobody: %d %s", w.Code, got)
	}
}

func TestResourceServer(t *testing.T) {
	as := newAS(t, true)
	ed, es, rs, ps, other := newSigner(t, "EdDSA", "ed"), newSigner(t, "ES256", "es"), newSigner(t, "RS256", "rs"), newSigner(t, "PS256", "ps"), newSigner(t, "EdDSA", "ed")
	as.serve("/keys", text200(jwks(t, ed, es, rs, ps)))
	as.serve("/.well-known/oauth-authorization-server", text200(as.metadata(as.URL)))
	o := as.options(as.URL)
	o.Audiences = []string{"api://ground"}
	s := mustServer(t, o)
	now := time.Unix(1_800_000_000, 0)
	s.now = func() time.Time { return now }

	good := object{"iss": as.URL, "sub": "alice@example.org", "aud": testResource, "exp": 1_800_000_600, "iat": 1_800_000_000, "client_id": "c", "scope": "ground:query ground:feed"}
	for _, sig := range []signer{ed, es, rs, ps} {
		p, err := authenticate(s, sig.sign(t, sig.header(), good))
		if err != nil || p.ID != "corp:alice@example.org" || !p.May("ground:feed") || p.May("ground:ingest") || !p.Until.Equal(time.Unix(1_800_000_600, 0).Add(s.skew)) {
			t.Errorf("%s: %v, %v", sig.alg, p, err)
		}
		if claims := string(p.Claims); !strings.Contains(claims, `"sub":"alice@example.org"`) || !strings.Contains(claims, `"client_id":"c"`) {
			t.Errorf("%s: claims %s", sig.alg, claims)
		}
		if again, ok := s.Recheck(p); !ok || again.ID != p.ID || !again.May("ground:feed") {
			t.Errorf("%s: checked again: %v, %v", sig.alg, again, ok)
		}
		gone := o
		gone.Issuers = []Issuer{{Name: "corp", URL: as.URL + "/other", JWKS: o.Issuers[0].JWKS}}
		if _, ok := mustServer(t, gone).Recheck(p); ok {
			t.Errorf("%s: known although its issuer is gone", sig.alg)
		}
		gone.Issuers = []Issuer{o.Issuers[0]}
		gone.Issuers[0].Name = "other"
		if _, ok := mustServer(t, gone).Recheck(p); ok {
			t.Errorf("%s: known although its issuer has another name", sig.alg)
		}
	}
	if got := as.hits.Load(); got != 2 {
		t.Errorf("%d requests for four tokens, want 2", got)
	}
	head := ed.header()
	for _, tt := range []struct {
		name string
		head any
		body any
		want string // an error's text, or "="+ID
	}{
		{"typ with its prefix", head.with(object{"typ": "application/AT+jwt"}), good, "=corp:alice@example.org"},
		{"typ JWT", head.with(object{"typ": "JWT"}), good, "=corp:alice@example.org"},
		{"audience in a list", head, good.with(object{"aud": []string{"x", testResource}}), "=corp:alice@example.org"},
		{"other audience of ours", head, good.with(object{"aud": "api://ground"}), "=corp:alice@example.org"},
		{"kid left out, one key fits", head.with(object{"kid": nil}), good, "=corp:alice@example.org"},
		{"header parameter that need not be understood", head.with(object{"jku": "https://evil.example/keys"}), good, "=corp:alice@example.org"},
		{"subject not safe to show", head, good.with(object{"sub": "a b\u202e"}), "=corp:~" + digestOf("a b\u202e")},
		{"subject like a digest", head, good.with(object{"sub": "~" + digestOf("a")}), "=corp:~" + digestOf("~"+digestOf("a"))},
		{"subject with the mark of a digest", head, good.with(object{"sub": "a~b"}), "=corp:~" + digestOf("a~b")},
		{"subject that fills the ID", head, good.with(object{"sub": strings.Repeat("a", 123)}), "=corp:" + strings.Repeat("a", 123)},
		{"subject that is too long", head, good.with(object{"sub": strings.Repeat("a", 124)}), "=corp:~" + digestOf(strings.Repeat("a", 124))},
		{"no typ", head.with(object{"typ": nil}), good, "not an access token"},
		{"an ID token's typ", head.with(object{"typ": "id+jwt"}), good, "not an access token"},
		{"alg none", head.with(object{"alg": "none"}), good, "algorithm"},
		{"alg HS256", head.with(object{"alg": "HS256"}), good, "algorithm"},
		{"alg in other case", head.with(object{"alg": "eddsa"}), good, "algorithm"},
		{"alg of another key", head.with(object{"alg": "ES256"}), good, "key is unknown"},
		{"unknown kid", head.with(object{"kid": "nope"}), good, "key is unknown"},
		{"brings its own key", head.with(object{"jwk": ed.jwk(t)}), good, "header holds"},
		{"other issuer", head, good.with(object{"iss": "https://evil.example"}), "issuer"},
		{"issuer with the slash of an empty path", head, good.with(object{"iss": as.URL + "/"}), "=corp:alice@example.org"},
		{"issuer with a path", head, good.with(object{"iss": as.URL + "/x/"}), "issuer"},
		{"no issuer", head, good.with(object{"iss": nil}), "issuer"},
		{"other audience", head, good.with(object{"aud": "https://mcp.example/"}), "audience"},
		{"audience with a slash", head, good.with(object{"aud": testResource + "/"}), "audience"},
		{"no audience", head, good.with(object{"aud": nil}), "audience"},
		{"empty audience", head, good.with(object{"aud": ""}), "audience"},
		{"expired", head, good.with(object{"exp": 1_799_999_970}), "expired"},
		{"never expires", head, good.with(object{"exp": nil}), "never expires"},
		{"not yet", head, good.with(object{"nbf": 1_800_000_031}), "not valid yet"},
		{"issued later", head, good.with(object{"iat": 1_800_000_031}), "not valid yet"},
		{"no subject", head, good.with(object{"sub": nil}), "no subject"},
		{"bound to a key", head, good.with(object{"cnf": object{"jkt": "x"}}), "bound"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := authenticate(s, ed.sign(t, tt.head, tt.body))
			if id, ok := strings.CutPrefix(tt.want, "="); ok {
				if err != nil || p.ID != id || !validID(p.ID) {
					t.Errorf("got %v, %v; want %s", p, err, id)
				}
				return
			}
			if !errors.Is(err, ErrUnauthenticated) || !strings.Contains(err.Error(), tt.want) || p.ID != "" {
				t.Errorf("got %v, %v; want %q", p, err, tt.want)
			}
		})
	}
	for name, token := range map[string]string{
		"other key of the name": other.sign(t, head, good),
		"signature cut off":     strings.TrimRight(ed.sign(t, head, good), "-_=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
		"claims of another":     swapClaims(ed.sign(t, head, good), ed.sign(t, head, good.with(object{"sub": "mallory"}))),
		"opaque":                "9f86d081884c7d659a2feaa0c55ad015",
	} {
		if p, err := authenticate(s, token); !errors.Is(err, ErrUnauthenticated) || p.ID != "" {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	if got := as.hits.Load(); got != 2 {
		t.Errorf("%d requests in all, want 2: bad tokens cause no traffic within the minute", got)
	}
}

func digestOf(s string) string {
	digest := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(digest[:])
}

// swapClaims puts the claims of b between the header and the signature of a.
func swapClaims(a, b string) string {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	return x[0] + "." + y[1] + "." + x[2]
}

// TestAlgorithms lets one of two algorithms in.
func TestAlgorithms(t *testing.T) {
	as := newAS(t, true)
	ed, es := newSigner(t, "EdDSA", "ed"), newSigner(t, "ES256", "es")
	as.serve("/keys", text200(jwks(t, ed, es)))
	o := as.options("https://as.example")
	o.Issuers[0].JWKS = as.URL + "/keys"
	o.Algorithms = []string{"ES256"}
	s := mustServer(t, o)
	claims := object{"iss": "https://as.example", "sub": "s", "aud": testResource, "exp": time.Now().Unix() + 60}
	if _, err := authenticate(s, es.sign(t, es.header(), claims)); err != nil {
		t.Error(err)
	}
	if _, err := authenticate(s, ed.sign(t, ed.header(), claims)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("an algorithm that is not accepted: %v", err)
	}
}

func TestUntyped(t *testing.T) {
	as := newAS(t, true)
	ed := newSigner(t, "EdDSA", "ed")
	as.serve("/keys", text200(jwks(t, ed)))
	o := as.options("https://as.example")
	o.Issuers[0].JWKS, o.Issuers[0].DangerouslyUntyped = as.URL+"/keys", true
	s := mustServer(t, o)
	claims := object{"iss": "https://as.example", "sub": "s", "aud": testResource, "exp": time.Now().Unix() + 60}
	if _, err := authenticate(s, ed.sign(t, ed.header().with(object{"typ": nil}), claims)); err != nil {
		t.Error(err)
	}
	if _, err := authenticate(s, ed.sign(t, ed.header().with(object{"typ": "id+jwt"}), claims)); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("a type that is another one: %v", err)
	}
}

// TestOverHTTP fetches in the clear, on loopback alone.
func TestOverHTTP(t *testing.T) {
	as := newAS(t, false)
	ed := newSigner(t, "EdDSA", "ed")
	as.serve("/keys", text200(jwks(t, ed)))
	as.serve("/.well-known/oauth-authorization-server", text200(as.metadata(as.URL)))
	o := ResourceOptions{Resource: "http://127.0.0.1:7420/mcp", Issuers: []Issuer{{Name: "dev", URL: as.URL}}}
	if _, err := NewResourceServer(o); err == nil || strings.Count(err.Error(), "not https") != 2 {
		t.Errorf("http without leave: %v", err)
	}
	o.DangerouslyHTTPOnLoopback = true
	s := mustServer(t, o)
	p, err := authenticate(s, ed.sign(t, ed.header(), object{"iss": as.URL, "sub": "s", "aud": o.Resource, "exp": time.Now().Unix() + 60}))
	if err != nil || p.ID != "dev:s" {
		t.Errorf("%v, %v", p, err)
	}
	o.Issuers[0].URL = "http://as.example"
	if _, err := NewResourceServer(o); err == nil {
		t.Error("http far away was accepted")
	}
}

func TestResourceOptions(t *testing.T) {
	_, err := NewResourceServer(ResourceOptions{
		Resource: "https://a.example/mcp?x", Audiences: []string{""}, Algorithms: []string{"HS256", "none"}, Scopes: []string{"a b"},
		Issuers: []Issuer{
			{Name: "a:b", URL: "https://as.example"}, {Name: "a", URL: "https://as.example"}, {Name: "A", URL: "https://u:p@as.example"},
			{Name: "b", URL: "as.example"}, {Name: "c", URL: "https://c.example/#x", JWKS: "ftp://c.example"},
		},
		skew: time.Hour, refresh: time.Second, stale: -1, timeout: time.Hour,
	})
	if err == nil {
		t.Fatal("accepted")
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != 16 || strings.Contains(err.Error(), "u:p") {
		t.Errorf("%d mistakes:\n%v", len(got), err)
	}
	for _, line := range got {
		if !strings.HasPrefix(line, "auth: ") {
			t.Errorf("%q", line)
		}
	}
	for _, u := range []string{"", "x", "https://", "https:///a", "https://a b", "https://a\u202e.example", "HTTPS://a.example", "https://a.example#", "https://a.example?", "https://a.example:99999", "https://user@a.example", "//a.example", "https://127.1/", "javascript:alert(1)"} {
		if v, err := ParseURL(u, true); err == nil {
			t.Errorf("ParseURL(%+q) = %v", u, v)
		}
	}
	if _, err := NewResourceServer(ResourceOptions{Resource: testResource}); err == nil || !strings.Contains(err.Error(), "no issuers") {
		t.Errorf("without issuers: %v", err)
	}
}

func BenchmarkResourceServer(b *testing.B) {
	for _, alg := range []string{"EdDSA", "ES256", "RS256"} {
		sig := newSigner(b, alg, "k")
		keys, err := parseKeys([]byte(jwks(b, sig)))
		if err != nil {
			b.Fatal(err)
		}
		s, err := NewResourceServer(ResourceOptions{Resource: testResource, Issuers: []Issuer{{Name: "a", URL: "https://as.example"}}})
		if err != nil {
			b.Fatal(err)
		}
		ks := s.issuers["https://as.example"].keys
		ks.keys, ks.loaded = keys, time.Now()
		token := sig.sign(b, sig.header(), object{"iss": "https://as.example", "sub": "s", "aud": testResource, "exp": time.Now().Unix() + 3600, "scope": "ground:query"})
		b.Run(alg, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.verify(b.Context(), token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
