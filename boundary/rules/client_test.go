// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/mcp/wire"
)

// clients is a world that holds the clients' files.
func clients(t testing.TB) fixed {
	t.Helper()
	w := newFixed()
	names, err := filepath.Glob(filepath.Join("testdata", "clients", "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatal("no clients' files", err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		w.files["/c/"+filepath.Base(name)] = string(b)
	}
	w.env["API_KEY"] = secret
	return w
}

func TestClients(t *testing.T) {
	type upstream struct {
		Command      []string
		Env, Headers map[string]string
		Cwd, URL     string
		Transport    wire.Transport
	}
	w := clients(t)
	for _, x := range []struct {
		file, name string
		want       upstream
	}{
		{"claude_desktop_config.json", "filesystem", upstream{Command: []string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/Users/me/Desktop", "/Users/me/Downloads"}}},
		{"claude_desktop_config.json", "brave", upstream{Command: []string{"npx", "-y", "@modelcontextprotocol/server-brave-search"}, Env: map[string]string{"BRAVE_API_KEY": "not-to-be-shown"}}},
		{"claude_code.mcp.json", "api", upstream{URL: "https://api.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer " + secret}, Transport: wire.StreamableHTTP}},
		{"claude_code.mcp.json", "events", upstream{URL: "https://events.example.com/sse", Transport: wire.HTTPWithSSE}},
		{"claude_code.mcp.json", "local", upstream{Command: []string{"/home/me/bin/server"}, Env: map[string]string{"LEVEL": "info"}}},
		{"cursor_mcp.json", "remote", upstream{URL: "https://remote.example.com/mcp", Headers: map[string]string{"X-Key": secret}}},
		{"vscode_mcp.json", "http", upstream{URL: "https://http.example.com/mcp?a=//b", Transport: wire.StreamableHTTP}},
		{"vscode_settings.json", "s", upstream{Command: []string{"s"}, Cwd: "/etc/p/work"}},
		{"windsurf_mcp_config.json", "figma", upstream{URL: "https://figma.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer " + secret}}},
		{"windsurf_mcp_config.json", "github", upstream{Command: []string{"docker", "run", "-i", "--rm", "-e", "TOKEN", "image"}, Env: map[string]string{"TOKEN": "not-to-be-shown"}}},
		{"zed_settings.json", "new", upstream{Command: []string{"server-new", "--stdio"}, Env: map[string]string{"A": "b"}}},
		{"zed_settings.json", "old", upstream{Command: []string{"server-old", "-x"}, Env: map[string]string{"C": "d"}}},
		{"gemini_settings.json", "stream", upstream{URL: "https://stream.example.com/mcp", Transport: wire.StreamableHTTP}},
	} {
		r, err := Parse([]byte("version: 1\nservers: {"+x.name+": {mcp_json: /c/"+x.file+"}}"), w.options())
		if err != nil {
			t.Errorf("%s %s: %v", x.file, x.name, err)
			continue
		}
		s := r.Server(x.name)
		got := upstream{Command: s.Command, Cwd: s.Cwd, URL: s.URL.Reveal(), Transport: s.Transport, Env: revealed(s.Env), Headers: revealed(s.Headers)}
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s %s: %s", x.file, x.name, diff)
		}
		if dump := string(r.Effective()); strings.Contains(dump, secret) || strings.Contains(dump, "not-to-be-shown") || strings.Contains(dump, "example.com") {
			t.Errorf("%s %s shows what may be secret:\n%s", x.file, x.name, dump)
		}
	}
}

func revealed(list []Variable) map[string]string {
	var out map[string]string
	for _, v := range list {
		if out == nil {
			out = map[string]string{}
		}
		out[v.Name] = v.Value.Reveal()
	}
	return out
}

func TestClientRefused(t *testing.T) {
	w := clients(t)
	for body, name := range map[string]string{
		`{"mcpServers":{"a":{"command":"x"}`:                                        "broken",
		`{"a":1,"a":2,"mcpServers":{"a":{"command":"x"}}}`:                          "duplicate",
		`{"mcpServers":{"a":{"command":5}}}`:                                        "number",
		`{"mcpServers":{"a":{"command":"x","args":[5]}}}`:                           "argument",
		`{"mcpServers":{"a":{"command":"x","env":{"A":{}}}}}`:                       "object",
		`{"mcpServers":{"a":{"command":"x","env":{"A=B":"c"}}}}`:                    "name",
		`{"mcpServers":{"a":{"command":"x\u0000y"}}}`:                               "nul",
		`{"mcpServers":{"a":{"command":"${"}}}`:                                     "open",
		`{"mcpServers":{"a":{"url":"ftp://x"}}}`:                                    "scheme",
		`{"mcpServers":{"a":{"url":"https://u:p@x"}}}`:                              "user",
		`{"mcpServers":{"a":{"url":"http://127.0.0.1:7420/mcp"}}}`:                  "self",
		`{"mcpServers":{"a":{"url":"https://x","headers":{"Mcp-Session-Id":"x"}}}}`: "own",
		`{"mcpServers":{"a":{"url":"https://x","headers":{"A":"x\ny"}}}}`:           "value",
		`{"theme":1} /* not closed`:                                                 "comment",
		`{"mcpServers":{"a":{"command":"pellucid","args":["wrap","--","x"]}}}`:      "wrapped",
		``:            "empty",
		`{"theme":1}`: "none",
	} {
		w.files["/c/"+name] = body
	}
	for _, x := range []struct{ file, name, want string }{
		{"broken", "a", `file "/c/broken": strictjson: `},
		{"duplicate", "a", `file "/c/duplicate": strictjson: `},
		{"number", "a", "command of its entry is not a string"},
		{"argument", "a", "args of its entry are not at most 1024 strings"},
		{"object", "a", "env of its entry has a value that is not a string"},
		{"name", "a", `env of its entry: "A=B" cannot stand there`},
		{"nul", "a", "command of its entry is too long, or holds a NUL"},
		{"open", "a", "command of its entry: a variable without an end"},
		{"scheme", "a", "url of its entry: want an http or https URL"},
		{"user", "a", "url of its entry: holds credentials"},
		{"self", "a", "url of its entry: is this gateway itself"},
		{"own", "a", `headers of its entry: "Mcp-Session-Id" cannot stand there`},
		{"value", "a", `headers of its entry: the value of "A" holds what a header cannot`},
		{"comment", "a", `file "/c/comment": strictjson: `},
		{"wrapped", "a", "its entry runs behind pellucid wrap already"},
		{"empty", "a", `file "/c/empty": strictjson: `},
		{"none", "a", "it has none of mcpServers, servers, mcp.servers and context_servers"},
		{"cursor_mcp.json", "gone", `it has no server called "gone"`},
		{"cursor_mcp.json", "workspace", `command of its entry: variable "workspaceFolder" is not set`},
		{"vscode_mcp.json", "perplexity", `env of its entry: variable "input:key" is one that only the client knows`},
		{"vscode_mcp.json", "file", "its entry has an envFile"},
		{"gemini_settings.json", "two", "its entry has two URLs"},
		{"gemini_settings.json", "none", "its entry has neither a command nor a URL"},
		{"gemini_settings.json", "both", "its entry has a command and a URL"},
	} {
		_, err := Parse([]byte("version: 1\nservers: {"+x.name+": {mcp_json: /c/"+x.file+"}}"), w.options())
		if err == nil || !strings.Contains(err.Error(), "line 2") || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s %s: %v", x.file, x.name, err)
		}
	}
}

// TestClientOverride: what the configuration says goes before the client's file,
// which is where an editor's questions are answered.
func TestClientOverride(t *testing.T) {
	r, err := Parse([]byte(`{version: 1, servers: {perplexity: {mcp_json: /c/vscode_mcp.json, env: {PERPLEXITY_API_KEY: env:API_KEY}, cwd: /w}}}`), clients(t).options())
	if err != nil {
		t.Fatal(err)
	}
	s := r.Server("perplexity")
	want := map[string]string{"PERPLEXITY_API_KEY": secret, "DEBUG": "true", "DEPTH": "3"}
	if diff := cmp.Diff(want, revealed(s.Env)); diff != "" || s.Cwd != "/w" {
		t.Error(diff, s.Cwd)
	}
}

func FuzzClient(f *testing.F) {
	for _, s := range clients(f).files {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range []string{"a", "filesystem", "http", "old"} {
			e, err := parseClient(in, name)
			if err != nil {
				continue
			}
			if (len(e.command) > 0) == (e.url != "") {
				t.Fatalf("command %q and URL %q", e.command, e.url)
			}
		}
	})
}
