// SPDX-License-Identifier: Apache-2.0

package console

import (
	"errors"
	"net/http"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/console/marked"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

var loginRoutes = []route{
	{pattern: "GET login", least: Public, handle: func(*Console, *request) answer { return signInAnswer{http.StatusOK} }},
	{pattern: "GET link", least: Public, handle: (*Console).link, door: true},
	{pattern: "POST link", least: Public, handle: (*Console).byLink, door: true},
	{pattern: "POST login/token", least: Public, handle: (*Console).byToken, door: true},
	{pattern: "GET login/openid", least: Public, handle: (*Console).toProvider, door: true},
	{pattern: "GET login/return", least: Public, handle: (*Console).fromProvider, door: true},
	{pattern: "POST logout", least: Viewer, handle: (*Console).signOut},
}

// A signInView has the ways of signing in that are configured.
type signInView struct {
	Links   bool
	Tokens  bool
	OpenID  bool
	Command marked.Plain // that prints a link
}

func (signInView) template() string { return "login" }

type signInAnswer struct{ status int }

func (a signInAnswer) write(c *Console, w http.ResponseWriter, q *request) {
	// The cookie is strict: a browser does not send it where another site or program has opened the page. The
	// page is loaded once more, now by itself.
	if site := q.Header.Get("Sec-Fetch-Site"); a.status == http.StatusUnauthorized && q.Method == http.MethodGet && q.Header.Get("Sec-Fetch-Mode") == "navigate" && (site == "cross-site" || site == "same-site") {
		w.Header().Set("Refresh", "0")
		state{status: http.StatusOK, title: "Opening", says: "The page opens.", why: "Load it again if it does not."}.write(c, w, q)
		return
	}
	pageAnswer{a.status, "Sign in", signInView{c.opt.Links, c.opt.Tokens != nil, c.opt.OpenID != nil, marked.Spelled(c.linkCommand(q))}}.write(c, w, q)
}

// signIn is the answer to a request without a session.
func signIn() answer { return signInAnswer{http.StatusUnauthorized} }

// A linkView asks for a press of a button: programs that look at links in advance spend none.
type linkView struct{ Secret marked.Plain }

func (linkView) template() string { return "link" }

func (c *Console) link(q *request) answer {
	t := q.URL.Query().Get("t")
	if !c.opt.Links {
		return notFound()
	}
	if !signin.IsSecret(t) {
		return c.spentLink(q)
	}
	switch err := c.opt.SignIns.CheckLink(q.Context(), t); {
	case errors.Is(err, signin.ErrNone):
		return c.spentLink(q)
	case err != nil:
		return failed(err)
	}
	return page("Open the console", linkView{marked.Spelled(t)})
}

// spentLink is the state of a link that signs in no more.
func (c *Console) spentLink(q *request) state {
	return state{status: http.StatusGone, title: "The link is spent", says: "This link was used, or is older than two minutes.",
		why: "To get another one, run this command on the machine of the program:", command: c.linkCommand(q)}
}

// linkCommand is the command that prints a link to this console.
func (c *Console) linkCommand(q *request) string {
	base := strings.TrimRight(c.opt.URL, "/")
	if base == "" {
		base = "http://" + q.Host
	}
	return "pellucid console --link --url " + terminal.ShellWord(base) + c.opt.Flag
}

// noGrant is the state of a person who is known and has no role.
func noGrant() state {
	return state{status: http.StatusForbidden, title: "No role", says: "You have no role in this console.",
		why: "An operator gives roles to scopes and groups in the configuration, under console."}
}

// tooMany is the state of too many attempts to sign in.
func tooMany() state {
	return state{status: http.StatusTooManyRequests, title: "Too many attempts", says: "There were too many attempts to sign in, from your network or in all. This one was not looked at.", why: "Try again in a few seconds.", kind: "held"}
}

// noRoom is the state of a person for whom no session is left.
func noRoom() state {
	return state{status: http.StatusServiceUnavailable, title: "No session is left", says: "Other people have all the sessions that there may be. You are not signed in.",
		why: "Sessions end when they are not used. An operator sees and ends them by this command:", command: "pellucid console --sessions", stored: true, kind: "held"}
}
