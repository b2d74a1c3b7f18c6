// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/base64"
	"net/http"
	"strings"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerEvent   = "Last-Event-Id"
)

// setRoute mirrors a message's routing into a modern request's headers.
func setRoute(h http.Header, m *Message) {
	if m.Method == "" {
		return // a response has no route
	}
	h.Set(headerMethod, m.Method)
	if m.Route.Name != "" {
		h.Set(headerName, encodeHeader(m.Route.Name))
	}
	for name, value := range m.Route.Params {
		if validToken(name) {
			h.Set(headerParam+name, encodeHeader(value))
		}
	}
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// encodeHeader spells s so that a header carries it: as it is where it is
// visible ASCII with inner spaces only, else =?base64?…?= over its bytes, and
// so also what only looks encoded. (MCP 2026-07-28, transports, SEP-2243.)
func encodeHeader(s string) string {
	plain := validHeaderValue(s) && strings.Trim(s, " ") == s &&
		!(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// decodeHeader is the inverse of [encodeHeader]; ok is false for a value that
// claims to be encoded and is not.
func decodeHeader(s string) (plain string, ok bool) {
	inner, ok := strings.CutPrefix(s, encodedPrefix)
	if !ok {
		return s, true
	}
	if inner, ok = strings.CutSuffix(inner, encodedSuffix); !ok {
		return s, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(b), err == nil
}

// validToken reports whether s is an RFC 9110 token.
func validToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// validHeaderValue reports whether s can stand in a header as it is: an event
// id goes back in Last-Event-ID, a session id in Mcp-Session-Id.
func validHeaderValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
