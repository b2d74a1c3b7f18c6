// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"net/http"
	"strings"
)

// maxToken is the length of the longest token, in bytes.
const maxToken = 16 << 10

// errAnonymous means that a request shows no credentials of any kind.
var errAnonymous error = &refusal{"", "no credentials"}

// bearer is the bearer token of r. Its error is a *refusal.
//
// A request that names a second token by whatever way is refused as a whole:
// whoever acts on it later might take the other one.
func bearer(r *http.Request) (string, error) {
	if r.URL != nil && r.URL.RawQuery != "" && r.URL.Query().Has("access_token") {
		return "", &refusal{codeRequest, "a token in the query"}
	}
	switch h := r.Header["Authorization"]; len(h) {
	case 0:
		return "", errAnonymous
	case 1:
		return parseBearer(h[0])
	default:
		return "", &refusal{codeRequest, "several Authorization headers"}
	}
}

// parseBearer parses "Bearer" 1*SP b64token (RFC 6750 §2.1).
func parseBearer(h string) (string, error) {
	scheme, token, _ := strings.Cut(h, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", &refusal{"", "another scheme than Bearer"}
	}
	token = strings.TrimLeft(token, " ")
	switch {
	case len(token) > maxToken:
		return "", invalid("the token is too long")
	case !isB64Token(token):
		return "", invalid("the token is ill-formed")
	}
	return token, nil
}

// isB64Token reports whether s is 1*( ALPHA / DIGIT / "-" / "." / "_" / "~" /
// "+" / "/" ) *"=".
func isB64Token(s string) bool {
	s = strings.TrimRight(s, "=")
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		case c == '-', c == '.', c == '_', c == '~', c == '+', c == '/':
		default:
			return false
		}
	}
	return s != ""
}
