// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authFunc is an Authenticator of a test.
type authFunc func(r *http.Request) (Principal, error)

func (f authFunc) Authenticate(r *http.Request) (Principal, error) { return f(r) }

// knows is an Authenticator that knows one token.
func knows(token string, p Principal) Authenticator {
	return authFunc(func(r *http.Request) (Principal, error) {
		switch got, err := bearer(r); {
		case err != nil:
			return Principal{}, err
		case got == token:
			return p, nil
		}
		return Principal{}, invalid("unknown")
	})
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"lab-1": true, "a": true, "9": true, "corp:alice@example.org": true, "corp:auth0|5f": true, "corp:~aB_-": true,
		"": false, "-a": false, ":a": false, "a b": false, "a\n": false, "a=b": false, "a\"": false, "a\\": false,
		"a/b": false, "a{": false, "\u00e9": false, "a\u202e": false, "a\x00": false,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		if got := validID(id); got != want {
			t.Errorf("validID(%+q) = %v, want %v", id, got, want)
		}
	}
}

func TestRequire(t *testing.T) {
	lab := Principal{ID: "lab-1", Scopes: []string{"ground:query"}}
	a := knows("good", lab)
	down := authFunc(func(*http.Request) (Principal, error) {
		return Principal{}, &unavailable{"down", 7500 * time.Millisecond}
	})
	for _, tt := range []struct {
		name      string
		auth      Authenticator
		headers   []string // of Authorization
		query     string
		scope     string
		status    int
		challenge map[string]string // but for realm; nil: no header
		retry     string
	}{
		{name: "allowed", auth: a, headers: []string{"Bearer good"}, scope: "ground:query", status: 200},
		{name: "any scope", auth: a, headers: []string{"bEARER   good"}, status: 200},
		{name: "nothing shown", auth: a, scope: "ground:query", status: 401, challenge: map[string]string{"scope": "ground:query"}},
		{name: "nothing shown nor asked", auth: a, status: 401, challenge: map[string]string{}},
		{name: "unknown token", auth: a, headers: []string{"Bearer bad"}, scope: "ground:query", status: 401, challenge: map[string]string{"error": "invalid_token", "scope": "ground:query"}},
		{name: "ill-formed token", auth: a, headers: []string{"Bearer a b"}, status: 401, challenge: map[string]string{"error": "invalid_token"}},
		{name: "other scheme", auth: a, headers: []string{"Basic Z29vZDo="}, status: 401, challenge: map[string]string{}},
		{name: "two headers", auth: a, headers: []string{"Bearer good", "Bearer good"}, status: 400, challenge: map[string]string{"error": "invalid_request"}},
		{name: "query alone", auth: a, query: "?access_token=good", status: 400, challenge: map[string]string{"error": "invalid_request"}},
		{name: "query as well", auth: a, headers: []string{"Bearer good"}, query: "?x=1&access%5Ftoken=good", status: 400, challenge: map[string]string{"error": "invalid_request"}},
		{name: "other query", auth: a, headers: []string{"Bearer good"}, query: "?token=good", status: 200},
		{name: "missing scope", auth: a, headers: []string{"Bearer good"}, scope: "ground:ingest", status: 403, challenge: map[string]string{"error": "insufficient_scope", "scope": "ground:ingest"}},
		{name: "scope is no prefix", auth: a, headers: []string{"Bearer good"}, scope: "ground", status: 403, challenge: map[string]string{"error": "insufficient_scope", "scope": "ground"}},
		{name: "not known at present", auth: down, headers: []string{"Bearer good"}, status: 503, retry: "8"},
		{name: "other failure", auth: authFunc(func(*http.Request) (Principal, error) { return lab, errors.New("x") }), status: 503, retry: "5"},
		{name: "bare sentinel, nothing shown", auth: authFunc(func(*http.Request) (Principal, error) { return lab, ErrUnauthenticated }), status: 401, challenge: map[string]string{}},
		{name: "bare sentinel", auth: authFunc(func(*http.Request) (Principal, error) { return lab, ErrUnauthenticated }), headers: []string{"Bearer good"}, status: 401, challenge: map[string]string{"error": "invalid_token"}},
		{name: "nobody named", auth: knows("good", Principal{Scopes: []string{"s"}}), headers: []string{"Bearer good"}, scope: "s", status: 401, challenge: map[string]string{"error": "invalid_token", "scope": "s"}},
		{name: "nil", headers: []string{"Bearer good"}, status: 401, challenge: map[string]string{"error": "invalid_token"}},
		{name: "nil, nothing shown", status: 401, challenge: map[string]string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var passed *http.Request
			h := Require(tt.auth, tt.scope, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { passed = r }))
			r := httptest.NewRequest("POST", "/ground/mcp"+tt.query, nil)
			r.Header["Authorization"] = tt.headers
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || (passed != nil) != (tt.status == 200) {
				t.Fatalf("status %d, passed %v; want status %d", w.Code, passed != nil, tt.status)
			}
			if got := w.Header().Get("Retry-After"); got != tt.retry {
				t.Errorf("Retry-After = %q, want %q", got, tt.retry)
			}
			checkChallenge(t, w.Header(), tt.challenge)
			if passed == nil {
				return
			}
			if p, ok := FromContext(passed.Context()); !ok || p.ID != "lab-1" {
				t.Errorf("FromContext = %v, %v", p, ok)
			}
			if got := passed.Header["Authorization"]; got != nil {
				t.Error("the token went through to the handler")
			}
			if len(r.Header["Authorization"]) != 1 {
				t.Error("Require changed the request that it was given")
			}
		})
	}
}

// checkChallenge parses WWW-Authenticate as a client does.
func checkChallenge(t *testing.T, h http.Header, want map[string]string) {
	t.Helper()
	got, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	if err != nil {
		t.Fatal(err)
	}
	if want == nil {
		if got != nil {
			t.Errorf("a challenge: %v", got)
		}
		return
	}
	if len(got) != 1 || got[0].Scheme != "bearer" || got[0].Params["realm"] != "pellucid" {
		t.Fatalf("challenge %v, want one of Bearer", got)
	}
	delete(got[0].Params, "realm")
	if diff := cmp.Diff(want, got[0].Params); diff != "" {
		t.Errorf("challenge (-want +got):\n%s", diff)
	}
}

func TestIdentify(t *testing.T) {
	a := knows("good", Principal{ID: "lab-1"})
	for _, tt := range []struct {
		name, header, query string
		auth                Authenticator
		status              int
		id                  string
	}{
		{name: "nobody", auth: a, status: 200},
		{name: "nobody, nil", status: 200},
		{name: "somebody", auth: a, header: "Bearer good", status: 200, id: "lab-1"},
		{name: "bad token", auth: a, header: "Bearer bad", status: 401},
		{name: "bad token, nil", header: "Bearer bad", status: 401},
		{name: "other scheme", auth: a, header: "Basic Zm9v", status: 401},
		{name: "query", auth: a, query: "?access_token=good", status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			id, passed := "", false
			h := Identify(tt.auth, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p, _ := FromContext(r.Context())
				id, passed = p.ID, true
			}))
			r := httptest.NewRequest("GET", "/"+tt.query, nil)
			if tt.header != "" {
				r.Header.Set("Authorization", tt.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || id != tt.id || passed != (tt.status == 200) {
				t.Errorf("status %d, id %q, passed %v; want %d, %q", w.Code, id, passed, tt.status, tt.id)
			}
		})
	}
}

func TestRequirePanics(t *testing.T) {
	for _, scope := range []string{"a b", `a"b`, "a\\", "\u00e9", "a\n"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Require took the scope %+q", scope)
				}
			}()
			Require(nil, scope, http.NotFoundHandler())
		}()
	}
}

func TestAny(t *testing.T) {
	one, two := knows("one", Principal{ID: "one"}), knows("two", Principal{ID: "two"})
	down := authFunc(func(*http.Request) (Principal, error) { return Principal{}, &unavailable{"down", time.Second} })
	for _, tt := range []struct {
		name, token string
		of          []Authenticator
		id          string
		refused     bool
	}{
		{"first", "one", []Authenticator{one, two}, "one", false},
		{"second", "two", []Authenticator{one, two}, "two", false},
		{"none", "three", []Authenticator{one, two}, "", true},
		{"nothing", "one", nil, "", true},
		{"one is down", "two", []Authenticator{down, two}, "two", false},
		{"cannot tell", "three", []Authenticator{one, down, two}, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("Authorization", "Bearer "+tt.token)
			p, err := Any(tt.of...).Authenticate(r)
			if p.ID != tt.id || (err == nil) != (tt.id != "") || errors.Is(err, ErrUnauthenticated) != tt.refused {
				t.Errorf("got %v, %v", p, err)
			}
		})
	}
}
