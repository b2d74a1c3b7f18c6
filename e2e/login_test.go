// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
)

// A remote is a server of the Go SDK that wants tokens of oidc-provider, the authorization server
// behind it.
type remote struct {
	url, issuer string
	tokens      sync.Map     // that were accepted, each once
	renewed     atomic.Int64 // different tokens
	refused     atomic.Int64 // requests with 401
}

// newRemote starts both. life is that of an access token, in seconds.
func newRemote(t *testing.T, life int) *remote {
	t.Helper()
	modules := nodeModules(t)
	if _, err := os.Stat(filepath.Join(modules, "oidc-provider")); err != nil {
		t.Skip("oidc-provider is not installed; `make peers` installs it")
	}
	r := &remote{}
	var handler http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { handler.ServeHTTP(w, q) }))
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/mcp"
	r.issuer = startOIDC(t, modules, r.url, life)
	rs, err := auth.NewResourceServer(auth.ResourceOptions{Resource: r.url, DangerouslyHTTPOnLoopback: true,
		Issuers: []auth.Issuer{{Name: "oidc", URL: r.issuer}}})
	if err != nil {
		t.Fatal(err)
	}
	verify := func(_ context.Context, tok string, q *http.Request) (*sdkauth.TokenInfo, error) {
		p, err := rs.Authenticate(q)
		if err != nil {
			r.refused.Add(1)
			return nil, fmt.Errorf("%w: %w", sdkauth.ErrInvalidToken, err)
		}
		if _, seen := r.tokens.LoadOrStore(tok, true); !seen {
			r.renewed.Add(1)
		}
		return &sdkauth.TokenInfo{UserID: p.ID, Scopes: p.Scopes, Expiration: time.Now().Add(time.Minute)}, nil
	}
	meta := "/.well-known/oauth-protected-resource/mcp"
	mux := http.NewServeMux()
	mux.Handle(meta, sdkauth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{Resource: r.url,
		AuthorizationServers: []string{r.issuer}, ScopesSupported: []string{"mcp:read", "mcp:write"}}))
	server := newToolServer()
	mux.Handle("/mcp", sdkauth.RequireBearerToken(verify, &sdkauth.RequireBearerTokenOptions{ResourceMetadataURL: srv.URL + meta, Scopes: []string{"mcp:read"}})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	handler = mux
	return r
}

// startOIDC runs the authorization server and returns its issuer.
func startOIDC(t *testing.T, modules, resource string, life int) string {
	t.Helper()
	cmd := exec.Command(nodeBinary(modules), filepath.Join("node", "oidc.mjs"), modules, resource, fmt.Sprint(life))
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

// pellucid runs a verb to its end.
func (in *install) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(soon(t), in.bin, args...)
	cmd.Env = in.env()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// login runs `pellucid login ARG…`, and calls agree with what it tells the user to open: an address, and a code of a device.
func (in *install) login(t *testing.T, agree func(address, code string), args ...string) (said string, code int) {
	t.Helper()
	cmd := exec.CommandContext(soon(t), in.bin, append([]string{"login", "--key-file"}, args...)...)
	cmd.Env = in.env()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	userCode := ""
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		line := lines.Text()
		all.WriteString(line + "\n")
		if _, after, is := strings.Cut(line, "enter the code "); is {
			userCode = strings.TrimSuffix(after, ":")
		}
		if strings.HasPrefix(line, "http://") {
			agree(line, userCode)
		}
	}
	cmd.Wait()
	return all.String(), cmd.ProcessState.ExitCode()
}

var (
	formAction  = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)"`)
)

// agreeByForms goes through the pages of oidc-provider as a browser without scripts does: it sends
// each form, until a page has none.
func agreeByForms(t *testing.T) func(address, code string) {
	return func(address, code string) {
		t.Helper()
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := &http.Client{Jar: jar}
		page := func(resp *http.Response, err error) (string, *url.URL) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return string(b), resp.Request.URL
		}
		body, at := page(browser.Get(address))
		for range 6 {
			to := formAction.FindStringSubmatch(body)
			if to == nil {
				return
			}
			action, err := at.Parse(strings.ReplaceAll(to[1], "&amp;", "&"))
			if err != nil {
				t.Fatal(err)
			}
			values := url.Values{}
			for _, h := range hiddenField.FindAllStringSubmatch(body, -1) {
				values.Set(h[1], h[2])
			}
			if strings.Contains(body, `name="login"`) {
				values.Set("login", "alice")
				values.Set("password", "x")
			}
			if strings.Contains(body, `name="user_code"`) && values.Get("user_code") == "" {
				values.Set("user_code", code)
			}
			body, at = page(browser.PostForm(action.String(), values))
		}
		t.Fatalf("the pages have no end: %s", at)
	}
}

// browserContext finds a browser, or skips the test, and returns what starts it; it ends with the test.
func browserContext(t *testing.T) func() context.Context {
	t.Helper()
	bin := programtest.Find(t, "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
	return func() context.Context {
		ctx, stop := chromedp.NewExecAllocator(soon(t), chromedp.ExecPath(bin), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir()))
		t.Cleanup(stop)
		ctx, end := chromedp.NewContext(ctx)
		t.Cleanup(end)
		return ctx
	}
}

// agreeInChromium goes through the same pages in a real browser.
func agreeInChromium(t *testing.T) func(address, code string) {
	open := browserContext(t)
	return func(address, _ string) {
		t.Helper()
		ctx := open()
		err := chromedp.Do(ctx,
			chromedp.Navigate(address),
			chromedp.SendKeys(chromedp.CSS(`input[name=login]`), "alice"),
			chromedp.SendKeys(chromedp.CSS(`input[name=password]`), "x"),
			chromedp.Click(chromedp.CSS(`button[type=submit]`)),
			chromedp.WaitVisible(chromedp.CSS(`input[value=consent] ~ button, button[autofocus]`)),
			chromedp.Click(chromedp.CSS(`button[type=submit]`)),
			chromedp.WaitVisible(chromedp.CSS(`p`)),
		)
		if err != nil {
			t.Fatal(err)
		}
		text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("p")))
		if err != nil || !strings.Contains(text, "You are logged in") {
			t.Errorf("the browser shows %+q, %v", text, err)
		}
	}
}

// greet calls a tool through `pellucid wrap --url`.
func (in *install) greet(t *testing.T, url string) (string, error) {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(soon(t), &mcp.CommandTransport{Command: in.command("--url", url, "--set", "admission.pins=off"), TerminateDuration: 15 * time.Second}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	return call(t, session)
}

func call(t *testing.T, session *mcp.ClientSession) (string, error) {
	r, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, c := range r.Content {
		if text, is := c.(*mcp.TextContent); is {
			all.WriteString(text.Text)
		}
	}
	return all.String(), nil
}

// TestLogin: a user logs in at a real authorization server, in a browser, by forms and on another
// device; from then on the server is used, and after the logout it is not.
func TestLogin(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]struct {
		agree func(*testing.T) func(address, code string)
		args  []string
	}{
		"chromium": {agreeInChromium, []string{"--no-browser"}},
		"forms":    {agreeByForms, []string{"--no-browser"}},
		"device":   {agreeByForms, []string{"--device"}},
	} {
		t.Run(name, func(t *testing.T) {
			agree := way.agree(t)
			in, r := newInstall(t), newRemote(t, 3600)
			if _, err := in.greet(t, r.url); err == nil {
				t.Fatal("the server answers without a login")
			}
			if said, code := in.login(t, agree, append(way.args, r.url)...); code != 0 {
				t.Fatalf("exit code %d: %s", code, said)
			}
			if text, err := in.greet(t, r.url); err != nil || !strings.Contains(text, "Hello, Ada!") {
				t.Fatalf("%q, %v", text, err)
			}
			if out, said, code := in.run(t, "login", "--list"); code != 0 || !strings.Contains(out, r.url+": usable; issuer "+r.issuer) {
				t.Errorf("list: %d %q %q", code, out, said)
			}
			in.hidesTokens(t, r)
			if _, said, code := in.run(t, "logout", r.url); code != 0 || !strings.Contains(said, "revoked and removed") {
				t.Errorf("logout: %d %q", code, said)
			}
			if _, err := in.greet(t, r.url); err == nil {
				t.Error("the server answers after the logout")
			}
		})
	}
}

// hidesTokens checks that no file of the installation holds a token that the server has seen.
func (in *install) hidesTokens(t *testing.T, r *remote) {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(in.state, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			all = append(all, b...)
			return err
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	r.tokens.Range(func(tok, _ any) bool {
		if n++; bytes.Contains(all, []byte(tok.(string))) {
			t.Error("a token stands in a file")
		}
		return true
	})
	if n == 0 {
		t.Error("the server has seen no token")
	}
}

// TestLoginRenews: the tokens live for two seconds, and each refresh token works once. Four
// processes that use one login at the same time all keep it.
func TestLoginRenews(t *testing.T) {
	t.Parallel()
	in, r := newInstall(t), newRemote(t, 2)
	if said, code := in.login(t, agreeByForms(t), "--no-browser", r.url); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
			session, err := client.Connect(soon(t), &mcp.CommandTransport{Command: in.command("--url", r.url, "--set", "admission.pins=off"), TerminateDuration: 15 * time.Second}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			for end := time.Now().Add(9 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				if text, err := call(t, session); err != nil || !strings.Contains(text, "Hello, Ada!") {
					t.Errorf("%q, %v", text, err)
					return
				}
			}
		})
	}
	work.Wait()
	if n := r.renewed.Load(); n < 3 || n > 12 {
		t.Errorf("%d different tokens in nine seconds", n)
	}
	if out, _, _ := in.run(t, "login", "--list", "--json"); !strings.Contains(out, `"usable":true`) {
		t.Errorf("the login was lost: %s", out)
	}
}

// TestLoginUp: the gateway uses a login too, that of the principal before the one for all.
func TestLoginUp(t *testing.T) {
	in, r := newInstall(t), newRemote(t, 3600)
	config := "version: 1\nservers:\n  far: {url: " + r.url + "}\n"
	file := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, code := in.login(t, agreeByForms(t), "--no-browser", "-c", file, "far"); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	base, _ := in.serveUp(t, config)
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	session, err := client.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: base + "/mcp/far"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if text, err := call(t, session); err != nil || !strings.Contains(text, "Hello, Ada!") {
		t.Fatalf("%q, %v", text, err)
	}
}

// TestLoginWanted: without a login the operator reads in one line what to run, and the model a
// constant text.
func TestLoginWanted(t *testing.T) {
	in, r := newInstall(t), newRemote(t, 3600)
	cmd := in.command("--url", r.url, "--set", "admission.pins=off")
	var said bytes.Buffer
	cmd.Stderr = &said
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	_, err := client.Connect(soon(t), &mcp.CommandTransport{Command: cmd, TerminateDuration: 15 * time.Second}, nil)
	if err == nil || !strings.Contains(err.Error(), "pellucid: the server asked for credentials") {
		t.Errorf("the client reads %v", err)
	}
	if n := strings.Count(said.String(), "pellucid login "+r.url); n != 1 {
		t.Errorf("%d lines say what to run: %s", n, said.String())
	}
	cmd = in.command("--url", r.url) // the server is checked before the first message passes
	said.Reset()
	cmd.Stderr = &said
	_, err = client.Connect(soon(t), &mcp.CommandTransport{Command: cmd, TerminateDuration: 15 * time.Second}, nil)
	if err == nil || !strings.Contains(said.String(), "pellucid login "+r.url) {
		t.Errorf("%v: %s", err, said.String())
	}
	t.Log(err, said.String())
}
