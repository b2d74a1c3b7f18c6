// SPDX-License-Identifier: Apache-2.0

// Package console serves the web console: pages on which people see what was decided and decide about what waits.
//
// A page is one Go file page_NAME.go, one template templates/NAME.html and its tests. The file has a list
// of routes, which the function routes joins; a handler reads what it needs, fills a struct of the type
// NAMEView and returns [page]. It writes no HTML. Three laws hold for every page, and tests hold them:
//
//   - Third-party text enters a page only as a value of package marked. The fields of a view are numbers,
//     booleans, values of that package, and [Own] and [Path], which are our own words and addresses.
//   - A template has no style attribute, no inline script and no inline handler; the
//     Content-Security-Policy of every answer forbids them too.
//   - A route names the least role that may use it. A route without one is refused when the console is made.
//
// An action is a POST of a form that works without a script. It ends in [seeOther], or in [failed] or
// [state], which say why not. Cross-origin posts never reach a handler.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/boundary/fleet"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/intake"
	"github.com/pellucid-mcp/pellucid/platform/signin"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Base is where the console is served.
const Base = "/console/"

// Options are what the pages read. Where something is nil, its page says what is missing and how to have it.
type Options struct {
	Log  *slog.Logger     // nil: nothing is logged
	Now  func() time.Time // nil: time.Now
	Flag string           // " --db X", which printed commands need to find the store; "" where they find it without
	URL  string           // where browsers reach the console, as https://pellucid.example; "": only on this machine

	SignIns *signin.Book       // nil: no one can sign in
	Links   bool               // a one-time link signs in: for consoles on loopback only
	Tokens  auth.Authenticator // exchanges bearer tokens; it is an auth.Rechecker too; nil: not
	OpenID  *OpenID            // nil: no provider; it needs URL
	Grants  []Grant            // who has which role; no grants: only a link signs in
	Proxies auth.Proxies       // are believed about where a request comes from
	Memory  *intake.Budget     // of the pages of all persons; 256 MiB by default

	Ledger     *storage.Ledger     // records and their index; nil: no log is kept
	Rules      func() *rules.Rules // in force; nil: this console belongs to no gateway
	Pins       []Pins              // of each place that keeps some
	Queue      *hold.Queue         // what is held; nil: nothing is
	Exceptions *hold.Exceptions    // that reviewers grant; nil: they cannot
	Captures   captures.Store      // texts of calls that were not held; nil: none are kept
	Sealer     *capture.Sealer     // opens what is kept with a held item; nil: it is not shown

	// Statement reads what the guard has written about a decision; nil without error: it is not on this machine.
	Statement func(ledger.ID) ([]byte, error)
	// Case writes the case of a decision; nil: none can be exported.
	Case func(context.Context, ledger.ID, io.Writer) error
	// Explain says in plain words what happened to a decision; nil: the page has the record alone.
	Explain func(ctx context.Context, id string) (*explain.Explanation, error)

	// What waits for a person; nil: not known.
	Held    func(context.Context) ([]Waiting, error) // results that a reviewer decides about
	Blocked func(context.Context) ([]Waiting, error) // sources that are blocked

	// Health is how each server of this gateway does now, in the order of the configuration; nil: not known, since the
	// console is not that of a gateway.
	Health func() []fleet.Health

	// Flagged has the texts that classifiers have flagged, by day and server.
	Flagged func() []audit.FlaggedDay

	// Journal yields the decisions of this machine that are in no log, as each wrap without evidence writes them: those
	// whose lines contain the text.
	Journal func(text string) iter.Seq2[index.Row, error]

	// Record makes a record of what a person did; nil: none is made. It must not block for long.
	Record func(context.Context, Act)
}

// A Waiting is how many things of one server wait for a person, and since when the oldest does.
type Waiting struct {
	Server string
	N      int
	Since  time.Time
}

// A Console is the handler of everything under Base.
type Console struct {
	opt    Options
	mux    *http.ServeMux
	routes []route
	views  templates
	files  assets
	who    func(*http.Request) (Person, error)

	provider *provider // nil: none
	recheck  auth.Rechecker
	door     func(http.Handler) http.Handler // limits by address
	visitors func(http.Handler) http.Handler // the same, of requests without a session
	people   func(person string) (leave func(), wait time.Duration)
	work     *intake.Budget // places for pages that look at a long text
	header   header
	attempts *rate.Limiter // logins that come back from the provider
	failures *rate.Limiter // tokens and links that are not valid
	told     tellings      // results of decisions, for the next page
}

// ErrNoSession means that a request comes from a person who has not signed in, or whose session has ended.
var ErrNoSession = errors.New("console: no session")

// New makes the console.
func New(o Options) (*Console, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Memory == nil {
		o.Memory = intake.NewBudget(256 << 20)
	}
	c := &Console{opt: o, mux: http.NewServeMux(), routes: routes(), files: newAssets(), work: intake.NewBudget(1), attempts: rate.NewLimiter(5, 30), failures: rate.NewLimiter(rate.Every(6*time.Second), 30)}
	c.who = c.identify
	if o.OpenID != nil {
		if o.URL == "" {
			return nil, errors.New("console: a provider of OpenID Connect needs the URL at which browsers reach the console")
		}
		c.provider = &provider{OpenID: *o.OpenID, back: strings.TrimRight(o.URL, "/") + Base + "login/return"}
	}
	if err := c.openDoor(); err != nil {
		return nil, err
	}
	if o.SignIns == nil && (o.Links || o.Tokens != nil || o.OpenID != nil) {
		return nil, errors.New("console: people cannot sign in without a store of sessions")
	}
	var err error
	if c.views, err = parseTemplates(o.Flag); err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	for _, r := range c.routes {
		if r.least < Public || r.least > Admin || r.handle == nil {
			return nil, fmt.Errorf("console: the route %s has no role or no handler", r.pattern)
		}
		h := c.endpoint(r)
		if r.door {
			h = c.door(h)
		}
		c.mux.Handle(r.full(), h)
	}
	c.mux.Handle("GET "+assetBase, c.files)
	c.mux.Handle(Base, c.endpoint(route{least: Viewer, handle: func(*Console, *request) answer { return notFound() }}))
	return c, nil
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	c.mux.ServeHTTP(w, r)
}

// A request is one that a person makes who has the role of its route.
type request struct {
	*http.Request
	who  Person
	now  time.Time
	body http.ResponseWriter // for MaxBytesReader
	room *intake.Room        // memory of the page of a person

	freePlace func() // set while the page has the place for a long text
}

// An answer is what a handler returns: a page, a state or a redirect.
type answer interface {
	write(c *Console, w http.ResponseWriter, q *request)
}

// pageTime bounds the time of one request. Tests set it: the speed of their machine proves nothing.
var pageTime = 20 * time.Second

// maxForm bounds the body of a form, in bytes, where its route says nothing.
const maxForm = 64 << 10

// sameOrigin refuses requests that change something and come from other sites.
var sameOrigin = http.NewCrossOriginProtection()

// endpoint checks who asks before the handler runs.
func (c *Console) endpoint(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
		ctx := hr.Context()
		ctx, stop := context.WithTimeout(ctx, pageTime)
		defer stop()
		conn := http.NewResponseController(w)
		_ = conn.SetReadDeadline(time.Now().Add(pageTime)) // a writer of a test has none
		_ = conn.SetWriteDeadline(time.Now().Add(2 * pageTime))
		defer conn.SetWriteDeadline(time.Time{}) // the next request on the connection must not inherit it
		q := &request{Request: hr.WithContext(ctx), now: c.opt.Now(), body: w}
		q.Body = http.MaxBytesReader(w, hr.Body, max(maxForm, r.body))
		if err := sameOrigin.Check(hr); err != nil {
			c.opt.Log.Warn("console: a request from another site was refused", "path", r.pattern)
			crossSite().write(c, w, q)
			return
		}
		if r.least == Public {
			if r.door {
				r.handle(c, q).write(c, w, q)
			} else {
				c.answerVisitor(w, q, func() answer { return r.handle(c, q) })
			}
			return
		}
		who, err := c.who(q.Request)
		switch {
		case errors.Is(err, ErrNoSession):
			c.answerVisitor(w, q, func() answer { return signIn() })
		case err != nil:
			failed(err).write(c, w, q)
		case who.Role < r.least:
			q.who = who
			c.opt.Log.Warn("console: a request was refused, since the person lacks the role", "person", who.ID, "path", r.pattern)
			if hr.Method == http.MethodPost {
				c.record(ctx, Act{Did: didRefuse, Person: who.ID, Why: whyRole})
			}
			noRight(who.Role, r.least).write(c, w, q)
		default:
			q.who = who
			c.answerPerson(w, q, r)
		}
	})
}

// policy forbids everything that the pages do not use. Script comes from files of ours only, and makes no
// HTML of strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	// Not no-referrer: with it browsers send "Origin: null" with a form, and the origin of a post could not
	// be checked. No page has a link to another site.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Cache-Control", "no-store")
}
