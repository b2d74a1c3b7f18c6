// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAskRemotes: each server without a credential is asked once, and is put behind Pellucid
// only if it answers without a login.
func TestAskRemotes(t *testing.T) {
	var asked, followed atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/login":
			w.WriteHeader(http.StatusUnauthorized)
		case "/sse-login", "/sse":
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
			} else if r.URL.Path == "/sse-login" {
				w.WriteHeader(http.StatusUnauthorized)
			}
		case "/moved":
			http.Redirect(w, r, "/followed", http.StatusFound)
		case "/followed":
			followed.Add(1)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/key":
			t.Error("a server with a credential was asked")
		}
	}))
	defer s.Close()
	// Not a name of this machine, so that what is not known is left alone.
	host := strings.Replace(s.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1)
	var b strings.Builder
	b.WriteString(`{"mcpServers": {"local": {"command": "srv"}, "key": {"url": "` + host + `/key", "headers": {"A": "1"}}`)
	want := map[string]string{"open": "", "login": whyAsks + "; run pellucid login login, then pellucid protect again", "sse-login": whyAsks + "; run pellucid login sse-login, then pellucid protect again",
		"sse": "", "moved": whyMayAsk, "broken": whyMayAsk, "open2": ""}
	for name := range want {
		path := strings.TrimSuffix(name, "2")
		b.WriteString(`, "` + name + `": {"url": "` + host + "/" + path + `"}`)
	}
	b.WriteString(`, "gone": {"url": "http://[::ffff:127.0.0.1]:1/"}}}`)
	want["gone"], want["local"], want["key"] = whyMayAsk, "", ""
	files := []Target{clientFile(t, "cursor", false, b.String())}
	o := options(t)
	o.Ask, o.Login = nil, "pellucid login NAME"
	if r, err := o.Run(files, Job{DryRun: true}); err != nil || asked.Load() != 0 {
		t.Fatalf("%+v, %v: %d requests without consent", r, err, asked.Load())
	}
	asking := o.AskRemotes(t.Context(), files)
	if n := asked.Load(); n != 8 || followed.Load() != 0 { // two transports are asked for each of two
		t.Errorf("%d requests, %d redirects followed", n, followed.Load())
	}
	check := func(r Report) {
		t.Helper()
		for _, s := range r.Files[0].Servers {
			if (s.Action == Skipped) != (want[s.Name] != "") || s.Why != want[s.Name] {
				t.Errorf("%s: %s: %q, want %q", s.Name, s.Action, s.Why, want[s.Name])
			}
		}
	}
	r, err := asking.Run(files, Job{})
	if err != nil {
		t.Fatal(err)
	}
	check(r)
	// Without asking again, what was put behind Pellucid stays there.
	if r, err = o.Run(files, Job{}); err != nil || r.Files[0].Changed {
		t.Errorf("again: %+v, %v", r, err)
	}
}

// TestLoopback: a server of this machine is put behind Pellucid without being asked, with advice.
func TestLoopback(t *testing.T) {
	o := options(t)
	o.Ask = nil
	const here = "it is on this machine, so it was not asked; if it wants a login, run protect --undo, then protect --skip a"
	for address, want := range map[string]string{"http://127.0.0.1:3000/mcp": here, "http://localhost/mcp": here, "http://[::1]/": here, "http://localhost.example/": whyMayAsk} {
		path := write(t, `{"mcpServers": {"a": {"url": "`+address+`"}}}`)
		c, err := o.Protect(path, Generic)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Servers[0].Why; got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// TestLoggedIn: a server to which the operator has logged in is put behind Pellucid, also where
// its entry has the client log in.
func TestLoggedIn(t *testing.T) {
	o := options(t)
	o.Ask = func(string) Login { return LoggedIn }
	path := write(t, `{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": {"clientId": "x"}}}}`)
	if c := protect(t, o, path); c.Count(Wrapped) != 1 {
		t.Errorf("%+v", c.Servers)
	}
	o.Ask = open
	if c := protect(t, o, write(t, `{"mcpServers": {"a": {"url": "https://a.example/mcp", "oauth": {}}}}`)); c.Count(Skipped) != 1 {
		t.Errorf("%+v", c.Servers)
	}
}

// TestWrittenMeanwhile: a file that a client writes between the plan and the write is planned
// again. Where that goes on, nothing is written, and what the client has written stays.
func TestWrittenMeanwhile(t *testing.T) {
	const remote = `{"mcpServers": {"a": {"command": "srv"}, "r": {"url": "https://r.example/mcp"}}, "n": 0}`
	for writes, wantErr := range map[int]bool{1: false, 2: false, 3: true} {
		o := options(t)
		files := []Target{clientFile(t, "cursor", false, remote)}
		n, last := 0, remote
		o.Ask = func(string) Login { // between reading and writing
			if n < writes {
				n++
				last = strings.Replace(remote, `"n": 0`, `"n": `+strings.Repeat("1", n), 1)
				if err := os.WriteFile(files[0].Path, []byte(last), 0o640); err != nil {
					t.Error(err)
				}
			}
			return Open
		}
		_, err := o.Run(files, Job{})
		if (err != nil) != wantErr || err != nil && !errors.Is(err, errChanged) {
			t.Errorf("%d writes: %v", writes, err)
		}
		got := read(t, files[0].Path)
		if wantErr && got != last || !wantErr && (!strings.Contains(got, `"wrap"`) || !strings.Contains(got, `"n": `+strings.Repeat("1", n))) {
			t.Errorf("%d writes: %s", writes, got)
		}
		if !wantErr {
			if _, err := o.Run(files, Job{Undo: true}); err != nil || read(t, files[0].Path) != last {
				t.Errorf("undo: %v, %s", err, read(t, files[0].Path))
			}
		}
	}
}
