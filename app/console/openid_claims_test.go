// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestIDToken holds every claim that OpenID Connect Core 3.1.3.7 has a client check against a provider that leaves it
// out or sets it wrong.
func TestIDToken(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	b64 := base64.RawURLEncoding.EncodeToString
	sign := func(by *rsa.PrivateKey, alg string, claims map[string]any) string {
		payload, _ := json.Marshal(claims)
		head := b64([]byte(`{"alg":"`+alg+`","kid":"1"}`)) + "." + b64(payload)
		sum := sha256.Sum256([]byte(head))
		sig, err := rsa.SignPKCS1v15(rand.Reader, by, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return head + "." + b64(sig)
	}
	var token, at string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":"%[1]s/a","token_endpoint":"%[1]s/t","jwks_uri":"%[1]s/k","id_token_signing_alg_values_supported":["RS256","HS256","none"]}`, at)
		case "/k":
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","kid":"1","alg":"RS256","use":"sig","n":%q,"e":"AQAB"}]}`, b64(key.N.Bytes()))
		case "/t":
			fmt.Fprintf(w, `{"access_token":"x","token_type":"Bearer","id_token":%q}`, token)
		}
	}))
	defer srv.Close()
	at = srv.URL

	now := time.Now()
	after := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for _, tt := range []struct {
		name   string
		change map[string]any // of the claims; a nil value leaves the claim out
		want   string         // text of the error, if the person is refused
	}{
		{"as it should be", nil, ""},
		{"one audience as a list", map[string]any{"aud": []string{"pellucid"}}, ""},
		{"azp is this client", map[string]any{"azp": "pellucid"}, ""},
		{"azp, several audiences", map[string]any{"aud": []string{"other", "pellucid"}, "azp": "pellucid"}, ""},
		{"azp is another client", map[string]any{"azp": "other"}, "another client"},
		{"azp in capitals", map[string]any{"azp": "Pellucid"}, "another client"},
		{"azp is empty", map[string]any{"azp": ""}, "another client"},
		{"azp is a list", map[string]any{"azp": []string{"pellucid"}}, "another client"},
		{"azp is another client of several", map[string]any{"aud": []string{"pellucid", "other"}, "azp": "other"}, "another client"},
		{"several audiences, no azp", map[string]any{"aud": []string{"pellucid", "other"}}, "several audiences"},
		{"another audience", map[string]any{"aud": "other", "azp": "pellucid"}, "audience"},
		{"no audience", map[string]any{"aud": nil}, "audience"},
		{"an empty list of audiences", map[string]any{"aud": []string{}}, "audience"},
		{"another issuer", map[string]any{"iss": "https://other.example"}, "of another issuer"},
		{"another nonce", map[string]any{"nonce": "x"}, "nonce"},
		{"no nonce", map[string]any{"nonce": nil}, "nonce"},
		{"no subject", map[string]any{"sub": nil}, "subject"},
		{"expired", map[string]any{"exp": after(-time.Minute)}, "expired"},
		{"no exp", map[string]any{"exp": nil}, "expired"},
		{"not before a clock's difference", map[string]any{"nbf": after(4 * time.Minute)}, ""},
		{"not before", map[string]any{"nbf": after(10 * time.Minute)}, "nbf"},
		{"no iat", map[string]any{"iat": nil}, "older than this login"},
		{"iat is zero", map[string]any{"iat": 0}, "older than this login"},
		{"issued before the login", map[string]any{"iat": after(-6 * time.Minute)}, "older than this login"},
		{"issued by a slow clock", map[string]any{"iat": after(-4 * time.Minute)}, ""},
		{"issued by a fast clock", map[string]any{"iat": after(4 * time.Minute)}, ""},
		{"issued in the future", map[string]any{"iat": after(6 * time.Minute)}, "from the future"},
		{"iat is a text", map[string]any{"iat": "now"}, "unmarshal"},
		{"e-mail is not verified", map[string]any{"email_verified": false}, "not say that the e-mail"},
		{"e-mail is verified as a text", map[string]any{"email_verified": "true"}, "not say that the e-mail"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			login := newPending(now)
			claims := map[string]any{"iss": at, "aud": "pellucid", "sub": "1", "nonce": login.derive("nonce"), "exp": after(time.Hour), "iat": now.Unix(),
				"email": "ann@example.org", "email_verified": true}
			maps.Copy(claims, tt.change)
			maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
			token = sign(key, "RS256", claims)
			p := &provider{OpenID: OpenID{Issuer: at, ClientID: "pellucid", Client: srv.Client()}, back: "http://127.0.0.1/back"}
			of, err := p.metadata()
			if err != nil {
				t.Fatal(err)
			}
			s, err := p.claims(t.Context(), of, "code", login)
			if tt.want == "" && (err != nil || s.Person != "ann@example.org") {
				t.Errorf("%q, %v", s.Person, err)
			} else if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	login := newPending(now)
	claims := map[string]any{"iss": at, "aud": "pellucid", "sub": "1", "nonce": login.derive("nonce"), "exp": after(time.Hour), "iat": now.Unix(), "email": "ann@example.org", "email_verified": true}
	unsigned := strings.Split(sign(key, "none", claims), ".")
	for name, bad := range map[string]string{"another key": sign(other, "RS256", claims), "HS256": sign(key, "HS256", claims), "no signature": unsigned[0] + "." + unsigned[1] + "."} {
		token = bad
		p := &provider{OpenID: OpenID{Issuer: at, ClientID: "pellucid", Client: srv.Client()}}
		of, err := p.metadata()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := p.claims(t.Context(), of, "code", login); err == nil {
			t.Errorf("%s: %q signed in", name, s.Person)
		}
	}
}

// TestPersonNames: the names of two persons stay different. A name that is not a label stays as it is, and is refused later.
func TestPersonNames(t *testing.T) {
	ids, names := []string{"a~b", "a-b", "a|b", "a.b", "a:b", "a@b", "a_b"}, map[string]bool{}
	for _, id := range ids {
		names[personName(id)] = true
	}
	if len(names) != len(ids) {
		t.Errorf("of %q: %v", ids, names)
	}
	for _, tt := range []struct{ claim, value, want string }{
		{"sub", "auth0|12", "auth0/12"},
		{"email", "a|b@example.org", "a|b@example.org"},
		{"email", "a~b@example.org", "a~b@example.org"},
		{"", "Ann@example.org", "Ann@example.org"},
	} {
		p := &provider{OpenID: OpenID{Name: tt.claim}}
		all := map[string]any{"sub": "1", "email": "x", "email_verified": true}
		all[map[string]string{"": "email"}[tt.claim]+tt.claim] = tt.value
		if got, _, err := p.person(all); got != tt.want || err != nil {
			t.Errorf("%s %q: %q, %v", tt.claim, tt.value, got, err)
		}
	}
}
