// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// openConsole runs `pellucid console` and returns its address and the link that signs in once.
func (in *install) openConsole(t *testing.T) (base, link string) {
	t.Helper()
	cmd := exec.Command(in.bin, "console", "--no-browser")
	cmd.Env = in.env()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var all strings.Builder
	for lines := bufio.NewScanner(stderr); link == "" && lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		if _, at, is := strings.Cut(line, "The console is at "); is {
			base = strings.TrimSpace(at)
		} else if at := strings.TrimSpace(line); strings.HasPrefix(at, "http://") {
			link = at
		}
	}
	if link == "" {
		t.Fatalf("no link: %s", all.String())
	}
	return base, link
}

// TestConsoleApproves: a tool of a server of the Go SDK changes. The person who opened the console by its
// link approves the change by keyboard alone, and the next check finds nothing that differs.
func TestConsoleApproves(t *testing.T) {
	open := browserContext(t)
	server := newToolServer()
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	defer srv.Close()
	in := newInstall(t)
	file := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "version: 1\nservers: {sdk: {url: %q}}\n", srv.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(want int) {
		t.Helper()
		out, said, code := in.run(t, "check", "-c", file)
		if code != want {
			t.Fatalf("check: exit code %d, want %d\n%s%s", code, want, out, said)
		}
	}
	check(0)
	server.RemoveTools("count")
	mcp.AddTool(server, &mcp.Tool{Name: "count", Description: "Counts up to four."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	check(10)

	base, link := in.openConsole(t)
	ctx := open()
	until := func(script string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && (`+script+`)`))
			if err == nil && ok {
				return
			}
			if time.Now().After(end) {
				text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + " " + document.body.textContent.slice(0, 2000)`))
				t.Fatalf("%s: %v; the page is %+q", script, err, text)
			}
		}
	}
	press := func(key string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.KeyEvent(key)); err != nil {
			t.Fatal(err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(link), chromedp.Click(chromedp.CSS("main form button"))); err != nil {
		t.Fatal(err)
	}
	until(`!!document.querySelector("nav.nav")`)
	if err := chromedp.Do(ctx, chromedp.Navigate(base+"servers")); err != nil {
		t.Fatal(err)
	}
	until(`document.querySelectorAll("[data-row]").length === 1`)
	press("j")
	press("\r")
	until(`location.pathname.startsWith("/console/servers/") && !!document.querySelector("main [data-key=p]")`)
	until(`document.querySelector("main").textContent.includes("Counts up to four.")`)
	press("p")
	until(`document.querySelector("[data-says]").textContent.startsWith('Approves the tool "count"')`)
	check(10) // the first press only says what will happen
	press("p")
	until(`!document.querySelector("main [data-key=p]")`)
	check(0)
}
