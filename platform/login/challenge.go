// SPDX-License-Identifier: Apache-2.0

package login

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/auth"
)

// A challenge is what a WWW-Authenticate header says of the scheme Bearer (RFC 6750, section 3).
type challenge struct {
	bearer   bool
	metadata string   // URL of the protected resource metadata, not yet checked
	err      string   // error code; not to be shown
	scopes   []string // valid ones only
}

// maxChallenge bounds the headers that are read, in bytes.
const maxChallenge = 8 << 10

// maxScopes bounds a list of scopes from a server.
const maxScopes = 100

// parseChallenge reads the challenges of a response (RFC 9110, section 11.6.1). What it cannot
// parse ends the header; what came before it counts.
func parseChallenge(headers []string) (c challenge) {
	for _, h := range headers {
		if len(h) > maxChallenge {
			continue
		}
		if c.read(h); c.bearer {
			return c
		}
	}
	return c
}

// read takes the first challenge of the scheme Bearer in a header.
func (c *challenge) read(h string) {
	for h = skip(h); h != "" && !c.bearer; {
		scheme, rest := token(h)
		if scheme == "" {
			return
		}
		bearer := strings.EqualFold(scheme, "Bearer")
		c.bearer = bearer
		h = skip(rest)
		for h != "" {
			name, value, rest, ok := parameter(h)
			if !ok {
				break // the next challenge, or a token68
			}
			if bearer {
				c.set(strings.ToLower(name), value)
			}
			h = skip(rest)
		}
		if _, rest := token(h); !bearer && len(rest) == len(h) {
			return
		}
	}
}

func (c *challenge) set(name, value string) {
	switch name {
	case "resource_metadata":
		c.metadata = value
	case "error":
		c.err = value
	case "scope":
		c.scopes = validScopes(strings.Fields(value))
	}
}

// validScopes are the scopes of a list that RFC 6749 allows, at most maxScopes.
func validScopes(list []string) (out []string) {
	for _, s := range list {
		if auth.ValidScope(s) && len(out) < maxScopes {
			out = append(out, s)
		}
	}
	return out
}

// skip leaves out what stands between challenges and parameters.
func skip(s string) string { return strings.TrimLeft(s, " \t,") }

// token splits a token (RFC 9110, section 5.6.2) off the front of s.
func token(s string) (tok, rest string) {
	i := 0
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isTokenByte(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}

// parameter splits name=value or name="value" off the front of s.
func parameter(s string) (name, value, rest string, ok bool) {
	name, rest = token(s)
	rest = strings.TrimLeft(rest, " \t")
	if name == "" || rest == "" || rest[0] != '=' {
		return "", "", s, false
	}
	rest = strings.TrimLeft(rest[1:], " \t")
	if rest == "" || rest[0] != '"' {
		value, rest = token(rest)
		if value == "" || rest != "" && !strings.ContainsRune(" \t,", rune(rest[0])) {
			return "", "", s, false // token68
		}
		return name, value, rest, true
	}
	var b strings.Builder
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			return name, b.String(), rest[i+1:], true
		case '\\':
			if i++; i == len(rest) {
				return "", "", s, false
			}
		}
		b.WriteByte(rest[i])
	}
	return "", "", s, false
}
