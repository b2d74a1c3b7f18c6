// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// OpenID is a provider of OpenID Connect that says who people are.
type OpenID struct {
	Issuer   string
	ClientID string
	Secret   string       // "": a public client, which PKCE alone protects
	Scopes   []string     // asked for beside openid
	Name     string       // the claim that names the person; "": email, which has to be verified
	Groups   string       // the claim with the groups; "": groups
	Client   *http.Client // nil: http.DefaultClient
}

// A provider asks the metadata of the issuer when the first person signs in, and again after a failure: the console
// starts although the provider does not answer.
type provider struct {
	OpenID
	back string // where it leads back

	mu    sync.Mutex
	known *oidc.Provider
	away  error     // of the last attempt, where it failed
	asked time.Time // then
}

// askEvery is how long a provider that did not answer is not asked again.
const askEvery = 3 * time.Second

// source names the provider in a session, which ends where another one takes its place.
func (p *provider) source() [sha256.Size]byte {
	return sha256.Sum256([]byte("provider " + p.Issuer + " " + p.ClientID))
}

func (p *provider) context(ctx context.Context) context.Context {
	if p.Client != nil {
		ctx = oidc.ClientContext(ctx, p.Client)
	}
	return ctx
}

func (p *provider) metadata() (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known != nil {
		return p.known, nil
	}
	if p.away != nil && time.Since(p.asked) < askEvery {
		return nil, p.away
	}
	p.known, p.away = p.ask()
	p.asked = time.Now()
	return p.known, p.away
}

func (p *provider) ask() (*oidc.Provider, error) {
	// The provider is kept, and with it this context: its keys are fetched again long after this request.
	ctx := p.context(context.Background())
	asked := make(chan struct{})
	var known *oidc.Provider
	var err error
	go func() {
		defer close(asked)
		if known, err = oidc.NewProvider(ctx, p.Issuer); err == nil {
			return
		}
		other := auth.IssuerKey(p.Issuer) // another spelling of the same issuer
		if other == p.Issuer {
			other += "/"
		}
		if auth.IssuerKey(other) == auth.IssuerKey(p.Issuer) {
			if again, unfit := oidc.NewProvider(ctx, other); unfit == nil {
				known, err = again, nil
			}
		}
	}()
	select {
	case <-asked:
	case <-time.After(10 * time.Second):
		return nil, errors.New("console: the metadata of the provider did not come within 10 s")
	}
	if err != nil {
		return nil, fmt.Errorf("console: read the metadata of the provider: %w", err)
	}
	return known, nil
}

func (p *provider) config(of *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret, Endpoint: of.Endpoint(), RedirectURL: p.back, Scopes: append([]string{oidc.ScopeOpenID}, p.Scopes...)}
}

// Names of the cookie of a login under way. It is lax, since the browser comes back from another site; it
// lasts ten minutes and does not sign a person in by itself.
const (
	loginTLS   = "__Host-pellucid-login"
	loginPlain = "pellucid-login"
	loginLife  = 10 * time.Minute
)

func (c *Console) loginCookie(r *http.Request, value string) *http.Cookie {
	ck := &http.Cookie{Name: loginPlain, Value: value, Path: Base + "login/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(loginLife / time.Second)}
	if c.secure(r) {
		ck.Name, ck.Path, ck.Secure = loginTLS, "/", true
	}
	if value == "" {
		ck.MaxAge = -1
	}
	return ck
}

// A pending login is the secret in that cookie. State, nonce and the verifier of PKCE are derived from it, so that
// any replica can finish the login.
type pending struct{ value string }

func newPending(now time.Time) pending {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return pending{strconv.FormatInt(now.Unix(), 10) + "." + base64.RawURLEncoding.EncodeToString(b[:])}
}

func (p pending) derive(what string) string {
	m := hmac.New(sha256.New, []byte(p.value))
	m.Write([]byte(what))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func (p pending) beganAt() (at time.Time, ok bool) {
	s, _, ok := strings.Cut(p.value, ".")
	n, err := strconv.ParseInt(s, 10, 64)
	return time.Unix(n, 0), ok && err == nil && len(p.value) < 80
}

// fresh reports whether the login was begun within loginLife.
func (p pending) fresh(now time.Time) bool {
	at, ok := p.beganAt()
	age := now.Sub(at)
	return ok && age >= -time.Minute && age < loginLife
}

// toProvider sends the browser to the provider.
func (c *Console) toProvider(q *request) answer {
	if c.provider == nil {
		return notFound()
	}
	of, err := c.provider.metadata()
	if err != nil {
		return providerAway(err)
	}
	p := newPending(q.now)
	to := c.provider.config(of).AuthCodeURL(p.derive("state"), oidc.Nonce(p.derive("nonce")), oauth2.S256ChallengeOption(p.derive("verifier")))
	return withCookies{elsewhere(to), []*http.Cookie{c.loginCookie(q.Request, p.value)}}
}

// elsewhere leads to the provider that the operator has configured.
type elsewhere string

func (to elsewhere) write(_ *Console, w http.ResponseWriter, _ *request) {
	w.Header().Set("Location", string(to))
	w.WriteHeader(http.StatusSeeOther)
}

// fromProvider signs in the person whom the provider names.
func (c *Console) fromProvider(q *request) answer {
	if c.provider == nil {
		return notFound()
	}
	done := c.loginCookie(q.Request, "")
	refuse := func(says Own, err error) answer {
		s := state{status: http.StatusForbidden, title: "Not signed in", says: says, why: "Nothing was changed.", kind: "denied", to: pathTo("login"), toWord: "Try again"}
		if err != nil {
			c.opt.Log.Warn("console: a login by the provider failed", "error", finding.Quote(err.Error()))
		}
		c.record(q.Context(), Act{Did: didRefuse, How: signin.ByOpenID, Why: whyOpenID})
		return withCookies{s, []*http.Cookie{done}}
	}
	ck, err := q.Cookie(done.Name)
	p := pending{}
	if err == nil {
		p.value = ck.Value
	}
	query := q.URL.Query()
	if !p.fresh(q.now) || subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(p.derive("state"))) != 1 {
		return refuse("This login was not begun in this browser, or is older than ten minutes.", nil)
	}
	if query.Get("code") == "" {
		return refuse("The provider did not sign you in.", errors.New("the provider answered without a code"))
	}
	if !c.attempts.Allow() {
		return tooMany()
	}
	of, err := c.provider.metadata()
	if err != nil {
		return providerAway(err)
	}
	s, err := c.provider.claims(q.Context(), of, query.Get("code"), p)
	if err != nil {
		return refuse("The provider did not say who you are.", err)
	}
	session, refused := c.begin(q, s)
	if refused != nil {
		return withCookies{refused, []*http.Cookie{done}}
	}
	return withCookies{landing{}, []*http.Cookie{done, session}}
}

// claims exchanges the code and returns a session of the person that ends with the id_token.
func (p *provider) claims(ctx context.Context, of *oidc.Provider, code string, login pending) (s signin.Session, err error) {
	ctx = p.context(ctx)
	token, err := p.config(of).Exchange(ctx, code, oauth2.VerifierOption(login.derive("verifier")))
	if err != nil {
		return s, fmt.Errorf("exchange the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return s, errors.New("the answer has no id_token")
	}
	id, err := of.Verifier(&oidc.Config{ClientID: p.ClientID, SkipIssuerCheck: true}).Verify(ctx, raw)
	if err != nil {
		return s, fmt.Errorf("check the id_token: %w", err)
	}
	var all map[string]any
	if err := id.Claims(&all); err != nil {
		return s, fmt.Errorf("read the claims: %w", err)
	}
	if err := p.checkClaims(id, all, login, time.Now()); err != nil {
		return s, err
	}
	s = signin.Session{How: signin.ByOpenID, Source: p.source(), Until: id.Expiry}
	s.Person, s.Scopes, err = p.person(all)
	return s, err
}

// skew is how far the clocks of the provider and of this program may differ. The library allows as much for nbf.
const skew = 5 * time.Minute

// checkClaims checks what OpenID Connect Core 3.1.3.7 asks for beside the signature, the audience and the expiry, which
// the library has checked.
func (p *provider) checkClaims(id *oidc.IDToken, all map[string]any, login pending, now time.Time) error {
	azp, there := all["azp"]
	began, _ := login.beganAt()
	switch {
	case auth.IssuerKey(id.Issuer) != auth.IssuerKey(p.Issuer):
		return errors.New("the id_token is of another issuer")
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(login.derive("nonce"))) != 1:
		return errors.New("the nonce of the id_token is another one")
	case there && azp != p.ClientID:
		return errors.New("the id_token was issued to another client (azp)")
	case !there && len(id.Audience) > 1:
		return errors.New("the id_token has several audiences and does not name its client (azp)")
	case id.Subject == "":
		return errors.New("the id_token has no subject")
	case id.IssuedAt.Before(began.Add(-skew)): // also where it has no iat
		return errors.New("the id_token is older than this login (iat)")
	case id.IssuedAt.After(now.Add(skew)):
		return errors.New("the id_token is from the future (iat)")
	}
	return nil
}

func (p *provider) person(all map[string]any) (person string, groups []string, err error) {
	claim := p.Name
	if claim == "" {
		claim = "email"
	}
	person, _ = all[claim].(string)
	if claim == "sub" {
		person = strings.ReplaceAll(person, "|", "/") // as "auth0|1234": a label has none
	}
	if person == "" {
		return "", nil, errors.New("the id_token does not have the claim that names the person (console.openid.name)")
	}
	if verified, is := all["email_verified"].(bool); claim == "email" && (!is || !verified) {
		return "", nil, errors.New("the provider does not say that the e-mail address is verified: set console.openid.name to another claim, such as sub")
	}
	claim = p.Groups
	if claim == "" {
		claim = "groups"
	}
	list, _ := all[claim].([]any)
	for _, g := range list {
		if s, ok := g.(string); ok && len(s) <= 256 && len(groups) < 4096 {
			groups = append(groups, s)
		}
	}
	return person, groups, nil
}

// landing is the page behind a login: the browser comes from another site, and sends the strict cookie only
// with what this page itself opens.
type landing struct{}

func (landing) write(c *Console, w http.ResponseWriter, q *request) {
	w.Header().Set("Refresh", "0;url="+Base)
	state{status: http.StatusOK, title: "Signed in", says: "You are signed in.", to: Base, toWord: "Open the console"}.write(c, w, q)
}

func providerAway(err error) state {
	return state{status: http.StatusBadGateway, title: "The provider does not answer", says: "The provider that signs people in does not answer.",
		why: "Try again in a minute. The log of the program has the reason.", kind: "denied", cause: err}
}
