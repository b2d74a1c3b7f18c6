// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
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
	Did    string // "signed-in", "signed-out", "refused" or DidRevoke
	How    signin.How
	Person string // "": not known
	Why    string // of a refusal: a word of ours
}

// Acts that packages beside this one record or watch.
const (
	DidSignIn = "signed-in"
	DidRevoke = "revoked" // by an operator who ends a session; the person is the one whose session it was
)

// Acts and reasons that are recorded.
const (
	didSignOut = "signed-out"
	didRefuse  = "refused"

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

// granted returns the person of a session by the grants in force.
func (c *Console) granted(s signin.Session) Person {
	p := Person{ID: s.Person, Role: Public, session: s.Name}
	if s.How == signin.ByLink { // whoever can make a link can read the store
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
	return c.sessionOf(r, c.opt.SignIns.Find)
}

// stays is identify without a use: an open page does not keep a session going.
func (c *Console) stays(r *http.Request) (Person, error) {
	if c.opt.SignIns == nil {
		return Person{}, ErrNoSession
	}
	return c.sessionOf(r, c.opt.SignIns.Peek)
}

func (c *Console) sessionOf(r *http.Request, find func(context.Context, string) (signin.Session, error)) (Person, error) {
	ck, err := r.Cookie(c.cookie(r, "").Name)
	if err != nil {
		return Person{}, ErrNoSession
	}
	s, err := find(r.Context(), ck.Value)
	if errors.Is(err, signin.ErrNone) {
		return Person{}, ErrNoSession
	}
	if err != nil {
		return Person{}, err
	}
	return c.granted(s), nil
}

// begin makes a session with a new secret, and ends the one that the browser had. Scopes without a grant are
// not kept.
func (c *Console) begin(q *request, person string, scopes []string, how signin.How) (*http.Cookie, answer) {
	person, ok := personName(person)
	scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool {
		return !slices.ContainsFunc(c.opt.Grants, func(g Grant) bool { return g.Scope == s })
	})
	if !ok || c.granted(signin.Session{Scopes: scopes, How: how}).Role < Viewer {
		c.opt.Log.Warn("console: a person signed in who has no role", "how", string(how))
		c.record(q.Context(), Act{Did: didRefuse, How: how, Person: person, Why: whyNoGrant})
		return nil, noGrant()
	}
	if old, err := c.identify(q.Request); err == nil && old.session != "" {
		if err := c.opt.SignIns.End(q.Context(), old.session); err != nil && !errors.Is(err, signin.ErrNone) {
			return nil, failed(err)
		}
	}
	secret, _, err := c.opt.SignIns.Begin(q.Context(), person, scopes, how)
	if err != nil {
		return nil, failed(err)
	}
	c.opt.Log.Info("console: a person signed in", "person", person, "how", string(how))
	c.record(q.Context(), Act{Did: DidSignIn, How: how, Person: person})
	return c.cookie(q.Request, secret), nil
}

// personName returns the name as records and the queue have it: a label. The ids of principals may have two
// characters that labels have not.
func personName(id string) (string, bool) {
	id = strings.NewReplacer("|", "/", "~", "-").Replace(id)
	return id, frame.IsLabel(id)
}

// mayFail counts a token or link that is not valid, and reports whether it gets a record and an answer that says why.
// Those that are valid are not counted, so failures of others refuse no person.
func (c *Console) mayFail() bool {
	if c.failures.Allow() {
		return true
	}
	n := c.failed.Add(1)
	c.tellFailed.Do(func() {
		c.failed.Add(-n)
		c.opt.Log.Warn("console: too many tokens or links were not valid; those that are counted here have no records", "count", n)
	})
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
	ck, refused := c.begin(q, p.ID, p.Scopes, signin.ByToken)
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
	ck, refused := c.begin(q, person, nil, signin.ByLink)
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
