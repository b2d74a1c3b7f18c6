// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/platform/auth"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// secret stands wherever a test puts one; nothing may show it.
const secret = "q7Vt0hJ2xWm9-pLr4cZk8Ys1bN6dGf3eUa5"

// fixed is a world of files and variables.
type fixed struct{ files, env map[string]string }

func newFixed() fixed {
	return fixed{
		files: map[string]string{
			"/etc/p/tokens.json":  `{"tokens":[{"principal":"lab","scopes":["mcp"],"token":"env:LAB"}]}`,
			"/etc/p/tokens.txt":   "remove <|house|>\n",
			"/etc/p/own.txt":      "remove <|house|>\n",
			"/etc/p/bad.txt":      "drop <|house|>\nremove x\n",
			"/run/secrets/search": "Bearer " + secret + "\n",
			"/home/me/.config/claude/claude_desktop_config.json": `{"mcpServers":{"github":{"command":"docker",` +
				`"args":["run","-i","ghcr.io/github/github-mcp-server"],"env":{"GITHUB_PERSONAL_ACCESS_TOKEN":"` + secret + `"}}}}`,
		},
		env: map[string]string{"LAB": secret, "MANY_LINES": "a\nb", "LEADS_NOWHERE": `{"tokens":[{"principal":"a","scopes":["b"],"token":"file:/none"}]}`, "FILES_TOKEN": secret, "SHIELDS_KEY": secret, "DATABASE_URL": "postgres://p:" + secret + "@db/p",
			"KEYED_URL": "https://mcp.example.org/mcp?api_key=" + secret, "REVIEW_KEY": secret, "PEER_TOKEN": secret,
			"HOOK": "whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=", "NEXT_HOOK": "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", "HOOK_URL": "https://hooks.example.com/x?token=" + secret},
	}
}

func (w fixed) options() Options {
	return Options{
		Dir: "/etc/p", home: "/home/me",
		Getenv: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		ReadFile: func(name string) ([]byte, error) {
			if s, ok := w.files[name]; ok {
				return []byte(s), nil
			}
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		},
	}
}

func parse(t *testing.T, src string) *Rules {
	t.Helper()
	r, err := Parse([]byte(src), newFixed().options())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestNothingIsStrict(t *testing.T) {
	r := parse(t, "version: 1\n")
	if r.Listen != "127.0.0.1:7420" || r.Auth.Set() || r.Servers != nil || r.HTTP.Hosts != nil || r.Store != (Store{}) {
		t.Errorf("defaults: %+v", r)
	}
	h := r.HTTP
	if h.MaxBody != 32<<20 || h.Sessions != 256 || h.SessionIdle != 30*time.Minute || h.Drain != 10*time.Second ||
		h.Limits.Rate != 50 || h.Limits.Burst != 100 || h.Limits.Concurrent != 64 {
		t.Errorf("http: %+v", h)
	}
	if tl := r.Telemetry; !tl.Metrics || tl.LogLevel != slog.LevelInfo || tl.LogJSON {
		t.Errorf("telemetry: %+v", tl)
	}
	s := parse(t, "version: 1\nservers: {a: {command: [x]}}").Server("a")
	want := gateway.Rule{Profile: gateway.Faithful, MaxChars: 1 << 20, Timeout: 10 * time.Minute, Validation: gateway.Validation{PassUnverifiable: true}}
	if diff := cmp.Diff(want, *s.Rule("t")); diff != "" {
		t.Error(diff)
	}
	if s.Share != PerSession || s.DangerouslyAllowSampling || s.Prefix != "a" {
		t.Errorf("server: %+v", s)
	}
}

// TestExample compiles docs/examples/pellucid.yaml.
func TestExample(t *testing.T) {
	example, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "pellucid.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := parse(t, string(example))

	if r.Store.Path != "/etc/p/pellucid.db" || r.PublicURL != "https://mcp.example.org" || !slices.Equal(r.HTTP.Hosts, []string{"mcp.example.org"}) {
		t.Errorf("top: %+v", r)
	}
	if r.Auth.Tokens == nil || r.Auth.OAuth == nil || r.Auth.OAuth.Issuers[0].Name != "login.example.org" || r.Auth.OAuth.Resource != r.PublicURL {
		t.Errorf("auth: %+v", r.Auth)
	}
	files := r.Server("files")
	if !slices.Equal(files.Command, []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv/data"}) || files.Cwd != "/srv" {
		t.Errorf("files: %q in %q", files.Command, files.Cwd)
	}
	if v := files.Env; len(v) != 2 || v[0].Name != "HOME" || v[0].Value.Reveal() != "/srv" || v[0].Value.String() != "/srv" ||
		v[1].Value.Reveal() != secret || v[1].Value.String() != "env:FILES_TOKEN" {
		t.Errorf("env: %v", v)
	}
	if !files.Rule("write_file").Denied || files.Rule("read_file").Denied || files.Rule("other").Denied {
		t.Error("who may be called")
	}
	if rule := files.Rule("read_file"); rule.Frame != frame.KindMeta || rule.MaxChars != 4_000_000 {
		t.Errorf("read_file: %+v", rule)
	}
	search := r.Server("search")
	if v := search.Headers; len(v) != 1 || v[0].Value.Reveal() != "Bearer "+secret {
		t.Errorf("headers: %v", v)
	}
	if llm := search.Rule("ask").LLM; llm == nil || llm.Source != "perplexity" || llm.Model != "" || llm.Search {
		t.Errorf("ask: %+v", llm)
	}
	if llm := search.Rule("search").LLM; llm == nil || !llm.Search || search.Rule("search").Frame != frame.KindLLM {
		t.Errorf("search: %+v", llm)
	}
	github := r.Server("github")
	if github.Prefix != "gh" || github.Command[0] != "docker" || !slices.Equal(github.Scopes, []string{"github"}) || github.Env[0].Value.Reveal() != secret {
		t.Errorf("github: %v", github.Command)
	}
	want := []gateway.Exception{{Code: finding.RoleMarker, Until: time.Date(2026, 12, 31, 0, 0, 0, 0, time.UTC)}}
	if diff := cmp.Diff(want, files.Rule("read_file").Except); diff != "" {
		t.Error(diff)
	}
	if files.Rule("read").Except != nil || search.Rule("read_file").Except != nil || files.Rule("").Except != nil {
		t.Error("the exception is for others, too")
	}
}

func TestExceptions(t *testing.T) {
	s := parse(t, `
version: 1
servers:
  a: {command: [x], hold: [role-marker], tools: {"r*": {frame: meta}, rx: {max_chars: 9}}}
exceptions:
  - {server: a, tool: read, code: role-marker, until: 2026-12-31T01:00:00+01:00, why: x}
  - {server: a, tool: rx, code: control-token, until: 2027-12-31T00:00:00Z, why: x}
  - {server: a, code: nfkc, until: 2028-12-31T00:00:00Z, why: x}
`).Server("a")
	end := func(year int) time.Time { return time.Date(year, 12, 31, 0, 0, 0, 0, time.UTC) }
	all := gateway.Exception{Code: finding.NFKC, Until: end(2028)}
	for tool, want := range map[string][]gateway.Exception{
		"read":  {{Code: finding.RoleMarker, Until: end(2026)}, all},
		"rx":    {{Code: finding.ControlToken, Until: end(2027)}, all},
		"rest":  {all},
		"other": {all},
		"":      {all},
	} {
		if diff := cmp.Diff(want, s.Rule(tool).Except); diff != "" {
			t.Errorf("%s: %s", tool, diff)
		}
	}
	if s.Rule("read").Frame != frame.KindMeta || s.Rule("rx").MaxChars != 9 || s.Rule("rx").Frame != frame.KindFence {
		t.Error("an exception changes more than it says")
	}
}

func TestInheritance(t *testing.T) {
	r := parse(t, `
version: 1
defaults: {profile: faithful, timeout: 1m, hold: [role-marker, control-token], validate: audit, max_chars: 100}
servers:
  a:
    command: [x]
    timeout: 2m
    unverifiable: hold
    tools:
      "*": {allow: false}
      "read_*": {frame: meta}
      "read_all": {max_chars: 200, hold: []}
  b: {url: "https://b.example/mcp"}
`)
	a := r.Server("a")
	if got := a.Tool("x").Rule; !got.Denied || got.Profile != gateway.Faithful || got.Timeout != 2*time.Minute || got.Mode != policy.Audit || got.PassUnverifiable {
		t.Errorf("x: %+v", got)
	}
	if got := a.Tool("read_some"); got.Rule.Denied || got.Rule.Frame != frame.KindMeta || got.Rule.MaxChars != 100 ||
		!slices.Equal(got.Rule.Hold, []finding.Code{finding.ControlToken, finding.RoleMarker}) {
		t.Errorf("read_some: %+v", got)
	}
	if got := a.Tool("read_all"); got.Rule.Frame != frame.KindFence || got.Rule.MaxChars != 200 || len(got.Rule.Hold) != 0 {
		t.Errorf("read_all: %+v", got)
	}
	if got := a.Tool(""); got.Rule.Denied {
		t.Error("what is no tool's falls under a pattern of tools")
	}
	if b := r.Server("b").Tool("x").Rule; b.Timeout != time.Minute || !b.PassUnverifiable {
		t.Errorf("b: %+v", b)
	}
}

func TestLLM(t *testing.T) {
	s := parse(t, `
version: 1
servers:
  p:
    url: https://p.example/mcp
    frame: llm
    llm: {provider: Perplexity Sonar, grounded: true, source: perplexity-sonar, model: {ask: sonar-pro, search: "", find: ""}}
    tools:
      search: {llm: {source: perplexity-search}}
      "raw_*": {frame: meta}
      find: {llm: {model: own}}
`).Server("p")
	for _, x := range []struct {
		tool, source, model string
		search              bool
	}{
		{"ask", "perplexity-sonar", "sonar-pro", false}, {"search", "perplexity-search", "", true},
		{"find", "perplexity-sonar", "own", false}, {"unheard", "perplexity-sonar", "", false},
	} {
		got := s.Rule(x.tool).LLM
		if got == nil || got.Source != x.source || got.Model != x.model || got.Search != x.search {
			t.Errorf("%s: %+v", x.tool, got)
		}
	}
	if n := s.Rule("ask").LLM.Envelope.Description(); !strings.Contains(n, "<perplexity-sonar-response ") {
		t.Errorf("the tag: %s", n)
	}
	if got := s.Rule("raw_x"); got.LLM != nil || got.Frame != frame.KindMeta {
		t.Errorf("raw_x: %+v", got)
	}
}

// TestSpelling: what editors of other systems add changes nothing.
func TestSpelling(t *testing.T) {
	for _, src := range []string{"\ufeffversion: 1\r\nlisten: 127.0.0.1:1\r\n", "{version: 1, listen: \"127.0.0.1:1\"}", "---\nversion: 1\nlisten: '127.0.0.1:1'\n...\n",
		"{\"version\":1,\"listen\":\"127.0.0.1:1\"}", "# x\nversion: 1 # y\nlisten: >-\n  127.0.0.1:1\n"} {
		if r := parse(t, src); r.Listen != "127.0.0.1:1" {
			t.Errorf("%q: %s", src, r.Listen)
		}
	}
}

func TestSecrets(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_PERSONAL_ACCESS_TOKEN": true, "API_KEY": true, "X-Api-Key": true, "Authorization": true, "tavilyApiKey": true,
		"apikey": true, "PGPASSWORD": true, "Cookie": true, "CLIENT_SECRET": true, "AWS_SECRET_ACCESS_KEY": true, "key2": true,
		"KEY_FILE": false, "TOKEN_LIMIT": false, "SSH_AUTH_SOCK": false, "PATH": false, "KEYBOARD": false, "AUTHOR": false,
		"HOME": false, "MONKEY": false, "PASSAGE": false, "": false, "1": false, "CLIENT_ID": false, "X-Team": false,
	} {
		if got := secretName(name); got != want {
			t.Errorf("secretName(%q) = %v", name, got)
		}
	}
	for text, want := range map[string]bool{
		"Bearer x": true, "basic abc": true, "ghp_0123456789abcdef0123": true, "sk-ant-0123456789abcdef": true,
		"-----BEGIN PRIVATE KEY-----": true, "eyJhbGciOiJub25lIn0.eyJh.x": true, "AKIA0123456789ABCDEF": true,
		"sk-short": false, "skeleton-key-of-the-house": false, "@modelcontextprotocol/server-filesystem": false,
		"/srv/sk-0123456789abcdef0123": false, "Bearer": false, "": false, "plain words with sk-0123456789abcdef": false,
	} {
		if got := secretText(text); got != want {
			t.Errorf("secretText(%q) = %v", text, got)
		}
	}
}

// TestOthersAccept: what comes out of here goes into others as it is.
func TestOthersAccept(t *testing.T) {
	r := parse(t, everything)
	if _, err := auth.NewLimit(r.HTTP.Limits); err != nil {
		t.Error(err)
	}
	if err := auth.CheckLocal(r.HTTP.Hosts, r.HTTP.Origins); err != nil {
		t.Error(err)
	}
	if _, err := auth.NewResourceServer(*r.Auth.OAuth); err != nil {
		t.Error(err)
	}
	for _, s := range r.Servers {
		if !frame.IsLabel(s.Name) {
			t.Errorf("%s is no label", s.Name)
		}
	}
}

func TestListen(t *testing.T) {
	for _, s := range []string{"127.0.0.1:7420", "localhost:0", "'[::1]:80'", "127.9.9.9:1"} {
		if got, want := parse(t, "version: 1\nlisten: "+s).Listen, strings.Trim(s, "'"); got != want {
			t.Errorf("%s: %s", want, got)
		}
	}
	const beyond = "version: 1\nlisten: 0.0.0.0:7420\n"
	for src, want := range map[string]int{
		beyond: 2,
		beyond + "auth: {tokens: file:tokens.json}":                                    1,
		beyond + "public_url: https://a.example":                                       1,
		beyond + "public_url: https://a.example\nauth: {tokens: file:tokens.json}":     0,
		beyond + "http: {hosts: [a.example]}\nauth: {tokens: file:tokens.json}":        0,
		"version: 1\nlisten: \"[::]:1\"\nhttp: {hosts: [a]}":                           1,
		"version: 1\nlisten: \"[::ffff:127.0.0.1]:1\"\nauth: {tokens: \"env:TOKENS\"}": 1,
	} {
		_, err := Parse([]byte(src), newFixed().options())
		var p Problems
		if errors.As(err, &p); len(p) != want {
			t.Errorf("%q: %d problems, want %d: %v", src, len(p), want, err)
		}
	}
	r := parse(t, "version: 1\npublic_url: https://a.example:8443/")
	if diff := cmp.Diff([]string{"localhost", "127.0.0.1", "[::1]", "a.example:8443"}, r.HTTP.Hosts); diff != "" || r.PublicURL != "https://a.example:8443" {
		t.Error(diff)
	}
}

func TestStore(t *testing.T) {
	for src, want := range map[string]Store{
		"file:x.db":                         {Path: "/etc/p/x.db"},
		"file:~/x.db":                       {Path: "/home/me/x.db"},
		"file:/var/x.db":                    {Path: "/var/x.db"},
		"env:DATABASE_URL":                  {URL: Value{"env:DATABASE_URL", "postgres://p:" + secret + "@db/p"}},
		"postgres://p@db/p?sslmode=require": {URL: Value{text: "postgres://p@db/p?sslmode=require"}},
	} {
		if got := parse(t, "version: 1\nstore: "+src).Store; got != want {
			t.Errorf("%s: %v", src, got)
		}
	}
}

func TestRate(t *testing.T) {
	h := parse(t, "version: 1\nhttp: {rate: 0, burst: 1, concurrency: 2}").HTTP
	if h.Limits.Rate != unlimited || h.Limits.Burst != 1 || h.Limits.Concurrent != 2 {
		t.Errorf("%+v", h)
	}
	if h := parse(t, "version: 1\nhttp: {rate: 0.5}").HTTP; h.Limits.Rate != 0.5 {
		t.Errorf("%+v", h)
	}
}

// TestValuePrints proves that no verb of fmt and no encoder shows a secret.
func TestValuePrints(t *testing.T) {
	s := parse(t, "version: 1\nservers: {a: {url: env:KEYED_URL, headers: {Authorization: file:/run/secrets/search}}}").Server("a")
	text, _ := s.URL.MarshalText()
	var b strings.Builder
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "url", s.URL, "all", s.Headers)
	for _, got := range []string{sprint("%v", s), sprint("%+v", *s), sprint("%#v", s.URL), sprint("%q", s.Headers), sprint("%s", s.URL), sprint("%x", s.URL), string(text), b.String()} {
		if strings.Contains(got, secret) || strings.Contains(got, sprint("%x", secret)) {
			t.Errorf("a secret is shown: %s", got)
		}
	}
}

func sprint(format string, a any) string { return fmt.Sprintf(format, a) }

// TestFraming: what is framed is said by server and by tool.
func TestFraming(t *testing.T) {
	r := parse(t, `version: 1
defaults: {fence: [prompts], structured: text}
servers:
  a: {command: [x], tools: {raw: {structured: keep, fence: all}}}
  b: {command: [x], fence: all, structured: keep, tools: {page: {fence: []}}}
  c: {command: [x], fence: []}
`)
	for _, c := range []struct {
		server, tool string
		want         gateway.Framing
	}{
		{"a", "", gateway.Framing{Prompts: true, StructuredText: true}},
		{"a", "raw", gateway.Framing{Prompts: true, AnyType: true}},
		{"b", "", gateway.Framing{Resources: true, Prompts: true, AnyType: true}},
		{"b", "page", gateway.Framing{Resources: true, Prompts: true}},
		{"c", "", gateway.Framing{StructuredText: true}},
	} {
		if got := r.Server(c.server).Rule(c.tool).Framing; got != c.want {
			t.Errorf("%s/%s: %+v, want %+v", c.server, c.tool, got, c.want)
		}
	}
	for _, src := range []string{
		"defaults: {fence: [tools]}", "defaults: {fence: none}", "servers: {a: {command: [x], tools: {t: {fence: [prompts]}}}}",
		"defaults: {structured: drop}", "servers: {a: {command: [x], frame: llm, llm: {provider: P}, structured: text}}",
	} {
		if _, err := Parse([]byte("version: 1\n"+src), Options{}); err == nil {
			t.Errorf("accepted: %s", src)
		}
	}
}

// The operator's control tokens stand beside those of the program.
func TestTokens(t *testing.T) {
	r := parse(t, "version: 1\ntokens: file:own.txt\n")
	if r.Tokens == nil || !slices.ContainsFunc(r.Tokens.Tokens(), func(x scrub.Token) bool { return x.Text == "<|house|>" }) ||
		!strings.Contains(string(r.Effective()), `tokens: "file:own.txt"`) {
		t.Errorf("%v\n%s", r.Tokens, r.Effective())
	}
	if again := parse(t, string(r.Effective())); again.Tokens == nil {
		t.Error("the effective configuration has no tokens")
	}
	if parse(t, "version: 1").Tokens != nil {
		t.Error("a file that names no tokens has some")
	}
}
