// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/signin"
)

// A loginTest is a console at whose door people stand, with the acts that it has recorded.
type loginTest struct {
	*testConsole
	book *signin.Book
	now  time.Time

	mu   sync.Mutex
	acts []Act
}

func newLoginTest(t *testing.T, change ...func(*Options)) *loginTest {
	t.Helper()
	l := &loginTest{now: time.Now()}
	l.testConsole = newTest(t, func(g *testConsole, o *Options) {
		l.book = &signin.Book{Store: g.store, Now: func() time.Time { return l.now }}
		o.SignIns, o.Links, o.Now = l.book, true, func() time.Time { return l.now }
		o.Record = func(_ context.Context, a Act) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.acts = append(l.acts, a)
		}
		for _, f := range change {
			f(o)
		}
	})
	l.Console.who = l.identify
	return l
}

// A visitor is a browser without scripts: it keeps cookies and follows redirects.
func visitor(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, Timeout: time.Minute}
}

func (l *loginTest) send(t *testing.T, v *http.Client, path string, form url.Values) *http.Response {
	t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	q, err := http.NewRequest(method, l.url+Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Origin", l.url)
	}
	r, err := v.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	return r
}

func (l *loginTest) did(t *testing.T, want ...Act) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.acts) != len(want) {
		t.Fatalf("acts %+v, want %+v", l.acts, want)
	}
	for i := range want {
		if l.acts[i] != want[i] {
			t.Errorf("act %d: %+v, want %+v", i, l.acts[i], want[i])
		}
	}
	l.acts = nil
}

// TestLink: a link signs in once and only by the button; the session ends by signing out, and a stolen or old link
// does nothing.
func TestLink(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t)
	v := visitor(t)
	if r := l.send(t, v, "", nil); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a session: %d", r.StatusCode)
	}
	secret, err := l.book.NewLink(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // programs that look at links in advance
		if r := l.send(t, visitor(t), "link?t="+secret, nil); r.StatusCode != http.StatusOK || len(r.Cookies()) != 0 {
			t.Errorf("GET of the link: %d, cookies %v", r.StatusCode, r.Cookies())
		}
	}
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := l.send(t, v, "link", url.Values{"t": {secret}})
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != Base {
		t.Fatalf("POST of the link: %d to %s", r.StatusCode, r.Header.Get("Location"))
	}
	ck := r.Cookies()[0]
	if ck.Name != cookiePlain || !ck.HttpOnly || ck.SameSite != http.SameSiteStrictMode || ck.Path != Base || ck.Domain != "" || ck.MaxAge != 0 {
		t.Errorf("the cookie is %v", ck)
	}
	l.did(t, Act{Did: DidSignIn, How: signin.ByLink, Person: "ana"})
	if r := l.send(t, v, "policy", nil); r.StatusCode != http.StatusOK {
		t.Errorf("with the session: %d", r.StatusCode)
	}
	thief := visitor(t)
	if r := l.send(t, thief, "link?t="+secret, nil); r.StatusCode != http.StatusGone {
		t.Errorf("GET of a spent link: %d", r.StatusCode)
	}
	if r := l.send(t, thief, "link", url.Values{"t": {secret}}); r.StatusCode != http.StatusGone || len(r.Cookies()) != 0 {
		t.Errorf("a spent link: %d, %v", r.StatusCode, r.Cookies())
	}
	l.did(t, Act{Did: didRefuse, How: signin.ByLink, Why: whySpent})
	late, err := l.book.NewLink(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	l.now = l.now.Add(signin.LinkLife)
	if r := l.send(t, thief, "link?t="+late, nil); r.StatusCode != http.StatusGone {
		t.Errorf("GET of an old link: %d", r.StatusCode)
	}
	if r := l.send(t, thief, "link", url.Values{"t": {late}}); r.StatusCode != http.StatusGone {
		t.Errorf("an old link: %d", r.StatusCode)
	}
	l.did(t, Act{Did: didRefuse, How: signin.ByLink, Why: whySpent})
	if r := l.send(t, v, "logout", url.Values{}); r.StatusCode != http.StatusSeeOther || r.Cookies()[0].MaxAge != -1 {
		t.Errorf("sign out: %d %v", r.StatusCode, r.Cookies())
	}
	l.did(t, Act{Did: didSignOut, Person: "ana"})
	q, _ := http.NewRequest("GET", l.url+Base, nil)
	q.AddCookie(ck) // a copy of the cookie
	if r, err := http.DefaultClient.Do(q); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie after signing out: %v, %v", r.StatusCode, err)
	}
	if strings.Contains(l.logs.String(), secret) || strings.Contains(l.logs.String(), ck.Value) {
		t.Error("the log has a secret")
	}
}

// TestFixation: a session never has the id that the client brought, and signing in ends the session that the browser had.
func TestFixation(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t)
	v := visitor(t)
	at, _ := url.Parse(l.url + Base)
	planted := strings.Repeat("A", 43)
	v.Jar.SetCookies(at, []*http.Cookie{{Name: cookiePlain, Value: planted, Path: Base}})
	var had []string
	for range 2 {
		secret, err := l.book.NewLink(t.Context(), "ana")
		if err != nil {
			t.Fatal(err)
		}
		l.send(t, v, "link", url.Values{"t": {secret}})
		now := v.Jar.Cookies(at)[0].Value
		if now == planted || len(had) > 0 && now == had[0] {
			t.Error("the session has an id that the browser had before")
		}
		had = append(had, now)
	}
	if _, err := l.book.Find(t.Context(), had[0]); !errors.Is(err, signin.ErrNone) {
		t.Errorf("the first session goes on: %v", err)
	}
	if _, err := l.book.Find(t.Context(), planted); !errors.Is(err, signin.ErrNone) {
		t.Errorf("the planted session exists: %v", err)
	}
	list, err := l.book.List(t.Context())
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
}

// knownTokens is an authenticator of a few tokens.
type knownTokens map[string]auth.Principal

func (k knownTokens) Recheck(p auth.Principal) (auth.Principal, bool) {
	for _, now := range k {
		if now.Source == p.Source {
			return now, true
		}
	}
	return auth.Principal{}, false
}

func (k knownTokens) Authenticate(r *http.Request) (auth.Principal, error) {
	p, ok := k[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok {
		return p, auth.ErrUnauthenticated
	}
	return p, nil
}

// likeBen are names that look like "corp/ben": in full width, with another alphabet's letter, with a character that is
// not seen.
var likeBen = []string{"\uff43orp/ben", "corp/b\u0435n", "corp/ben\u200b", "\u202ecorp/ben"}

// TestToken: a token is exchanged for a session with the roles of its scopes, and one without a role is refused.
func TestToken(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t, func(o *Options) {
		o.Tokens = knownTokens{"good": {ID: "corp|ben", Scopes: []string{"mail-reviewers", "everything-else"}, Source: auth.Source{1}}, "none": {ID: "eve", Scopes: []string{"mcp"}, Source: auth.Source{2}}}
		for _, like := range likeBen {
			o.Tokens.(knownTokens)[like] = auth.Principal{ID: like, Scopes: []string{"admins"}, Source: auth.Source{3}}
		}
		o.Grants = []Grant{{"viewers", Viewer, nil}, {"mail-reviewers", Reviewer, []string{"mail"}}, {"admins", Admin, nil}}
	})
	v := visitor(t)
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if r := l.send(t, v, "login/token", url.Values{"token": {"bad"}}); r.StatusCode != http.StatusUnauthorized || len(r.Cookies()) != 0 {
		t.Errorf("a wrong token: %d", r.StatusCode)
	}
	l.did(t, Act{Did: didRefuse, How: signin.ByToken, Why: whyToken})
	if r := l.send(t, v, "login/token", url.Values{"token": {"none"}}); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
		t.Errorf("a token without a role: %d", r.StatusCode)
	}
	l.did(t, Act{Did: didRefuse, How: signin.ByToken, Person: "eve", Why: whyNoGrant})
	// A name that could be taken for that of another person is refused.
	for _, like := range likeBen {
		if r := l.send(t, v, "login/token", url.Values{"token": {like}}); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 0 {
			t.Errorf("%+q: %d", like, r.StatusCode)
		}
		l.did(t, Act{Did: didRefuse, How: signin.ByToken, Person: like, Why: whyNoGrant})
	}
	r := l.send(t, v, "login/token", url.Values{"token": {" good\n"}})
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("a good token: %d", r.StatusCode)
	}
	l.did(t, Act{Did: DidSignIn, How: signin.ByToken, Person: "corp/ben"})
	s, err := l.book.Find(t.Context(), r.Cookies()[0].Value)
	if err != nil || strings.Join(s.Scopes, " ") != "mail-reviewers" {
		t.Fatalf("%+v, %v", s, err)
	}
	p := l.granted(s)
	if p.Role != Reviewer || !p.Sees("mail") || p.Sees("web") || !p.Decides("mail") || p.Decides("web") {
		t.Errorf("the person is %+v", p)
	}
	l.opt.Grants = nil // the configuration changes: the session has no role any more
	if r := l.send(t, v, "", nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("after the grants are gone: %d", r.StatusCode)
	}
}

// TestSessionFollowsToken: a session ends with the token that made it. Where the configuration takes the token away or gives it
// another role, that counts at once, and EndRefused ends the session.
func TestSessionFollowsToken(t *testing.T) {
	t.Parallel()
	tokens := knownTokens{}
	l := newLoginTest(t, func(o *Options) {
		o.Tokens = tokens
		o.Grants = []Grant{{"viewers", Viewer, nil}, {"admins", Admin, nil}}
	})
	tokens["ana"] = auth.Principal{ID: "ana", Scopes: []string{"admins"}, Source: auth.Source{1}, Until: l.now.Add(5 * time.Minute)}
	tokens["ben"] = auth.Principal{ID: "ben", Scopes: []string{"viewers"}, Source: auth.Source{2}}
	people := map[string]*http.Client{}
	in := func(name string) {
		t.Helper()
		people[name] = visitor(t)
		if r := l.send(t, people[name], "login/token", url.Values{"token": {name}}); r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", name, r.StatusCode)
		}
	}
	want := func(name, path string, status int) {
		t.Helper()
		if r := l.send(t, people[name], path, nil); r.StatusCode != status {
			t.Errorf("%s: %s: %d, want %d", name, path, r.StatusCode, status)
		}
	}
	in("ana")
	in("ben")
	want("ana", "policy", http.StatusOK)
	l.now = l.now.Add(5 * time.Minute)
	want("ana", "policy", http.StatusUnauthorized) // the token has ended, and the session with it
	want("ben", "policy", http.StatusOK)

	tokens["ben"] = auth.Principal{ID: "ben", Scopes: []string{"admins"}, Source: auth.Source{2}}
	want("ben", "review", http.StatusOK)
	tokens["ben"] = auth.Principal{ID: "ben", Scopes: []string{"viewers"}, Source: auth.Source{2}}
	want("ben", "review", http.StatusForbidden)

	link, err := l.book.NewLink(t.Context(), "carol")
	if err != nil {
		t.Fatal(err)
	}
	people["carol"] = visitor(t)
	l.send(t, people["carol"], "link", url.Values{"t": {link}})
	l.acts = nil
	if err := l.EndRefused(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("ben", "policy", http.StatusOK)
	delete(tokens, "ben")
	want("ben", "policy", http.StatusUnauthorized)
	if err := l.EndRefused(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.did(t, Act{Did: DidRevoke, How: signin.ByToken, Person: "ben"})
	tokens["ben"] = auth.Principal{ID: "ben", Scopes: []string{"viewers"}, Source: auth.Source{2}}
	want("ben", "policy", http.StatusUnauthorized) // it does not come back with the token
	want("carol", "policy", http.StatusOK)
	l.opt.Links = false
	want("carol", "policy", http.StatusUnauthorized)
	if err := l.EndRefused(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := l.book.List(t.Context()); err != nil || len(list) != 1 { // perhaps of a console on this machine
		t.Errorf("%d sessions, %v", len(list), err)
	}
	if _, err := New(Options{SignIns: l.book, Tokens: struct{ auth.Authenticator }{tokens}}); err == nil {
		t.Error("a console takes tokens that cannot be checked again")
	}
}

// TestDoor: each way of signing in is limited by address, with a page that says so. Another address signs in meanwhile.
func TestDoor(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		method, path, form string
	}{
		{"GET", "link?t=" + strings.Repeat("A", 43), ""}, {"POST", "link", "t=x"}, {"POST", "login/token", "token=x"}, {"GET", "login/openid", ""}, {"GET", "login/return?code=x&state=y", ""},
	} {
		down := httptest.NewServer(http.NotFoundHandler())
		down.Close()
		l := newLoginTest(t, func(o *Options) {
			o.Tokens, o.URL, o.OpenID = knownTokens{}, "http://localhost:7420", &OpenID{Issuer: down.URL, ClientID: "pellucid"}
		})
		from := func(addr string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(way.method, Base+way.path, strings.NewReader(way.form))
			if r.RemoteAddr = addr; way.form != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			w := httptest.NewRecorder()
			l.ServeHTTP(w, r)
			return w
		}
		refused := 0
		for range 3 * doorBurst {
			if w := from("192.0.2.1:999"); w.Code == http.StatusTooManyRequests && w.Header().Get("Retry-After") != "" && w.Header().Get("Content-Security-Policy") == policy {
				refused++
				if page := w.Body.String(); !strings.Contains(page, "too many attempts to sign in") || strings.Contains(page, "192.0.2.1") {
					t.Fatalf("%s: the page says %s", way.path, page)
				}
			}
		}
		if refused < doorBurst { // the rest came in while the machine was slow
			t.Errorf("%s: %d of %d refused", way.path, refused, 3*doorBurst)
		}
		if w := from("198.51.100.7:999"); way.path != "login/token" && way.path != "link" && w.Code == http.StatusTooManyRequests {
			t.Errorf("%s: another address is refused too", way.path)
		}
	}
}

// TestFull: a person for whom no session is left is told so.
func TestFull(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t)
	l.opt.SignIns.Store = fullStore{l.opt.SignIns.Store}
	secret, err := l.book.NewLink(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	if r := l.send(t, visitor(t), "link", url.Values{"t": {secret}}); r.StatusCode != http.StatusServiceUnavailable || len(r.Cookies()) != 0 {
		t.Errorf("%d, %v", r.StatusCode, r.Cookies())
	}
}

type fullStore struct{ signin.Store }

func (fullStore) PutSignIn(context.Context, signin.Session, int, int) error { return signin.ErrFull }

// TestGrants: roles and servers of several grants.
func TestGrants(t *testing.T) {
	t.Parallel()
	c := &Console{opt: Options{Grants: []Grant{{"v", Viewer, nil}, {"m", Reviewer, []string{"mail"}}, {"w", Reviewer, []string{"web"}}, {"a", Admin, nil}}}}
	for _, tt := range []struct {
		scopes  string
		role    Role
		sees    string // of mail, web, crm
		decides string
	}{
		{"", Public, "", ""}, {"x", Public, "", ""}, {"v", Viewer, "mail web crm", ""}, {"m", Reviewer, "mail", "mail"},
		{"v m", Reviewer, "mail web crm", "mail"}, {"m w", Reviewer, "mail web", "mail web"}, {"a", Admin, "mail web crm", "mail web crm"}, {"m a", Admin, "mail web crm", "mail web crm"},
	} {
		p := c.granted(signin.Session{Person: "p", Scopes: strings.Fields(tt.scopes), How: signin.ByToken})
		var sees, decides []string
		for _, s := range []string{"mail", "web", "crm"} {
			if p.Sees(s) {
				sees = append(sees, s)
			}
			if p.Decides(s) {
				decides = append(decides, s)
			}
		}
		if p.Role != tt.role || strings.Join(sees, " ") != tt.sees || strings.Join(decides, " ") != tt.decides {
			t.Errorf("%q: role %d, sees %v, decides %v", tt.scopes, p.Role, sees, decides)
		}
	}
}

// TestSecureCookie: behind TLS the cookie is bound to the host.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t, func(o *Options) { o.URL = "https://pellucid.example" })
	secret, err := l.book.NewLink(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	v := visitor(t)
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ck := l.send(t, v, "link", url.Values{"t": {secret}}).Cookies()[0]
	if ck.Name != cookieTLS || !ck.Secure || ck.Path != "/" || ck.Domain != "" || ck.SameSite != http.SameSiteStrictMode {
		t.Errorf("the cookie is %v", ck)
	}
}

// TestStrictCookie: a page that another site opens is loaded once more, so that the strict cookie is sent.
func TestStrictCookie(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t)
	for _, c := range []struct {
		site, mode string
		status     int
		refresh    string
	}{{"cross-site", "navigate", 200, "0"}, {"same-origin", "navigate", 401, ""}, {"none", "navigate", 401, ""}, {"cross-site", "no-cors", 401, ""}} {
		r, _ := l.do("GET", "", nil, "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode)
		if r.StatusCode != c.status || r.Header.Get("Refresh") != c.refresh {
			t.Errorf("%s %s: %d, refresh %q", c.site, c.mode, r.StatusCode, r.Header.Get("Refresh"))
		}
	}
}

// TestAttempts: those who try many links are told to wait. A link that is valid signs in meanwhile; records are bounded, and
// the log repeats such lines once a minute (logs.New).
func TestAttempts(t *testing.T) {
	t.Parallel()
	l := newLoginTest(t)
	last := 0
	for range 60 {
		last = l.send(t, visitor(t), "link", url.Values{"t": {strings.Repeat("A", 43)}}).StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after 60 attempts: %d", last)
	}
	secret, err := l.book.NewLink(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", Base+"link", strings.NewReader(url.Values{"t": {secret}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	if l.ServeHTTP(w, r); w.Code != http.StatusSeeOther {
		t.Errorf("a valid link after failures of others: %d", w.Code)
	}
	for range 60 {
		if r, _ := l.do("POST", "logout", url.Values{}, "Sec-Fetch-Site", "cross-site"); r.StatusCode != http.StatusForbidden {
			t.Errorf("another site: %d", r.StatusCode)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.acts); n < 31 || n > 50 { // more than 30 failures where the machine is slow
		t.Errorf("%d records", n)
	}
	for _, line := range []string{"are not valid", "from another site"} {
		if !strings.Contains(l.logs.String(), line) {
			t.Errorf("the log does not say: %s", line)
		}
	}
}

// TestProviderDown: the console starts without its provider, and says so to those who sign in.
func TestProviderDown(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	l := newLoginTest(t, func(o *Options) {
		o.URL, o.OpenID = "http://localhost:7420", &OpenID{Issuer: down.URL, ClientID: "pellucid"}
	})
	v := visitor(t)
	if r := l.send(t, v, "login/openid", nil); r.StatusCode != http.StatusBadGateway {
		t.Errorf("status %d", r.StatusCode)
	}
	for _, query := range []string{"", "?code=x&state=y", "?error=access_denied"} {
		if r := l.send(t, v, "login/return"+query, nil); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: status %d", query, r.StatusCode)
		}
	}
}
