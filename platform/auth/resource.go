// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ResourceOptions say which access tokens a ResourceServer accepts. Durations of
// 0 stand for the value named; a negative one is a mistake.
type ResourceOptions struct {
	// Resource is the identifier of this server (RFC 8707): the https URL by which
	// clients call it, without a query or fragment. The "aud" of a token must hold
	// it, byte for byte.
	Resource string

	// Audiences are further values of "aud" that mean this server and no other,
	// for an issuer that does not put the resource there.
	Audiences []string

	// Issuers are the authorization servers whose tokens are accepted: one or more.
	Issuers []Issuer

	// Algorithms are the signatures accepted; none: EdDSA, ES256, PS256 and RS256,
	// which are all that there are.
	Algorithms []string

	// Scopes are those that every token must have, all of them. The metadata tell
	// clients to ask for them; what single handlers want besides is told by those.
	Scopes []string

	skew    time.Duration // between the clocks of issuer and server; 30 s, at most 5 min
	refresh time.Duration // age at which keys are fetched again; 15 min, at least 1 min
	stale   time.Duration // age up to which keys count while the issuer is unreachable; 6 h, at least refresh
	timeout time.Duration // of fetching keys, all in all; 10 s

	// transport fetches metadata and keys; nil: one that verifies TLS, follows no
	// redirect and keeps no connection, through the proxy of the environment.
	transport http.RoundTripper

	// DangerouslyHTTPOnLoopback allows http in the place of https where the host is
	// localhost or a loopback address.
	DangerouslyHTTPOnLoopback bool

	Log *slog.Logger // of failures to fetch keys; nil: none
}

// An Issuer is an authorization server.
type Issuer struct {
	// Name begins the IDs of its principals, "NAME:sub", so that no two issuers,
	// and no issuer and a token file, can mean one another's: 1 to 32 ASCII
	// letters, digits and ". _ -".
	Name string

	// URL is the issuer identifier, as in "iss", but for the slash of an empty path.
	URL string

	// JWKS is the URL of its keys; "": the one that its metadata names (RFC 8414,
	// or OpenID Connect Discovery).
	JWKS string

	// DangerouslyUntyped accepts tokens whose header has no "typ". They cannot be
	// told from other tokens that the issuer signs.
	DangerouslyUntyped bool
}

// A ResourceServer authenticates by JWT access tokens (RFC 9068) that are checked
// here, against the keys of their issuers. It fetches keys when it needs them,
// in one goroutine for each issuer, which ends after Timeout at the latest.
type ResourceServer struct {
	resource    *url.URL
	audiences   []string
	algorithms  []jose.SignatureAlgorithm
	scopes      []string
	issuers     map[string]*issuer // by IssuerKey
	metadata    []byte             // RFC 9728
	metadataURL string
	skew        time.Duration
	now         func() time.Time
}

type issuer struct {
	name    string
	untyped bool
	keys    *keySet
}

// algorithms are all signatures that there are: asymmetric ones, so that whoever
// can check a token cannot make one.
var algorithms = []jose.SignatureAlgorithm{jose.EdDSA, jose.ES256, jose.PS256, jose.RS256}

// NewResourceServer makes a ResourceServer. It fetches nothing yet. The error
// lists every mistake.
func NewResourceServer(o ResourceOptions) (*ResourceServer, error) {
	var errs []error
	mistake := func(format string, args ...any) { errs = append(errs, fmt.Errorf("auth: "+format, args...)) }
	allowed := func(d *time.Duration, what string, usual, least, most time.Duration) {
		if *d == 0 {
			*d = max(usual, least)
		} else if *d < least || *d > most {
			mistake("%s is not between %v and %v", what, least, most)
		}
	}
	allowed(&o.skew, "Skew", 30*time.Second, 0, 5*time.Minute)
	allowed(&o.refresh, "Refresh", 15*time.Minute, time.Minute, 24*time.Hour)
	allowed(&o.stale, "Stale", 6*time.Hour, o.refresh, 7*24*time.Hour)
	allowed(&o.timeout, "Timeout", 10*time.Second, time.Millisecond, time.Minute)

	s := &ResourceServer{skew: o.skew, issuers: map[string]*issuer{}, now: time.Now}
	var err error
	if s.resource, err = ParseURL(o.Resource, o.DangerouslyHTTPOnLoopback); err != nil {
		mistake("resource %s: %w", quoteURL(o.Resource), err)
	} else {
		s.metadataURL = InsertWellKnown(s.resource, metadataPath)
	}
	s.audiences = append([]string{o.Resource}, o.Audiences...)
	if slices.Contains(o.Audiences, "") {
		mistake("an empty audience")
	}
	for _, a := range o.Algorithms {
		if !slices.Contains(algorithms, jose.SignatureAlgorithm(a)) {
			mistake("not one of the algorithms %v: %s", algorithms, finding.Quote(a))
		}
		s.algorithms = append(s.algorithms, jose.SignatureAlgorithm(a))
	}
	if len(s.algorithms) == 0 {
		s.algorithms = algorithms
	}
	for _, scope := range o.Scopes {
		if !ValidScope(scope) {
			mistake("not a scope: %s", finding.Quote(scope))
		}
	}
	for _, err := range s.addIssuers(o) {
		mistake("%w", err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s.scopes = slices.Clone(o.Scopes)
	s.metadata = metadataDocument(o)
	return s, nil
}

// addIssuers returns the mistakes in o.Issuers.
func (s *ResourceServer) addIssuers(o ResourceOptions) (errs []error) {
	if len(o.Issuers) == 0 {
		errs = append(errs, errors.New("no issuers"))
	}
	names := map[string]bool{}
	client := newClient(o.transport)
	for i, iss := range o.Issuers {
		mistake := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("issuers[%d]: "+format, append([]any{i}, args...)...))
		}
		if len(iss.Name) > 32 || !isName(iss.Name, "._-") {
			mistake("not a name: %s", finding.Quote(iss.Name))
		} else if names[strings.ToLower(iss.Name)] {
			mistake("a second one of this name: %s", finding.Quote(iss.Name))
		}
		names[strings.ToLower(iss.Name)] = true
		if _, err := ParseURL(iss.URL, o.DangerouslyHTTPOnLoopback); err != nil {
			mistake("%s: %w", quoteURL(iss.URL), err)
		}
		if iss.JWKS != "" {
			if _, err := ParseURL(iss.JWKS, o.DangerouslyHTTPOnLoopback); err != nil {
				mistake("%s: %w", quoteURL(iss.JWKS), err)
			}
		}
		if s.issuers[IssuerKey(iss.URL)] != nil {
			mistake("a second one with this URL: %s", quoteURL(iss.URL))
		}
		src := &source{client: client, issuer: iss.URL, jwks: iss.JWKS, loopback: o.DangerouslyHTTPOnLoopback}
		s.issuers[IssuerKey(iss.URL)] = &issuer{name: iss.Name, untyped: iss.DangerouslyUntyped, keys: &keySet{
			load:    src.load,
			now:     func() time.Time { return s.now() },
			refresh: o.refresh, stale: o.stale, timeout: o.timeout,
			log: logger(o.Log).With("issuer", iss.Name), checking: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
		}}
	}
	return errs
}

// quoteURL shows a URL, unless there may be a password in it.
func quoteURL(s string) string {
	if strings.Contains(s, "@") {
		return "(with a user, not shown)"
	}
	return finding.Quote(s)
}

func logger(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}

// Authenticate checks the access token of r. What costs nothing is checked
// first, so that only a token that would be good if its signature were may cause
// a fetch.
func (s *ResourceServer) Authenticate(r *http.Request) (Principal, error) {
	token, err := bearer(r)
	if err != nil {
		return Principal{}, err
	}
	return s.verify(r.Context(), token)
}

func (s *ResourceServer) verify(ctx context.Context, token string) (Principal, error) {
	h, c, err := parseJWT(token)
	if err != nil {
		return Principal{}, err
	}
	if !slices.Contains(s.algorithms, h.alg) {
		return Principal{}, invalid("the token's algorithm is not accepted")
	}
	iss := s.issuers[IssuerKey(c.iss)]
	switch {
	case iss == nil:
		return Principal{}, invalid("the token's issuer is unknown")
	case !isAccessToken(h.typ) && (h.typ != "" || !iss.untyped):
		return Principal{}, invalid("the token is not an access token")
	case !slices.ContainsFunc(c.aud, func(a string) bool { return slices.Contains(s.audiences, a) }):
		return Principal{}, invalid("the token is for another audience")
	}
	if err := c.checkTimes(s.now(), s.skew); err != nil {
		return Principal{}, err
	}
	keys, load, err := iss.keys.findKeys(ctx, h)
	if err != nil {
		return Principal{}, err
	}
	signed, err := iss.keys.verifySignature(ctx, token, h.alg, keys, load)
	if err != nil {
		return Principal{}, err
	}
	if !signed {
		return Principal{}, invalid("the token's signature is wrong")
	}
	p := Principal{ID: principalID(iss.name, c.sub), Scopes: c.scopes, Claims: c.raw, Source: s.source(IssuerKey(c.iss)), Until: c.until(s.skew)}
	if slices.ContainsFunc(s.scopes, func(scope string) bool { return !p.May(scope) }) {
		return Principal{}, &refusal{codeScope, "the token lacks a scope of the resource"}
	}
	return p, nil
}

// principalID is the ID of an issuer's subject. A subject that is not safe to
// show stands as "~" and its SHA-256 in base64url; one that is has no "~".
func principalID(issuer, subject string) string {
	if id := issuer + ":" + subject; len(id) <= maxID && isName(subject, "._-@:|") {
		return id
	}
	digest := sha256.Sum256([]byte(subject))
	return issuer + ":~" + base64.RawURLEncoding.EncodeToString(digest[:])
}

// source names an issuer of tokens for this server.
func (s *ResourceServer) source(issuer string) Source {
	return sha256.Sum256([]byte("issuer " + s.resource.String() + " " + issuer))
}

// Recheck implements Rechecker: an access token counts as long as its issuer is configured, under the name by which
// the principal is known.
func (s *ResourceServer) Recheck(p Principal) (Principal, bool) {
	for url, iss := range s.issuers {
		if s.source(url) == p.Source && strings.HasPrefix(p.ID, iss.name+":") {
			return p, true
		}
	}
	return Principal{}, false
}

// ResourceMetadata is the URL of the document that Metadata serves.
func (s *ResourceServer) ResourceMetadata() string { return s.metadataURL }

// RequiredScopes are those that every token must have.
func (s *ResourceServer) RequiredScopes() []string { return s.scopes }
