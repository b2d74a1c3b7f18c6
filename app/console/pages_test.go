// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"crypto/sha256"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/signin"
)

// A testPage is a page that every test of pages opens. Its fill puts third-party text into the store: each
// of hostile, wherever the page shows what a third party wrote.
type testPage struct {
	name   string // of the screenshots
	path   string // below Base
	status int    // 0: 200
	who    Person // zero: admin, unless public
	public bool   // the person has not signed in
	change func(*testConsole, *Options)
	fill   func(testing.TB, *testConsole) // nil: nothing
}

// testPages has each page and state of the console.
func testPages() []testPage {
	return slices.Concat(overviewPages(), recordPages(), journalPages(), serverPages(), guardPages(), []testPage{
		{name: "sign-in", path: "login", public: true, change: everyWayIn},
		{name: "link", path: "link?t=" + strings.Repeat("A", 43), public: true, change: everyWayIn, fill: func(t testing.TB, g *testConsole) {
			if err := g.store.PutSignInLink(t.Context(), sha256.Sum256(make([]byte, 32)), "ana", time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "link-spent", path: "link?t=x", public: true, change: everyWayIn, status: http.StatusGone},
		{name: "no-session", path: "", status: http.StatusUnauthorized, public: true},
		{name: "not-found", path: "no/such/page", status: http.StatusNotFound},
		{name: "nothing", path: "", status: http.StatusSeeOther},
		{name: "xray-empty", path: "xray"},
	})
}

// everyWayIn configures each way of signing in.
func everyWayIn(g *testConsole, o *Options) {
	o.URL, o.SignIns, o.Links, o.Tokens = "http://localhost:7420", &signin.Book{Store: g.store}, true, knownTokens{}
	o.OpenID = &OpenID{Issuer: "http://localhost:1", ClientID: "pellucid"}
}

func (p testPage) open(t testing.TB) *testConsole {
	t.Helper()
	var change []func(*testConsole, *Options)
	if p.change != nil {
		change = append(change, p.change)
	}
	g := newTest(t, change...)
	if p.fill != nil {
		p.fill(t, g)
	}
	switch {
	case p.public:
		g.as(Person{})
	case p.who.Role != 0:
		g.as(p.who)
	}
	return g
}

// TestPages: each page answers, with its headers, and has nothing that a third party could have put there.
func TestPages(t *testing.T) {
	t.Parallel()
	for _, p := range testPages() {
		t.Run(p.name, func(t *testing.T) {
			g := p.open(t)
			r, body := g.get(p.path)
			if want := cmp.Or(p.status, http.StatusOK); r.StatusCode != want {
				t.Errorf("status %d, want %d: %s", r.StatusCode, want, g.logs.String())
			}
			if at := hiddenInPage(body); at != "" {
				t.Errorf("the page has a hidden character: %s", at)
			}
			if found := foreignMarkup(body); found != nil {
				t.Errorf("the page has %q", found)
			}
			if strings.Contains(body, "ZgotmplZ") {
				t.Error("a template wrote a value where it is not safe")
			}
			checkHeaders(t, r)
		})
	}
}

func checkHeaders(t *testing.T, r *http.Response) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Frame-Options": "DENY",
	} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if csp := r.Header.Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") || !strings.Contains(csp, "require-trusted-types-for 'script'") {
		t.Errorf("the policy is %s", csp)
	}
}

// ownStore are the commands on pages that do not read the store of the console.
var ownStore = []string{"pellucid ground query", "pellucid guard --help", "pellucid guard report", "pellucid wrap", "pellucid scrub", "pellucid ccr replay", "pellucid explain ID"}

// TestCommandsNameTheStore: each command of a page names the store where it is not the default, and no command does
// where it is.
func TestCommandsNameTheStore(t *testing.T) {
	t.Parallel()
	commands := regexp.MustCompile(`<code[^>]*>(pellucid [^<]*)</code>`)
	seen := map[string]bool{}
	for _, p := range slices.Concat(testPages(), reviewPages()) {
		for _, flag := range []string{" --db /srv/x.db", ""} {
			p := p
			change := p.change
			p.change = func(g *testConsole, o *Options) {
				if change != nil {
					change(g, o)
				}
				o.Flag, o.Links = flag, o.SignIns != nil
			}
			_, body := p.open(t).get(p.path)
			for _, m := range commands.FindAllStringSubmatch(body, -1) {
				command := html.UnescapeString(m[1])
				own := slices.ContainsFunc(ownStore, func(s string) bool { return strings.HasPrefix(command, s) })
				if want := flag != "" && !own; strings.Contains(command, " --db ") != want {
					t.Errorf("%s has %q", p.name, command)
				} else if want {
					seen[strings.Join(strings.Fields(command)[:3], " ")] = true
				}
			}
		}
	}
	for _, command := range []string{"pellucid ledger show", "pellucid explain --case", "pellucid ledger checkpoint", "pellucid quarantine list", "pellucid pins list", "pellucid policy backtest"} {
		if !seen[command] {
			t.Errorf("no page has %s", command)
		}
	}
}

// TestRefusals: what comes from elsewhere, from a person without a session or without the role, does nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	g := newTest(t)
	done := 0
	act := func(*Console, *request) answer { done++; return seeOther(Base) }
	g.mux.Handle("POST "+Base+"test/act", g.endpoint(route{pattern: "POST test/act", least: Reviewer, handle: act}))
	for _, c := range []struct {
		name   string
		who    Person
		header []string
		want   int
	}{
		{"another site", admin, []string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{"a site of the same domain", admin, []string{"Sec-Fetch-Site", "same-site"}, http.StatusForbidden},
		{"another origin, old browser", admin, []string{"Origin", "https://evil.example"}, http.StatusForbidden},
		{"a sandboxed frame", admin, []string{"Origin", "null"}, http.StatusForbidden},
		{"no session", Person{}, nil, http.StatusUnauthorized},
		{"a viewer", Person{ID: "v", Role: Viewer}, nil, http.StatusForbidden},
	} {
		g.as(c.who)
		r, _ := g.do("POST", "test/act", map[string][]string{"x": {"y"}}, c.header...)
		if r.StatusCode != c.want || done != 0 {
			t.Errorf("%s: status %d, want %d; done %d times", c.name, r.StatusCode, c.want, done)
		}
		checkHeaders(t, r)
	}
	g.as(admin)
	if r, _ := g.post("test/act", map[string][]string{"x": {"y"}}); r.StatusCode != http.StatusSeeOther || done != 1 {
		t.Errorf("an admin: status %d, done %d times", r.StatusCode, done)
	}
}

// TestAssets: a file is served under the digest of what is in it, and for good.
func TestAssets(t *testing.T) {
	t.Parallel()
	g := newTest(t)
	at := string(g.files.path("console.css"))
	r, body := g.get(strings.TrimPrefix(at, Base))
	if r.StatusCode != http.StatusOK || !strings.Contains(body, "--paper") || !strings.Contains(r.Header.Get("Cache-Control"), "immutable") || r.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("%s: %d %v", at, r.StatusCode, r.Header)
	}
	if r, _ := g.get("assets/console.css"); r.StatusCode != http.StatusNotFound {
		t.Errorf("without the digest: status %d", r.StatusCode)
	}
}
