// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
)

// TestUp: one server and all of them, in both eras, and each with its rules.
func TestUp(t *testing.T) {
	g := apptest.Start(t, fmt.Sprintf(`version: 1
servers:
  one: {url: %s}
  two: {url: %s, prefix: second, tools: {echo: {allow: false}}}
`, apptest.Upstream(t, "one", nil), apptest.Upstream(t, "two", nil)), nil)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			s := g.Must("/mcp/one", "", version)
			if got, err := g.Say(s, "echo", "x"); got != "one says \u27e8|im_start|\u27e9x" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			s = g.Must("/mcp", "", version)
			if got := g.Tools(s); !slices.Equal(got, []string{"one_echo"}) {
				t.Errorf("%q", got)
			}
			if got, err := g.Say(s, "one_echo", "y"); got != "one says \u27e8|im_start|\u27e9y" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
			if _, err := g.Say(s, "second_echo", "y"); err == nil || !strings.Contains(err.Error(), "pellucid refused this call") {
				t.Errorf("a denied tool: %v", err)
			}
		})
	}
	for _, tc := range []struct {
		path, host string
		want       int
	}{
		{"/healthz", "", 200}, {"/readyz", "10.0.0.1:80", 200}, {"/metrics", "", 200}, {"/mcp", "evil.example", 403},
		{"/metrics", "evil.example", 403}, {"/nothing", "", 404}, {"/mcp/three", "", 404}, {"/ground/mcp", "", 410},
	} {
		if got := g.Get(tc.path, tc.host); got != tc.want {
			t.Errorf("%s at host %q: %d, want %d", tc.path, tc.host, got, tc.want)
		}
	}
}

// TestUpAuth: nobody without a token, nothing without its scope, and no session but
// one's own.
func TestUpAuth(t *testing.T) {
	alice, bob := strings.Repeat("alice-7f3a9b", 4), strings.Repeat("bob-15c8de02", 4)
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[
		{"principal":"alice","scopes":["mcp","files"],"token":"env:ALICE"},{"principal":"bob","scopes":["mcp"],"token":"env:BOB"},
		{"principal":"carol","scopes":["metrics:read","servers:read","log:read"],"token":"env:CAROL"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	alice, bob = "Kq3"+alice[:10]+"xW9zLmN4vB7cYp2RtU8", "Zr5"+bob[:10]+"hJ6gFdS1aQeXoI0kMnV"
	const carol = "Wm2vT9qLx4Hc7Zr1Np6Kd3Bf8Gs5Jy0a"
	g := apptest.Start(t, fmt.Sprintf(`version: 1
auth: {tokens: "file:%s"}
servers:
  one: {url: %s, scopes: [files]}
  two: {url: %s}
`, filepath.ToSlash(tokens), apptest.Upstream(t, "one", nil), apptest.Upstream(t, "two", nil)), map[string]string{"ALICE": alice, "BOB": bob, "CAROL": carol})
	for _, path := range []string{"/servers", "/log/checkpoint", "/mcp", "/mcp/one", "/mcp/two", "/metrics", "/v1/scrub"} {
		if got := g.Get(path, ""); got != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, got)
		}
	}
	for _, tc := range []struct {
		token, path, want string
	}{
		{alice, "/mcp", "[one_echo two_echo]"}, {alice, "/mcp/", "[one_echo two_echo]"}, {alice, "/mcp/one/", "[echo]"}, {bob, "/mcp/one/", ""}, {bob, "/mcp", "[two_echo]"}, {alice, "/mcp/one", "[echo]"}, {bob, "/mcp/one", ""}, {"x", "/mcp/two", ""},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			s, err := g.Connect(tc.path, tc.token, version)
			if err != nil {
				if tc.want != "" {
					t.Errorf("%s: %v", tc.path, err)
				}
				continue
			}
			if got := fmt.Sprint(g.Tools(s)); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.path, got, tc.want)
			}
		}
	}
	for path, scope := range map[string]string{"/metrics": "metrics:read", "/servers": "servers:read", "/log/checkpoint": "log:read"} {
		if got := getAs(t, g, path, bob); got != http.StatusForbidden {
			t.Errorf("%s without %s: %d", path, scope, got)
		}
		// There is no checkpoint yet: what matters is that the answer is not a refusal.
		if got := getAs(t, g, path, carol); got != http.StatusOK && got != http.StatusNotFound {
			t.Errorf("%s with %s: %d", path, scope, got)
		}
	}
	s := g.Must("/mcp/two", alice, "2025-11-25")
	req, err := http.NewRequest(http.MethodPost, g.Base+"/mcp/two", strings.NewReader(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Mcp-Session-Id": s.ID(), "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Authorization": "Bearer " + bob} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("another's session: %d", resp.StatusCode)
	}
}

// getAs is get with a token.
func getAs(t *testing.T, g *apptest.Gateway, path, token string) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, g.Base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := apptest.Bearer(token).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestUpReload: a new file takes effect in one step, a bad one not at all, and what
// has not changed goes on.
func TestUpReload(t *testing.T) {
	one, two := apptest.Upstream(t, "one", nil), apptest.Upstream(t, "two", nil)
	config := "version: 1\nservers:\n  one: {url: " + one + "}\n"
	g := apptest.Start(t, config, nil)
	all, single := g.Must("/mcp", "", "2025-11-25"), g.Must("/mcp/one", "", "2025-11-25")
	if got := g.Tools(all); !slices.Equal(got, []string{"one_echo"}) {
		t.Fatalf("%q", got)
	}
	g.Write(config + "  two: {url: " + two + "}\n")
	g.Eventually("the new server", func() bool { return slices.Equal(g.Tools(all), []string{"one_echo", "two_echo"}) })
	if got, err := g.Say(g.Must("/mcp/two", "", ""), "echo", "x"); got != "two says \u27e8|im_start|\u27e9x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := g.Say(single, "echo", "x"); got != "one says \u27e8|im_start|\u27e9x" || err != nil {
		t.Errorf("the session did not go on: %q, %v", got, err)
	}

	g.Write(config + "  two: {url: " + two + ", share: often}\n  th ree: {}\n")
	g.Eventually("the complaint", func() bool { return strings.Contains(g.Log.String(), "the previous one stays in force") })
	if got := g.Tools(all); !slices.Equal(got, []string{"one_echo", "two_echo"}) {
		t.Errorf("%q", got)
	}

	g.Write(config + "  two: {url: " + two + "}\ndefaults: {tools: {}}\n")
	g.Write("version: 1\nservers:\n  one: {url: " + one + ", tools: {echo: {allow: false}}}\n")
	g.Eventually("the new rule", func() bool {
		_, err := g.Say(single, "echo", "x")
		return err != nil && strings.Contains(err.Error(), "pellucid refused this call")
	})
	// The rules come before the routes, so that nothing passes by the old ones.
	g.Eventually("the end of a server", func() bool { return g.Get("/mcp/two", "") == http.StatusNotFound })
}

// TestUpKeepsTokens: the log says of which servers control tokens are kept, at the start and when a
// new file says so.
func TestUpKeepsTokens(t *testing.T) {
	config := "version: 1\nservers:\n  one: {url: " + apptest.Upstream(t, "one", nil)
	g := apptest.Start(t, config+"}\n", nil)
	if strings.Contains(g.Log.String(), "control tokens are kept") {
		t.Error(g.Log.String())
	}
	g.Write(config + ", tools: {\"e*\": {control_tokens: keep}}}\n")
	g.Eventually("the warning", func() bool {
		return strings.Contains(g.Log.String(), "control tokens are kept") && strings.Contains(g.Log.String(), "servers=[one]")
	})
}

// TestUpReloadRestart: the log names the members that wait for a restart, as long as they differ
// from what the gateway started with.
func TestUpReloadRestart(t *testing.T) {
	config := "version: 1\nservers:\n  one: {url: " + apptest.Upstream(t, "one", nil) + "}\n"
	g := apptest.Start(t, config, nil)
	inForce := func(n int) func() bool {
		return func() bool { return strings.Count(g.Log.String(), "configuration in force") == n }
	}
	g.Write(config + "limits: {children: 9}\nhttp: {sessions: 9, rate: 9}\n")
	g.Eventually("the members", func() bool {
		return strings.Contains(g.Log.String(), `members="[http.sessions limits.children]"`)
	})
	g.Write(config + "http: {rate: 10}\n")
	g.Eventually("what takes effect at once", inForce(2))
	g.Write(config + "limits: {memory: 64MiB}\n")
	g.Eventually("the next member", func() bool { return strings.Contains(g.Log.String(), "members=[limits.memory]") })
	if n := strings.Count(g.Log.String(), "restart the gateway"); n != 2 {
		t.Errorf("%d times:\n%s", n, g.Log)
	}
}

// TestUpDrain: what is under way when it is told to end still gets its answer.
func TestUpDrain(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			wait := make(chan struct{})
			g := apptest.Start(t, "version: 1\nservers:\n  one: {url: "+apptest.Upstream(t, "one", wait)+"}\n", nil)
			answers := make(chan string, 2)
			for path, tool := range map[string]string{"/mcp": "one_echo", "/mcp/one": "echo"} {
				s := g.Must(path, "", version)
				if _, err := g.Say(s, tool, "x"); err != nil {
					t.Fatal(err)
				}
				go func() {
					got, err := g.Say(s, tool, "wait")
					answers <- fmt.Sprint(got, err)
				}()
			}
			g.Eventually("both are under way", func() bool {
				w := httptest.NewRecorder()
				g.App.Metrics().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				return strings.Contains(w.Body.String(), `pellucid_requests_active{server="one"} 2`+"\n")
			})
			g.Stop()
			g.Eventually("draining", func() bool { return g.Get("/readyz", "") == http.StatusServiceUnavailable })
			g.Eventually("new sessions are refused", func() bool { // a moment later
				_, err := g.Connect("/mcp", "", version)
				return err != nil
			})
			close(wait)
			for range 2 {
				if got := <-answers; got != "one says \u27e8|im_start|\u27e9wait<nil>" {
					t.Errorf("%s", got)
				}
			}
		})
	}
}

// TestUpChurn: sessions leave nothing behind, whether they are ended or forgotten.
// $PELLUCID_SOAK says how many there are.
func TestUpChurn(t *testing.T) {
	sessions := 300
	if testing.Short() {
		sessions = 50
	}
	if n, err := strconv.Atoi(os.Getenv("PELLUCID_SOAK")); err == nil {
		sessions = n
	}
	g := apptest.Start(t, "version: 1\nhttp: {sessions: 32, rate: 0}\nservers:\n  one: {url: "+apptest.Upstream(t, "one", nil)+"}\n  two: {url: "+apptest.Upstream(t, "two", nil)+"}\n", nil)
	post := func(path, id, body string) (string, string) {
		req, err := http.NewRequest(http.MethodPost, g.Base+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return "", ""
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if id != "" {
			req.Header.Set("Mcp-Session-Id", id)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return "", ""
		}
		defer resp.Body.Close()
		b := new(bytes.Buffer)
		_, _ = b.ReadFrom(resp.Body)
		return b.String(), resp.Header.Get("Mcp-Session-Id")
	}
	run := func(n int) {
		for i := range n {
			path, tool := "/mcp", "one_echo"
			if i%2 == 0 {
				path, tool = "/mcp/one", "echo"
			}
			_, id := post(path, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`)
			post(path, id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if out, _ := post(path, id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`","arguments":{"text":"x"}}}`); !strings.Contains(out, "one says \u27e8|im_start|\u27e9x") {
				t.Fatalf("session %d: %s", i, out)
			}
			if i%3 == 0 { // the others are forgotten, and make room for new ones
				req, _ := http.NewRequest(http.MethodDelete, g.Base+path, nil)
				req.Header.Set("Mcp-Session-Id", id)
				if resp, err := http.DefaultClient.Do(req); err == nil {
					resp.Body.Close()
				}
			}
		}
	}
	run(100) // as many as there is room for
	before, heap := runtime.NumGoroutine(), heapInUse()
	run(sessions)
	g.Eventually("as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before+before/4 })
	if n := g.App.Sessions(); n > 64 {
		t.Errorf("%d sessions", n)
	}
	now := heapInUse()
	t.Logf("%d sessions: %d goroutines, then %d; heap %d KiB, then %d", sessions, before, runtime.NumGoroutine(), heap>>10, now>>10)
	if now > 2*heap+(16<<20) {
		t.Error("the heap has grown")
	}
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // what pools hold survives the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestUpStderr: the standard error of a server is logged, and the line about a server that failed repeats it.
func TestUpStderr(t *testing.T) {
	g := apptest.Start(t, fmt.Sprintf("version: 1\nservers:\n  dies: {command: [%q], env: {%s: dying}}\n", os.Args[0], roleVariable), nil)
	g.Eventually("the failure", func() bool { return strings.Contains(g.Log.String(), "could not be checked") })
	said := g.Log.String()
	if !regexp.MustCompile(`level=WARN msg="server could not be checked[^\n]* standard_error="\[no room left\]"`).MatchString(said) || !strings.Contains(said, `level=INFO msg="server: no room left" server=dies`) {
		t.Errorf("log: %s", said)
	}
}

// TestUpPages: a page of one of http.origins can use the gateway, and read why it cannot; a refused page and a refused
// name are logged with the setting.
func TestUpPages(t *testing.T) {
	const page, token = "https://app.example", "Wm2vT9qLx4Hc7Zr1Np6Kd3Bf8Gs5Jy0a"
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	if err := os.WriteFile(tokens, []byte(`{"tokens":[{"principal":"alice","scopes":["mcp"],"token":"env:ALICE"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g := apptest.Start(t, fmt.Sprintf("version: 1\nauth: {tokens: %q}\nhttp: {origins: [%q]}\nservers: {one: {url: %s}}\n", "file:"+tokens, page, apptest.Upstream(t, "one", nil)),
		map[string]string{"ALICE": token})
	ask := func(method, path, origin, host string, header ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(method, g.Base+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Origin", origin)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	for _, tt := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", "/mcp", token, 200}, {"POST", "/mcp/one", token, 200}, {"POST", "/mcp/none", token, 404}, {"POST", "/mcp/one", "", 401},
		{"GET", "/.well-known/oauth-protected-resource", "", 401}, {"PUT", "/mcp/one", token, 405},
	} {
		header := []string{}
		if tt.token != "" {
			header = append(header, "Authorization", "Bearer "+tt.token)
		}
		resp := ask(tt.method, tt.path, page, "", header...)
		if resp.StatusCode != tt.want || resp.Header.Get("Access-Control-Allow-Origin") != page || !strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, resp.StatusCode, resp.Header)
		}
	}
	for _, path := range []string{"/mcp", "/mcp/one", "/.well-known/oauth-protected-resource"} {
		resp := ask("OPTIONS", path, page, "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-session-id")
		if resp.StatusCode != http.StatusNoContent || resp.Header.Get("Access-Control-Allow-Origin") != page {
			t.Errorf("preflight of %s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
	for _, origin := range []string{"https://evil.example", "null"} {
		if resp := ask("OPTIONS", "/mcp", origin, "", "Access-Control-Request-Method", "POST"); resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %s: %d %v", origin, resp.StatusCode, resp.Header)
		}
	}
	if resp := ask("POST", "/mcp", page, "rebound.example"); resp.StatusCode != 403 {
		t.Errorf("another Host: %d", resp.StatusCode)
	}
	for _, line := range []string{`value="\"https://evil.example\"" allow_with=http.origins`, `value="\"null\"" allow_with=http.origins`, `value="\"rebound.example\"" allow_with=http.hosts`} {
		if said := g.Log.String(); strings.Count(said, line) != 1 {
			t.Errorf("no line %s, or several:\n%s", line, said)
		}
	}
}

// TestFormerGround: where an earlier build served the grounding adapter, a client is led to the server that is one now, with its
// method and body; without one, and for what is not MCP, one sentence says what to run.
func TestFormerGround(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const server = "version: 1\nservers:\n  facts: {command: [%q], profile: %s}\n"
	for _, c := range []struct {
		profile, path string
		status        int
		location      string
	}{
		{"veritas-0.1", "/ground/mcp", http.StatusPermanentRedirect, "/mcp/facts"},
		{"veritas-0.1", "/ground/attestations", http.StatusGone, ""},
		{"faithful", "/ground/mcp", http.StatusGone, ""},
	} {
		g := apptest.Start(t, fmt.Sprintf(server, self, c.profile), nil)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.Base+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != c.status || res.Header.Get("Location") != c.location ||
			(c.status == http.StatusGone) != strings.Contains(string(said), "run pellucid-ground serve") {
			t.Errorf("%s with profile %s: %d to %q, %v: %s", c.path, c.profile, res.StatusCode, res.Header.Get("Location"), err, said)
		}
	}
}
