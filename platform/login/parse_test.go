// SPDX-License-Identifier: Apache-2.0

package login

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

var challenges = []struct {
	header                string
	bearer                bool
	metadata, code, scope string
}{
	{``, false, "", "", ""},
	{`Bearer`, true, "", "", ""},
	{`bearer realm="x", error="invalid_token", resource_metadata="https://a.example/m", scope="a b"`, true, "https://a.example/m", "invalid_token", "a b"},
	{`Bearer scope=a`, true, "", "", "a"},
	{`Bearer error = "insufficient_scope" , scope = "files:read  files:write"`, true, "", "insufficient_scope", "files:read files:write"},
	{`Basic realm="x", Bearer error="invalid_token"`, true, "", "invalid_token", ""},
	{`Bearer error="a", Basic realm="b"`, true, "", "a", ""},
	{`DPoP algs="ES256", error="use_dpop_nonce"`, false, "", "", ""},
	{`Negotiate abc==, Bearer error="x"`, false, "", "", ""}, // what cannot be parsed ends the header
	{`Bearer resource_metadata="a\"b\\c"`, true, `a"b\c`, "", ""},
	{`Bearer resource_metadata="unfinished`, true, "", "", ""},
	{`Bearer resource_metadata="a\`, true, "", "", ""},
	{`Bearer scope="a ` + "\u202e" + ` b\" c"`, true, "", "", "a c"},
	{`,,, Bearer ,, error="x"`, true, "", "x", ""},
	{`=`, false, "", "", ""},
	{strings.Repeat("a", maxChallenge+1), false, "", "", ""},
	{`Bearer scope="` + strings.Repeat("s ", 200) + `"`, true, "", "", strings.TrimSpace(strings.Repeat("s ", 100))},
}

func TestParseChallenge(t *testing.T) {
	for _, tt := range challenges {
		c := parseChallenge([]string{tt.header})
		if c.bearer != tt.bearer || c.metadata != tt.metadata || c.err != tt.code || strings.Join(c.scopes, " ") != tt.scope {
			t.Errorf("%.80q: %+v", tt.header, c)
		}
	}
	if c := parseChallenge([]string{`Basic realm="x"`, `Bearer error="y"`}); c.err != "y" {
		t.Errorf("second header: %+v", c)
	}
}

func TestIsResource(t *testing.T) {
	const own = "https://a.example/.well-known/oauth-protected-resource/mcp/x"
	for _, tt := range []struct {
		resource, server, place string
		want                    bool
	}{
		{"https://a.example/mcp/x", "https://a.example/mcp/x", own, true},
		{"https://a.example/mcp/x/", "https://a.example/mcp/x", own, true},
		{"HTTPS://A.example:443/mcp/x", "https://a.example/mcp/x", own, true},
		{"https://a.example", "https://a.example/", "https://else.example/m", true},
		{"https://a.example", "https://a.example/mcp/x", "https://a.example/.well-known/oauth-protected-resource", true},
		{"https://a.example/mcp", "https://a.example/mcp/x", "https://a.example/.well-known/oauth-protected-resource/mcp", true},
		{"https://a.example/mcp/x", "https://a.example/mcp/x?key=1", own, true},
		{"https://a.example/mcp/x?key=1", "https://a.example/mcp/x?key=1", own, true},
		{"https://a.example/mcp/x?key=2", "https://a.example/mcp/x?key=1", own, false},
		{"https://a.example", "https://a.example/mcp/x", own, false}, // a path does not speak for its host
		{"https://a.example/mcp", "https://a.example/mcp/x", "https://evil.example/.well-known/oauth-protected-resource/mcp", false},
		{"https://a.example/mc", "https://a.example/mcp/x", "https://a.example/.well-known/oauth-protected-resource/mc", false},
		{"https://a.example/mcp/x/y", "https://a.example/mcp/x", own, false},
		{"http://a.example/mcp/x", "https://a.example/mcp/x", own, false},
		{"https://a.example:444/mcp/x", "https://a.example/mcp/x", own, false},
		{"https://b.example/mcp/x", "https://a.example/mcp/x", own, false},
		{"https://u@a.example/mcp/x", "https://a.example/mcp/x", own, false},
		{"https://a.example/mcp/x#f", "https://a.example/mcp/x", own, false},
		{"", "https://a.example/mcp/x", own, false},
	} {
		server, err := url.Parse(tt.server)
		if err != nil {
			t.Fatal(err)
		}
		if got := isResource(tt.resource, server, tt.place); got != tt.want {
			t.Errorf("isResource(%s, %s, %s) = %v", tt.resource, tt.server, tt.place, got)
		}
	}
}

func TestEndpointURL(t *testing.T) {
	for s, ok := range map[string]bool{
		"https://a.example/token": true, "https://a.example/token?x=1": true, "http://a.example/token": false, "file:///x": false,
		"https://a.example/#x": false, "https://a.example/?x#y": false, "https://a.example/?\u202e": false, "https://a.example/?a b": false,
		"https://" + strings.Repeat("a", 3000): false, "javascript:x": false, "": false, "https://u@a.example/": false, "//a.example/x": false,
	} {
		if _, err := endpointURL(s, false); (err == nil) != ok {
			t.Errorf("%.60q: %v", s, err)
		}
	}
}

// FuzzMetadata: no document makes the parsers fail, and what they accept is https, of this resource and issuer,
// and can stand in a header and on a screen.
func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"resource":"https://a.example/mcp","authorization_servers":["https://i.example"],"scopes_supported":["a"]}`))
	f.Add([]byte(`{"issuer":"https://i.example","token_endpoint":"https://i.example/t?x=1","authorization_endpoint":"https://i.example/a","code_challenge_methods_supported":["S256"],"scopes_supported":["a b","c"]}`))
	f.Add([]byte(`{"access_token":"x","token_type":"bearer","expires_in":9223372036854775807,"refresh_token":"y","scope":"a b"}`))
	f.Add([]byte(`{"device_code":"d","user_code":"ABCD","verification_uri":"https://i.example/d","expires_in":-1,"interval":1e9}`))
	for _, c := range challenges {
		f.Add([]byte(c.header))
	}
	server, err := url.Parse("https://a.example/mcp")
	if err != nil {
		f.Fatal(err)
	}
	const place, issuer = "https://a.example/.well-known/oauth-protected-resource/mcp", "https://i.example"
	f.Fuzz(func(t *testing.T, b []byte) {
		fits := func(s string) {
			if u, err := url.Parse(s); s != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil) {
				t.Errorf("accepted %+q", s)
			}
		}
		good := func(scopes []string) {
			if len(scopes) > maxScopes || slices.ContainsFunc(scopes, func(s string) bool { return !auth.ValidScope(s) }) {
				t.Errorf("accepted %+q", scopes)
			}
		}
		if m, err := parseResource(b, server, place, false); err == nil {
			if !isResource(m.resource, server, place) {
				t.Errorf("accepted %+q", m.resource)
			}
			for _, iss := range m.issuers {
				fits(iss)
			}
			good(m.scopes)
		}
		if as, err := parseServer(b, issuer, false); err == nil {
			for _, e := range []string{as.authorization, as.token, as.registration, as.revocation, as.deviceAuthorization} {
				fits(e)
			}
			if as.issuer != issuer || as.token == "" {
				t.Errorf("accepted %+v", as)
			}
			good(as.scopes)
		}
		c := parseChallenge([]string{string(b)})
		good(c.scopes)
		if s := scopeFlags(c.scopes); strings.ContainsAny(s, "$`;|&<>'\"\\\n") {
			t.Errorf("on a command line: %+q", s)
		}
		var d strictjson.Doc
		if d.Reset(b, strictjson.Limits{Bytes: maxAnswer, Depth: 16}) != nil || d.Root().Kind() != '{' {
			return
		}
		if tok, err := parseTokens(&d); err == nil && (!visible(tok.access, maxToken) || tok.life < 0 || tok.life > maxLife) {
			t.Errorf("accepted %+v", tok)
		}
		if code, err := parseDeviceCode(&d, false); err == nil {
			fits(code.uri)
			if !isUserCode(code.user) || code.life <= 0 || code.life > maxDeviceLife || code.interval <= 0 || code.interval > maxInterval {
				t.Errorf("accepted %+v", code)
			}
		}
	})
}
