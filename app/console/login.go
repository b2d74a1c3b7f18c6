// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// A Grant gives a role to those who have a scope or are in a group. Who has no grant may not sign in.
type Grant struct {
	Scope   string   // of a bearer token, or a group that the provider names
	Role    Role     // Viewer, Reviewer or Admin
	Servers []string // for which; nil: all
}

// An Act is what a person did or tried that is not a decision about an item: those have records of their own.
type Act struct {
	Did    string // "signed-in", "signed-out", "refused", "exported" or DidRevoke
	How    signin.How
	Person string // "": not known
	By     string // of DidRevoke: who ended the session of Person; "": the configuration did
	Why    string // of a refusal: a word of ours
}

// Acts that packages beside this one record or watch.
const (
	DidSignIn = "signed-in"
	DidRevoke = "revoked" // the session of Person
)

// Acts and reasons that are recorded.
const (
	didSignOut = "signed-out"
	didRefuse  = "refused"
	didExport  = "exported" // a case

	whySpent   = "link-spent"
	whyToken   = "token-not-valid"
	whyOpenID  = "provider-refused"
	whyNoGrant = "no-role"
	whyRole    = "role-too-low"
	whyOrigin  = "other-site"
)

func (c *Console) record(ctx context.Context, a Act) {
	if c.opt.Record != nil {
		c.opt.Record(ctx, a)
	}
}

// Limits of one address, IPv4 or the /64 of IPv6. Behind a proxy that is not trusted, all people have one address.
const (
	doorRate       = 2 // a second
	doorBurst      = 40
	doorConcurrent = 16
)

// openDoor makes what stands before the ways of signing in.
func (c *Console) openDoor() (err error) {
	if c.opt.Tokens != nil {
		var ok bool
		if c.recheck, ok = c.opt.Tokens.(auth.Rechecker); !ok {
			return errors.New("console: tokens that cannot be checked again make no sessions")
		}
	}
	refuse := func(why state) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			why.write(c, w, &request{Request: r, now: c.opt.Now(), body: w})
		})
	}
	if c.door, err = auth.NewLimit(auth.Limits{Rate: doorRate, Burst: doorBurst, Concurrent: doorConcurrent, Proxies: c.opt.Proxies, Refuse: refuse(tooMany())}); err != nil {
		return err
	}
	if c.visitors, err = auth.NewLimit(auth.Limits{Proxies: c.opt.Proxies, Refuse: refuse(tooQuick())}); err != nil {
		return err
	}
	c.people, err = pageLimits.LimitNames()
	return err
}

// inForce reports whether the configuration would still let the person sign in, and returns the session with the
// scopes that the person has by it.
func (c *Console) inForce(s signin.Session) (signin.Session, bool) {
	switch s.How {
	case signin.ByLink:
		return s, c.opt.Links
	case signin.ByToken:
		if c.recheck == nil {
			return s, false
		}
		p, ok := c.recheck.Recheck(auth.Principal{ID: s.Person, Scopes: s.Scopes, Source: s.Source})
		s.Scopes = p.Scopes
		return s, ok
	case signin.ByOpenID:
		return s, c.provider != nil && s.Source == c.provider.source()
	}
	return s, false
}

// EndRefused ends the sessions of people whom the configuration in force would not let sign in: their token, its issuer, the
// provider or their last role is gone from it. Sessions of links are those of another console, perhaps, and stay.
func (c *Console) EndRefused(ctx context.Context) error {
	if c.opt.SignIns == nil {
		return nil
	}
	all, err := c.opt.SignIns.List(ctx)
	if err != nil {
		return fmt.Errorf("console: list the sessions: %w", err)
	}
	for _, s := range all {
		now, ok := c.inForce(s)
		if s.How == signin.ByLink || ok && c.granted(now).Role >= Viewer {
			continue
		}
		if err := c.opt.SignIns.End(ctx, s.Name); errors.Is(err, signin.ErrNone) {
			continue
		} else if err != nil {
			return fmt.Errorf("console: end a session: %w", err)
		}
		c.opt.Log.Info("console: a session has ended, since the configuration does not let the person in any more", "person", s.Person, "how", string(s.How))
		c.record(ctx, Act{Did: DidRevoke, How: s.How, Person: s.Person})
	}
	return nil
}

// granted returns the person of a session by the grants in force.
func (c *Console) granted(s signin.Session) Person {
	p := Person{ID: s.Person, Role: Public, session: s.Name}
	if s.How == signin.ByLink { // a person who can make a link can read the store
		p.Role, p.AllServers = Admin, true
		return p
	}
	p.Servers, p.Reviews, p.Manages = []string{}, []string{}, []string{}
	for _, g := range c.opt.Grants {
		if !slices.Contains(s.Scopes, g.Scope) {
			continue
		}
		p.Role = max(p.Role, g.Role)
		p.AllServers = p.AllServers || g.Servers == nil
		p.Servers = append(p.Servers, g.Servers...)
		if g.Role >= Reviewer {
			p.Reviews = also(p.Reviews, g.Servers)
		}
		if g.Role >= Admin {
			p.Manages = also(p.Manages, g.Servers)
		}
	}
	return p
}

// also joins two lists of servers, of which nil stands for all.
func also(list, more []string) []string {
	if list == nil || more == nil {
		return nil
	}
	return append(list, more...)
}

// Names of the cookie. The prefix __Host- binds it to this host and to TLS; a console on loopback has no TLS.
const (
	cookieTLS   = "__Host-pellucid-console"
	cookiePlain = "pellucid-console"
)

// secure reports whether the browser reaches the console by TLS.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(c.opt.URL, "https:")
}

// cookie returns a cookie of that content; "" removes it.
func (c *Console) cookie(r *http.Request, value string) *http.Cookie {
	ck := &http.Cookie{Name: cookiePlain, Value: value, Path: Base, HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.secure(r) {
		ck.Name, ck.Path, ck.Secure = cookieTLS, "/", true
	}
	if value == "" {
		ck.MaxAge = -1
	}
	return ck
}

// identify returns the person whose session the cookie names, and notes a use of the session.
func (c *Console) identify(r *http.Request) (Person, error) {
	if c.opt.SignIns == nil {
		return Person{}, ErrNoSession
	}
	ck, err := r.Cookie(c.cookie(r, "").Name)
	if err != nil {
		return Person{}, ErrNoSession
	}
	s, err := c.opt.SignIns.Find(r.Context(), ck.Value)
	if errors.Is(err, signin.ErrNone) {
		return Person{}, ErrNoSession
	}
	if err != nil {
		return Person{}, err
	}
	s, ok := c.inForce(s)
	if !ok {
		return Person{}, ErrNoSession
	}
	return c.granted(s), nil
}

// begin makes a session with a new secret for the person that s has, and ends the one that the browser had. Scopes
// without a grant are not kept.
func (c *Console) begin(q *request, s signin.Session) (*http.Cookie, answer) {
	s.Scopes = slices.DeleteFunc(slices.Clone(s.Scopes), func(scope string) bool {
		return !slices.ContainsFunc(c.opt.Grants, func(g Grant) bool { return g.Scope == scope })
	})
	if !frame.IsLabel(s.Person) || c.granted(s).Role < Viewer {
		c.opt.Log.Warn("console: a person signed in who has no role", "how", string(s.How))
		c.record(q.Context(), Act{Did: didRefuse, How: s.How, Person: s.Person, Why: whyNoGrant})
		return nil, noGrant()
	}
	if old, err := c.identify(q.Request); err == nil && old.session != "" {
		if err := c.opt.SignIns.End(q.Context(), old.session); err != nil && !errors.Is(err, signin.ErrNone) {
			return nil, failed(err)
		}
	}
	secret, _, err := c.opt.SignIns.Begin(q.Context(), s)
	if errors.Is(err, signin.ErrFull) {
		c.opt.Log.Warn("console: a person could not sign in, since other people have all sessions", "person", s.Person, "most", signin.MaxSessions)
		return nil, noRoom()
	} else if err != nil {
		return nil, failed(err)
	}
	c.opt.Log.Info("console: a person signed in", "person", s.Person, "how", string(s.How))
	c.record(q.Context(), Act{Did: DidSignIn, How: s.How, Person: s.Person})
	return c.cookie(q.Request, secret), nil
}

// personName returns the id of a principal as records and the queue have it: a label. An id may have two
// characters that labels lack, and never has those that replace them: the names of two persons stay different.
func personName(id string) string { return strings.NewReplacer("|", "/", "~", "+").Replace(id) }

// mayFail counts a token or link that is not valid, and reports whether it gets a record and an answer that says why.
// Those that are valid are not counted, so failures of others refuse no person.
func (c *Console) mayFail() bool {
	if c.failures.Allow() {
		return true
	}
	c.opt.Log.Warn("console: too many tokens or links are not valid: this one has no record")
	return false
}

// byToken signs a person in by a bearer token.
func (c *Console) byToken(q *request) answer {
	if c.opt.Tokens == nil {
		return notFound()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	as := &http.Request{Method: http.MethodGet, URL: q.URL, Header: http.Header{"Authorization": {"Bearer " + strings.TrimSpace(q.PostForm.Get("token"))}}}
	p, err := c.opt.Tokens.Authenticate(as.WithContext(q.Context()))
	switch {
	case errors.Is(err, auth.ErrUnauthenticated):
		if !c.mayFail() {
			return tooMany()
		}
		c.record(q.Context(), Act{Did: didRefuse, How: signin.ByToken, Why: whyToken})
		return state{status: http.StatusUnauthorized, title: "Sign in", says: "This token is not valid.",
			why: "It may have expired, or a part of it is missing.", to: pathTo("login"), toWord: "Try again"}
	case err != nil:
		return failed(err)
	}
	ck, refused := c.begin(q, signin.Session{Person: personName(p.ID), Scopes: p.Scopes, How: signin.ByToken, Source: p.Source, Until: p.Until})
	if refused != nil {
		return refused
	}
	return withCookies{seeOther(Base), []*http.Cookie{ck}}
}

// byLink signs in whom a link names.
func (c *Console) byLink(q *request) answer {
	if !c.opt.Links {
		return notFound()
	}
	if err := q.ParseForm(); err != nil {
		return failed(err)
	}
	person, err := c.opt.SignIns.Spend(q.Context(), q.PostForm.Get("t"))
	switch {
	case errors.Is(err, signin.ErrNone):
		if !c.mayFail() {
			return tooMany()
		}
		c.record(q.Context(), Act{Did: didRefuse, How: signin.ByLink, Why: whySpent})
		return c.spentLink(q)
	case err != nil:
		return failed(err)
	}
	ck, refused := c.begin(q, signin.Session{Person: person, How: signin.ByLink})
	if refused != nil {
		return refused
	}
	return withCookies{seeOther(Base), []*http.Cookie{ck}}
}

// signOut ends the session.
func (c *Console) signOut(q *request) answer {
	if c.opt.SignIns != nil && q.who.session != "" {
		if err := c.opt.SignIns.End(q.Context(), q.who.session); err != nil && !errors.Is(err, signin.ErrNone) {
			return failed(err)
		}
	}
	c.record(q.Context(), Act{Did: didSignOut, Person: q.who.ID})
	return withCookies{seeOther(pathTo("login")), []*http.Cookie{c.cookie(q.Request, "")}}
}

// withCookies is an answer that sets cookies too.
type withCookies struct {
	answer
	cookies []*http.Cookie
}

func (a withCookies) write(c *Console, w http.ResponseWriter, q *request) {
	for _, ck := range a.cookies {
		http.SetCookie(w, ck)
	}
	a.answer.write(c, w, q)
}
