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

	firstModern = "2026-07-28"
)

// modern reports whether revision v is stateless and mirrors its routing into headers.
func modern(v string) bool { return validVersion(v) && v >= firstModern }

// validVersion reports whether v looks like a revision (a date), so that it
// may stand in a header and be compared.
func validVersion(v string) bool {
	if len(v) != len(firstModern) {
		return false
	}
	for i := range len(v) {
		if dash := i == 4 || i == 7; dash != (v[i] == '-') || !dash && (v[i] < '0' || v[i] > '9') {
			return false
		}
	}
	return true
}

// setRoute mirrors a message's routing into a modern request's headers.
func setRoute(h http.Header, m *Outgoing) {
	if m.Method == "" {
		return // a response has no route
	}
	h.Set(headerMethod, m.Method)
	if m.Route.Name != "" {
		h.Set(headerName, EncodeHeader(m.Route.Name))
	}
	for name, value := range m.Route.Params {
		if validToken(name) {
			h.Set(headerParam+name, EncodeHeader(value))
		}
	}
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// EncodeHeader spells s so that a header carries it: as it is where it is
// visible ASCII with inner spaces only, else =?base64?…?= over its octets, and
// so also what only looks encoded. (MCP 2026-07-28, transports, SEP-2243.)
func EncodeHeader(s string) string {
	plain := validHeaderValue(s) && strings.Trim(s, " ") == s &&
		!(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// DecodeHeader is the inverse of [EncodeHeader]; ok is false for a value that
// claims to be encoded and is not.
func DecodeHeader(s string) (plain string, ok bool) {
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
