// SPDX-License-Identifier: Apache-2.0

// Package auth says who makes an HTTP request, and whether they may.
//
// Credentials are bearer tokens (RFC 6750) in the Authorization header and
// nowhere else: those of a token file (ParseTokens), access tokens of an OAuth
// 2.1 authorization server (ResourceServer), or both (Any). Require and Identify
// put the principal into the request's context and take the credentials out of
// it, so that nothing behind them can pass a client's token on.
//
// No error, log line or String of this package holds a token or a secret, nor
// anything that a client or an issuer has written; what is quoted is the
// operator's configuration.
package auth

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"time"
)

// A Principal is who makes a request.
type Principal struct {
	ID     string   // stable, safe in a log line (validID)
	Scopes []string // may be shared between requests: not to be changed

	Claims []byte    // of its token, as JSON, if it has any: not to be changed
	Until  time.Time // from when on the credential is not accepted; zero: it has no end
	Source Source    // what of the configuration accepts it
}

// A Source names what accepts a credential: a token of a file, or an issuer. It is a digest, from which no secret
// follows; zero: not known.
type Source [sha256.Size]byte

// A Rechecker says whether what an Authenticator has accepted would be accepted now. It is for what outlives the
// request, as a session does: the configuration may have changed since.
type Rechecker interface {
	// Recheck returns the principal of a credential as the configuration has it now, and false where it is not
	// accepted any more. The end of the credential is not looked at.
	Recheck(p Principal) (Principal, bool)
}

// May reports whether p has the scope.
func (p Principal) May(scope string) bool { return slices.Contains(p.Scopes, scope) }

// maxID is the length of the longest principal ID, in bytes.
const maxID = 128

// validID reports whether id may be the ID of a principal: 1 to 128 ASCII
// letters, digits and ". _ - @ : | ~", the first a letter or a digit. That is
// safe unquoted in a log line, a metric label, a file name and a header.
func validID(id string) bool {
	return len(id) <= maxID && isName(id, "._-@:|~")
}

// isName reports whether s is a letter or digit, and then letters, digits and
// bytes of more.
func isName(s, more string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z', '0' <= c && c <= '9':
		case i > 0 && slices.Contains([]byte(more), c):
		default:
			return false
		}
	}
	return s != ""
}

// ValidScope reports whether s is a scope-token of RFC 6749 §3.3.
func ValidScope(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7F || c == '"' || c == '\\' {
			return false
		}
	}
	return s != "" && len(s) <= 128
}

// An Authenticator finds out who makes a request. Its error wraps
// ErrUnauthenticated, unless it cannot be known at present. It must not change
// the request.
//
// An Authenticator that has a method ResourceMetadata() string names the URL of
// the protected resource metadata (RFC 9728) that Require gives to those who
// have no valid token; "" is none. One with a method RequiredScopes() []string
// names scopes that Require tells them to ask for. One that wraps another hands
// both on.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// ErrUnauthenticated means that a request has no credentials, or bad ones.
var ErrUnauthenticated = errors.New("auth: not authenticated")

// A refusal is an error that wraps ErrUnauthenticated. Both fields are constants.
type refusal struct {
	code string // error code of RFC 6750 §3.1; "": there is no bearer token
	why  string
}

func (e *refusal) Error() string        { return ErrUnauthenticated.Error() + ": " + e.why }
func (e *refusal) Is(target error) bool { return target == ErrUnauthenticated }

// invalid refuses a token.
func invalid(why string) error { return &refusal{codeToken, why} }

type contextKey struct{}

// newContext returns a context in which p makes the request.
func newContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// As returns a request that p makes: another process of this installation has authenticated it. It reports
// false for a principal that no Authenticator returns.
func As(r *http.Request, p Principal) (*http.Request, bool) {
	if !validID(p.ID) || slices.ContainsFunc(p.Scopes, func(s string) bool { return !ValidScope(s) }) {
		return nil, false
	}
	return identified(r, p), true
}

// FromContext returns the principal that Require or Identify has found. What
// outlives one request (an MCP session, a sealed state) is bound to its ID.
func FromContext(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// Any tries one Authenticator after the other and returns the first principal
// found. If there is none but one of them could not tell, that is the error.
// Any of nothing knows nobody.
func Any(of ...Authenticator) Authenticator { return anyOf(slices.Clone(of)) }

type anyOf []Authenticator

func (of anyOf) Authenticate(r *http.Request) (Principal, error) {
	var refused, unknown error
	for _, a := range of {
		p, err := a.Authenticate(r)
		switch {
		case err == nil:
			return p, nil
		case errors.Is(err, ErrUnauthenticated):
			refused = err
		case unknown == nil:
			unknown = err
		}
	}
	switch {
	case unknown != nil:
		return Principal{}, unknown
	case refused != nil:
		return Principal{}, refused
	}
	if _, err := bearer(r); err != nil {
		return Principal{}, err
	}
	return Principal{}, invalid("no tokens are configured")
}

// Recheck implements Rechecker.
func (of anyOf) Recheck(p Principal) (Principal, bool) {
	for _, a := range of {
		if r, ok := a.(Rechecker); ok {
			if now, ok := r.Recheck(p); ok {
				return now, true
			}
		}
	}
	return Principal{}, false
}

// ResourceMetadata is the first one that there is.
func (of anyOf) ResourceMetadata() string {
	for _, a := range of {
		if u := resourceMetadata(a); u != "" {
			return u
		}
	}
	return ""
}

// RequiredScopes are the first ones that there are.
func (of anyOf) RequiredScopes() []string {
	for _, a := range of {
		if s := requiredScopes(a); len(s) > 0 {
			return s
		}
	}
	return nil
}

func requiredScopes(a Authenticator) []string {
	if r, ok := a.(interface{ RequiredScopes() []string }); ok {
		return r.RequiredScopes()
	}
	return nil
}

func resourceMetadata(a Authenticator) string {
	if m, ok := a.(interface{ ResourceMetadata() string }); ok {
		return m.ResourceMetadata()
	}
	return ""
}
