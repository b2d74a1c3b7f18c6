// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The error codes of RFC 6750 §3.1.
const (
	codeRequest = "invalid_request"    // 400
	codeToken   = "invalid_token"      // 401
	codeScope   = "insufficient_scope" // 403
)

// realm is the protection space, the same for every resource of a server.
const realm = "pellucid"

// Require lets only those through to next who have the scope; with scope "",
// everybody who is known. Others get 400, 401 or 403 with a WWW-Authenticate
// header (RFC 6750), or 503 if it cannot be known at present who they are.
//
// next finds the principal by FromContext, and no Authorization header: a token
// that was issued for this server is nobody else's business.
//
// A nil Authenticator knows nobody. A scope that no token could have (RFC 6749
// §3.3) is a mistake in the program and panics.
func Require(a Authenticator, scope string, next http.Handler) http.Handler {
	if scope != "" && !ValidScope(scope) {
		panic("auth: Require with something that is not a scope")
	}
	return &guard{auth: orNobody(a), scope: scope, next: next}
}

// RequireLimited is Require with a limit for refusals, made by NewLimit: it counts them by address, or by the
// principal that lacks the scope. Requests without a valid token do not use up the limits of others.
func RequireLimited(a Authenticator, scope string, limit func(http.Handler) http.Handler, next http.Handler) http.Handler {
	g := Require(a, scope, next).(*guard)
	g.limit = limit
	return g
}

// RequireAlso lets only those through to next who have all scopes. It stands behind
// a Require of the same Authenticator and refuses as that does.
func RequireAlso(a Authenticator, scopes []string, next http.Handler) http.Handler {
	g := &guard{auth: orNobody(a), scope: strings.Join(scopes, " ")}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := FromContext(r.Context())
		if slices.ContainsFunc(scopes, func(s string) bool { return !p.May(s) }) {
			g.challenge(w, http.StatusForbidden, codeScope)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Identify lets those through to next who are known and also those who show no
// credentials at all, without a principal. Bad credentials are refused as by
// Require: whoever shows some does not want to be taken for nobody.
func Identify(a Authenticator, next http.Handler) http.Handler {
	return &guard{auth: orNobody(a), anonymous: true, next: next}
}

// IdentifyLimited is Identify with a limit for refusals, as in RequireLimited.
func IdentifyLimited(a Authenticator, limit func(http.Handler) http.Handler, next http.Handler) http.Handler {
	return &guard{auth: orNobody(a), anonymous: true, limit: limit, next: next}
}

func orNobody(a Authenticator) Authenticator {
	if a == nil {
		return Any()
	}
	return a
}

type guard struct {
	auth      Authenticator
	scope     string
	anonymous bool
	limit     func(http.Handler) http.Handler // of refusals, if any
	next      http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, known := FromContext(r.Context()) // by a guard in front of this one
	if g.anonymous && !known {
		if _, err := bearer(r); err == errAnonymous {
			g.next.ServeHTTP(w, r)
			return
		}
	}
	var err error
	if !known {
		p, err = g.auth.Authenticate(r)
	}
	// A principal without a valid id is not authenticated.
	if known = err == nil && validID(p.ID); known {
		if r = identified(r, p); g.scope == "" || p.May(g.scope) {
			g.next.ServeHTTP(w, r)
			return
		}
	}
	var refuse http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.refuseRequest(w, r, known, err) })
	if g.limit != nil {
		refuse = g.limit(refuse)
	}
	refuse.ServeHTTP(w, r)
}

// refuseRequest answers a request that may not pass: its principal, if known, lacks the scope.
func (g *guard) refuseRequest(w http.ResponseWriter, r *http.Request, known bool, err error) {
	switch {
	case known:
		g.challenge(w, http.StatusForbidden, codeScope)
	case err == nil:
		g.challenge(w, http.StatusUnauthorized, codeToken)
	case !errors.Is(err, ErrUnauthenticated):
		tooSoon(w, http.StatusServiceUnavailable, retryAfter(err))
	default:
		code := refusalCode(r, err)
		status := http.StatusUnauthorized
		switch code {
		case codeRequest:
			status = http.StatusBadRequest
		case codeScope:
			status = http.StatusForbidden
		}
		g.challenge(w, status, code)
	}
}

// identified is r as p makes it, without the credentials.
func identified(r *http.Request, p Principal) *http.Request {
	r = r.WithContext(newContext(r.Context(), p))
	r.Header = r.Header.Clone()
	r.Header.Del("Authorization")
	return r
}

// refusalCode is the error code for err. Those who have shown nothing get none
// (RFC 6750 §3.1), whatever the Authenticator says.
func refusalCode(r *http.Request, err error) string {
	if e, ok := errors.AsType[*refusal](err); ok {
		return e.code
	}
	if len(r.Header["Authorization"]) == 0 {
		return ""
	}
	return codeToken
}

// challenge answers with a constant text and a WWW-Authenticate header, which names
// every scope that this request needs: clients ask for those and no others.
func (g *guard) challenge(w http.ResponseWriter, status int, code string) {
	scopes := slices.Concat(requiredScopes(g.auth), strings.Fields(g.scope))
	slices.Sort(scopes)
	var b strings.Builder
	b.WriteString("Bearer realm=" + quoted(realm))
	for _, p := range [...][2]string{
		{"error", code},
		{"scope", strings.Join(slices.Compact(scopes), " ")},
		{"resource_metadata", resourceMetadata(g.auth)}, // RFC 9728 §5.1
	} {
		if p[1] != "" {
			b.WriteString(", " + p[0] + "=" + quoted(p[1]))
		}
	}
	w.Header().Set("WWW-Authenticate", b.String())
	refuse(w, status)
}

// quoted is s as a quoted-string of RFC 9110 §5.6.4.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// An unavailable error means that it cannot be known who makes a request.
type unavailable struct {
	why   string        // constant
	after time.Duration // when it may be known
}

func (e *unavailable) Error() string { return "auth: not known at present: " + e.why }

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*unavailable](err); ok {
		return e.after
	}
	return 5 * time.Second
}

// tooSoon answers that the client may retry after that time.
func tooSoon(w http.ResponseWriter, status int, after time.Duration) {
	SetRetryAfter(w, after)
	refuse(w, status)
}

// SetRetryAfter sets the header Retry-After.
func SetRetryAfter(w http.ResponseWriter, after time.Duration) {
	seconds := min(max(1, math.Ceil(after.Seconds())), 3600)
	w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
}

// refuse answers with the status alone.
func refuse(w http.ResponseWriter, status int) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, http.StatusText(status), status)
}
