// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
)

// TestConsoleOpensPage: what opens the browser is given a file that only this user can read, and no secret. The file forwards
// to the link, and is gone when the link was used, and when the console has ended.
func TestConsoleOpensPage(t *testing.T) {
	state := t.TempDir()
	t.Setenv("PELLUCID_STATE", state)
	old := filepath.Join(state, "open-old.html")
	if err := os.WriteFile(old, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, used := range []bool{true, false} {
		ctx, stop := context.WithCancel(t.Context())
		opened, ended := make(chan string, 1), make(chan error, 1)
		go func() {
			ended <- app.ServeConsole(ctx, app.ConsolePlan{Listen: "127.0.0.1:0", Person: "ana", Log: slog.New(slog.DiscardHandler), Notice: io.Discard,
				Open: func(_ context.Context, file string) { opened <- file }})
		}()
		var file string
		select {
		case file = <-opened:
		case err := <-ended:
			t.Fatalf("the console ended: %v", err)
		}
		if !filepath.IsAbs(file) || filepath.Dir(file) != state {
			t.Errorf("the file is %q", file)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		if _, err := os.Stat(old); err == nil {
			t.Error("the page of a process that was killed is still there")
		}
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`content="0;url=([^"]+)"`).FindSubmatch(page)
		if found == nil {
			t.Fatalf("the page does not forward: %s", page)
		}
		link, err := url.Parse(html.UnescapeString(string(found[1])))
		secret := ""
		if err == nil {
			secret = link.Query().Get("t")
		}
		if len(secret) != 43 || strings.Contains(file, secret) {
			t.Fatalf("the page forwards to %q, %v", found[1], err)
		}
		if used {
			jar, _ := cookiejar.New(nil)
			c := &http.Client{Jar: jar}
			if r, _ := browse(t, c, "GET", link.String(), nil); r.StatusCode != http.StatusOK {
				t.Errorf("the link: %d", r.StatusCode)
			}
			if r, _ := browse(t, c, "POST", "http://"+link.Host+"/console/link", url.Values{"t": {secret}}, "Origin", "http://"+link.Host); r.StatusCode != http.StatusOK {
				t.Errorf("signing in: %d", r.StatusCode)
			}
		}
		if _, err := os.Stat(file); (err == nil) == used {
			t.Errorf("used %v: the file: %v", used, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the console: %v", err)
		}
		if _, err := os.Stat(file); !os.IsNotExist(err) {
			t.Errorf("after the end: %v, want %v", err, fs.ErrNotExist)
		}
	}
}
