// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// browse sends a request as a browser without scripts does.
func browse(t *testing.T, c *http.Client, method, at string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	q, err := http.NewRequest(method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	r, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

// TestUpConsole: a gateway serves the console if its configuration has one, a link signs in, and what a person does is
// in the ledger; other sites and names cannot reach it.
func TestUpConsole(t *testing.T) {
	g := apptest.Start(t, "version: 1\nconsole: {}\n", nil)
	jar, _ := cookiejar.New(nil)
	c := &http.Client{Jar: jar}
	if r, body := browse(t, c, "GET", g.Base+"/console", nil); r.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "pellucid console --link") {
		t.Errorf("without a session: %d", r.StatusCode)
	}
	s, err := storage.Open(t.Context(), filepath.Join(os.Getenv("PELLUCID_STATE"), "pellucid.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	link, err := app.ConsoleLink(context.Background(), s, g.Base, "ana")
	if err != nil {
		t.Fatal(err)
	}
	secret := link[strings.Index(link, "?t=")+3:]
	for name, header := range map[string][]string{
		"another site":      {"Sec-Fetch-Site", "cross-site"},
		"another origin":    {"Origin", "https://evil.example"},
		"a sandboxed frame": {"Origin", "null"},
	} {
		if r, _ := browse(t, c, "POST", g.Base+"/console/link", url.Values{"t": {secret}}, header...); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
	}
	r, _ := browse(t, c, "POST", g.Base+"/console/link", url.Values{"t": {secret}}, "Origin", g.Base)
	if r.StatusCode != http.StatusOK || r.Request.Method != "GET" || !strings.HasPrefix(r.Request.URL.Path, "/console/") {
		t.Errorf("the link: %d at %s", r.StatusCode, r.Request.URL.Path)
	}
	if r, _ := browse(t, c, "GET", g.Base+"/console/nothing/here", nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("with a session: %d", r.StatusCode)
	}
	rebound, _ := http.NewRequest("GET", g.Base+"/console/", nil)
	rebound.Host = "evil.example"
	if r, err := c.Do(rebound); err != nil || r.StatusCode != http.StatusForbidden {
		t.Errorf("a rebound name: %v, %v", r.StatusCode, err)
	}
	if strings.Contains(g.Log.String(), secret) {
		t.Error("the log has the secret of the link")
	}
	began := time.Now()
	g.Stop()
	<-g.Done
	g.Done <- nil // the end of the test waits for it too
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the gateway took %v to end", took)
	}
}

// TestUpCommands: what a gateway prints names its store where that is not the default, and a page names its own address.
func TestUpCommands(t *testing.T) {
	at := filepath.Join(t.TempDir(), "other.db")
	g := apptest.Start(t, "version: 1\nconsole: {}\nstore: file:"+at+"\n", nil)
	if want := "pellucid console --link --url " + g.Base + " --db " + at + " signs you in"; !strings.Contains(g.Log.String(), want) {
		t.Errorf("it prints no %q: %s", want, g.Log)
	}
	for path, want := range map[string]string{"/console/login": "", "/console/link?t=" + strings.Repeat("A", 43): "This link was used"} {
		if _, body := browse(t, http.DefaultClient, "GET", g.Base+path, nil); !strings.Contains(body, want) || !strings.Contains(body, "pellucid console --link --url "+g.Base+" --db "+at+"<") {
			t.Errorf("%s: %s", path, body)
		}
	}
}

// TestUpNoConsole: without the section there is no console.
func TestUpNoConsole(t *testing.T) {
	g := apptest.Start(t, "version: 1\n", nil)
	if r, _ := browse(t, http.DefaultClient, "GET", g.Base+"/console/", nil); r.StatusCode != http.StatusNotFound {
		t.Errorf("status %d", r.StatusCode)
	}
}

// TestUpConsoleFollowsTokens: who signed in by a token that leaves the token file is out at once, and their session ends.
func TestUpConsoleFollowsTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	write := func(entries string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(`{"tokens": [`+entries+`]}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens := map[string]string{"ana": "9f86d081884c7d659a2feaa0c55ad015", "ben": "bf4f1b2b0b822cd15d6c15b0f00a0865"}
	entries := map[string]string{}
	for name, token := range tokens {
		secret := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(secret, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		entries[name] = `{"principal": "` + name + `", "scopes": ["desk"], "token": "file:` + filepath.ToSlash(secret) + `"}`
	}
	write(entries["ana"] + "," + entries["ben"])
	g := apptest.Start(t, "version: 1\nauth: {tokens: 'file:"+file+"'}\nconsole: {grants: [{role: viewer, scope: desk}]}\n", nil)
	people := map[string]*http.Client{}
	for name, token := range tokens {
		jar, _ := cookiejar.New(nil)
		people[name] = &http.Client{Jar: jar}
		if r, _ := browse(t, people[name], "POST", g.Base+"/console/login/token", url.Values{"token": {token}}, "Origin", g.Base); r.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d", name, r.StatusCode)
		}
	}
	write(entries["ben"])
	g.Eventually("the end of the session", func() bool {
		return strings.Contains(g.Log.String(), "the configuration does not let the person in any more")
	})
	for name, want := range map[string]int{"ana": http.StatusUnauthorized, "ben": http.StatusOK} {
		if r, _ := browse(t, people[name], "GET", g.Base+"/console/policy", nil); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, r.StatusCode, want)
		}
	}
}
