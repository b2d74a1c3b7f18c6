// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/rfc3339"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bounds of a token file.
const (
	maxTokenFile = 1 << 20 // bytes
	maxTokens    = 4096
	minSecret    = 32 // bytes
)

// tokenFile is the format that ParseTokens reads.
type tokenFile struct {
	Tokens []struct {
		Principal string   `json:"principal"`
		Scopes    []string `json:"scopes"`
		Token     string   `json:"token"`
		Expires   *string  `json:"expires"`
	} `json:"tokens"`
}

// ParseTokens reads a token file: who has which bearer token, and which scopes.
//
//	{"tokens": [
//	  {"principal": "lab-1", "scopes": ["ground:query"], "token": "env:LAB1"},
//	  {"principal": "lab-1", "scopes": ["ground:query", "ground:ingest"],
//	   "token": "file:/etc/pellucid/lab1", "expires": "2027-01-01T00:00:00Z"}
//	]}
//
// A principal is 1 to 64 ASCII letters, digits and ". _ - @", the first a letter
// or a digit; it may have several tokens, so that one can be replaced without a
// gap. A token is only ever a reference. A secret is 32 bytes or more that a
// Bearer header can hold (one line end behind it is not part of it), must not be
// that of another entry, and must look random: eight different bytes at least
// and no repetition. That finds a placeholder; it cannot measure what a secret is
// worth, so generate one, as by "openssl rand -hex 32".
//
// secret resolves a reference such as env:NAME or file:PATH. The error lists
// every mistake, and holds neither a secret nor what stands where a reference
// should.
func ParseTokens(src []byte, secret func(ref string) (string, error)) (Authenticator, error) {
	var file tokenFile
	if err := strictjson.Unmarshal(src, &file, strictjson.Limits{Bytes: maxTokenFile, Depth: 8}); err != nil {
		return nil, fmt.Errorf("auth: token file: %w", err)
	}
	if n := len(file.Tokens); n == 0 || n > maxTokens {
		return nil, fmt.Errorf("auth: token file: %d tokens, want 1 to %d", n, maxTokens)
	}
	out := &tokens{now: time.Now, byDigest: map[[sha256.Size]byte]int{}}
	var errs []error
	for i, t := range file.Tokens {
		mistake := func(field, why string) {
			errs = append(errs, fmt.Errorf("auth: token file: tokens[%d].%s: %s", i, field, why))
		}
		e := entry{principal: Principal{ID: t.Principal, Scopes: t.Scopes}}
		if len(t.Principal) > 64 || !isName(t.Principal, "._-@") {
			mistake("principal", "not an ID: "+finding.Quote(t.Principal))
		}
		if len(t.Scopes) == 0 {
			mistake("scopes", "none")
		}
		for _, s := range t.Scopes {
			if !ValidScope(s) {
				mistake("scopes", "not a scope: "+finding.Quote(s))
			}
		}
		if t.Expires != nil {
			var ok bool
			if e.expires, ok = rfc3339.Parse(*t.Expires); !ok {
				mistake("expires", "not a time of RFC 3339: "+finding.Quote(*t.Expires))
			}
			e.principal.Until = e.expires
		}
		if digest, why := resolve(t.Token, secret); why != "" {
			mistake("token", why)
		} else if j, twice := out.byDigest[digest]; twice {
			mistake("token", "the same secret as that of tokens["+strconv.Itoa(j)+"]")
		} else {
			out.byDigest[digest] = i
			e.principal.Source = sha256.Sum256(append([]byte("token "), digest[:]...))
		}
		out.entries = append(out.entries, e)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return out, nil
}

// resolve returns the digest of the secret that ref stands for, or a constant
// text that says what is wrong. The text does not show ref: people put the
// secret itself there.
func resolve(ref string, secret func(string) (string, error)) (digest [sha256.Size]byte, why string) {
	kind, name, ok := strings.Cut(ref, ":")
	if !ok || name == "" || kind != "env" && kind != "file" {
		return digest, "not a reference: want env:NAME or file:PATH"
	}
	s, err := secret(ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return digest, "the reference leads nowhere"
	case errors.Is(err, fs.ErrPermission):
		return digest, "what it refers to must not be read: permission denied"
	case err != nil && kind == "env":
		return digest, "the reference cannot be resolved: is the variable set?"
	case err != nil:
		return digest, "the reference cannot be resolved: is it a file with one line?"
	}
	s = strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
	if why := weakness(s); why != "" {
		return digest, why
	}
	return sha256.Sum256([]byte(s)), ""
}

// weakness says what is wrong with a secret; "" is nothing.
func weakness(s string) string {
	switch {
	case s == "":
		return "the secret is empty"
	case len(s) > maxToken:
		return "the secret is too long"
	case !isB64Token(s):
		return "the secret holds what a Bearer header cannot: want letters, digits and - . _ ~ + /"
	case len(s) < minSecret:
		return "the secret is too short: want " + strconv.Itoa(minSecret) + " bytes"
	}
	distinct := map[byte]bool{}
	steps := 0 // bytes that follow from the one before
	for i := range len(s) {
		distinct[s[i]] = true
		if i > 0 && (s[i] == s[i-1] || s[i] == s[i-1]+1 || s[i] == s[i-1]-1) {
			steps++
		}
	}
	// 32 random hexadecimal digits have fewer than eight different ones once in
	// 10^7 times.
	if len(distinct) < 8 || steps > len(s)/2 || isRepetition(s) {
		return "the secret does not look random"
	}
	return ""
}

// isRepetition reports whether s is one shorter text written again and again.
func isRepetition(s string) bool {
	return strings.Contains((s + s)[1:2*len(s)-1], s)
}

// tokens are those of a token file. It holds digests, no secrets.
type tokens struct {
	entries  []entry
	byDigest map[[sha256.Size]byte]int // index of the entry, by the digest of its token
	now      func() time.Time
}

type entry struct {
	principal Principal
	expires   time.Time // zero: never
}

// Authenticate looks up the digest of the token. The time that it takes reveals nothing about a token, since
// a caller cannot choose a digest.
func (t *tokens) Authenticate(r *http.Request) (Principal, error) {
	token, err := bearer(r)
	if err != nil {
		return Principal{}, err
	}
	found, known := t.byDigest[sha256.Sum256([]byte(token))]
	if !known {
		return Principal{}, invalid("the token is unknown")
	}
	e := &t.entries[found]
	if !e.expires.IsZero() && !t.now().Before(e.expires) {
		return Principal{}, invalid("the token has expired")
	}
	return e.principal, nil
}

// Recheck implements Rechecker: a token of the file counts as long as the file has it, for the principal and the scopes
// that the file gives it now.
func (t *tokens) Recheck(p Principal) (Principal, bool) {
	for i := range t.entries {
		if now := t.entries[i].principal; now.Source == p.Source && now.ID == p.ID {
			return now, true
		}
	}
	return Principal{}, false
}

// String says how many tokens there are and nothing else of them.
func (t *tokens) String() string { return "auth: " + strconv.Itoa(len(t.entries)) + " tokens" }

// GoString is String.
func (t *tokens) GoString() string { return t.String() }
