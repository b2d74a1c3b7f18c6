// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// finder is a Finder with this environment. It reads a command line of pellucid wrap as far as
// the tests write one.
func finder(environ map[string]string) *Finder {
	return &Finder{Getenv: func(name string) string { return environ[name] }, ParseWrap: func(args []string) (*Wrapped, error) {
		w := &Wrapped{Name: "server"}
		for args = args[1:]; len(args) > 1; args = args[2:] {
			switch args[0] {
			case "--name":
				w.Name = args[1]
			case "--env":
				w.Env = append(w.Env, args[1])
			case "--header":
				w.Header = append(w.Header, args[1])
			case "--url":
				w.URL = args[1]
			case "--transport":
				w.SSE = args[1] == "sse"
			case "--pin":
				w.Pin = args[1]
			case "--cwd":
				w.Cwd = args[1]
			case "--":
				w.Command = args[1:]
				return w, nil
			default:
				return nil, errors.New("unknown flag")
			}
		}
		if len(args) > 0 {
			return nil, errors.New("unknown flag")
		}
		return w, nil
	}}
}

// TestParse: what stands in a file, and what is started for it.
func TestParse(t *testing.T) {
	r := finder(map[string]string{"TOKEN": "t0p"})
	tests := []struct {
		name, client string
		format       protect.Format
		file         string
		want         []string // name, command or problem
	}{
		{"plain", "", protect.Generic, `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "srv ${TOKEN}"], "env": {"A": "b"}, "cwd": "/w"}}, // yes
			"servers": {"later": {"command": "x",}}}`,
			[]string{"files: npx -y " + terminal.ShellWord("srv t0p") + "; with a value of the file in A; in /w", "later: x"}},
		{"TOML", "codex", protect.Format{Syntax: protect.TOML, Paths: [][]string{{"mcp_servers"}}}, "[mcp_servers.a]\ncommand = 'npx'\nargs = ['srv ${TOKEN}']\nenv_vars = ['TOKEN']\n" +
			"[mcp_servers.b]\ncommand = 'pellucid'\nargs = ['wrap', '--name', 'b', '--env', 'TOKEN', '--', 'srv', 'x']\nenv_vars = ['TOKEN']\n",
			[]string{"codex/a: npx " + terminal.ShellWord("srv t0p") + "; with a value of the file in TOKEN", "codex/b: srv x; with a value of the file in TOKEN"}},
		{"YAML", "", protect.Format{Syntax: protect.YAML, Paths: [][]string{{"extensions"}}}, "extensions:\n  a: {cmd: npx, args: [srv], envs: {A: b}}\n  dev: {type: builtin}\n",
			[]string{"a: npx srv; with a value of the file in A", "dev: its entry has neither a command nor a URL"}},
		{"a list of YAML", "", protect.Format{Syntax: protect.YAML, Paths: [][]string{{"mcpServers"}}}, "mcpServers:\n- name: my server\n  command: npx\n  args:\n  - -y\n",
			[]string{"my server: npx -y"}},
		{"opencode", "opencode", protect.Generic, `{"mcp": {"a": {"type": "local", "command": ["npx", "-y", "srv"], "environment": {"A": "b"}}, "b": {"type": "remote", "url": "https://b.example/"}}}`,
			[]string{"opencode/a: npx -y srv; with a value of the file in A", "opencode/b: URL"}},
		{"behind the boundary", "cursor", protect.Generic, `{"mcpServers": {"files": {"command": "pellucid",
			"args": ["wrap", "--name", "files", "--env", "TOKEN", "--", "npx", "--yes", "srv"], "env": {"TOKEN": "x"}}}}`,
			[]string{"cursor/files: npx --yes srv; with a value of the file in TOKEN"}},
		{"URL behind the boundary", "", protect.Generic, `{"mcpServers": {"far": {"command": "pellucid.exe",
			"args": ["wrap", "--url", "env:PELLUCID_URL", "--header", "X=env:V"], "env": {"PELLUCID_URL": "https://a.example/mcp", "V": "w"}}}}`,
			[]string{"far: URL"}},
		{"a later release's", "", protect.Generic, `{"mcpServers": {"far": {"command": "pellucid", "args": ["wrap", "--unknown"]}}}`,
			[]string{"far: its entry runs behind pellucid wrap, but in a way that this release does not understand"}},
		{"projects", "claude-code", protect.Generic, `{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}, "/q": {}}}`,
			[]string{"claude-code//p/a: x"}},
		{"hidden name", "", protect.Generic, "{\"mcpServers\": {\"a\u202e\": {\"command\": \"x\\u202ey\", \"args\": [\"\", \"two words\", \"$(x)\"]}}}",
			[]string{"a\u202e: " + terminal.ShellWord("x\u202ey") + " " + terminal.ShellWord("") + " " + terminal.ShellWord("two words") + " " + terminal.ShellWord("$(x)")}},
		{"bad entries", "", protect.Generic, `{"mcpServers": {"a": {}, "b": 1, "c": {"command": "x", "envFile": "e"}, "d": {"command": "x", "env": {"K": "${input:key}"}}, "e": {"command": 5}}}`,
			[]string{"a: its entry has neither a command nor a URL", "b: !", "c: its entry has an envFile", "d: !", "e: command of its entry is not a string"}},
	}
	for _, x := range tests {
		targets, err := r.parse(x.client, "/dir/f.json", x.format, []byte(x.file))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var got []string
		for _, g := range targets {
			is := strings.Join(append([]string{strings.TrimSuffix(strings.TrimPrefix((&Target{Command: g.Command}).CommandLine(), "  "), "\n")}, g.detail...), "; ")
			switch {
			case g.problem != nil:
				is = g.problem.Error()
			case g.Command == nil:
				is = "URL"
			}
			if g.problem == nil && (g.dial == nil || strings.Contains(g.identity, "t0p")) {
				t.Errorf("%s: %q has no dialer, or a secret in %q", x.name, g.Name, g.identity)
			}
			got = append(got, g.Name+": "+is)
		}
		if !slices.EqualFunc(got, x.want, func(g, w string) bool {
			w, some := strings.CutSuffix(w, "!")
			return g == w || strings.HasPrefix(g, w) && (some || strings.Contains(w, "its entry"))
		}) {
			t.Errorf("%s:\n got %q\nwant %q", x.name, got, x.want)
		}
	}
}

// TestParseRefuses: what is no configuration is none, and says so.
func TestParseRefuses(t *testing.T) {
	r := finder(nil)
	for _, file := range []string{"", "{", "[]", "{}", `{"mcpServers": []}`, `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`} {
		if got, err := r.parse("", "f\u202e.json", protect.Generic, []byte(file)); !errors.Is(err, ErrFormat) || strings.ContainsRune(err.Error(), '\u202e') {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
}

// FuzzParse: any file is read or refused, and never started.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"files": {"command": "npx", "args": ["-y"], "env": {"A": "${HOME:-b}"}}, "far": {"url": "https://a.example", "headers": {"X": "y"}}}}`))
	f.Add([]byte(`{"context_servers": {"a": {"command": {"path": "pellucid", "args": ["wrap", "--name", "n", "--", "x"]}}}}`))
	f.Add([]byte(`{"projects": {"/p": {"mcpServers": {"a": {"command": "pellucid", "args": ["wrap", "--help"]}}}}}`))
	r := finder(nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		targets, err := r.parse("", "f.json", protect.Generic, b)
		if err != nil && targets != nil {
			t.Error("targets beside an error")
		}
		for _, x := range targets {
			if (x.dial == nil) == (x.problem == nil) {
				t.Errorf("%+q: neither a dialer nor a problem, or both", x.Name)
			}
			for _, c := range []byte(x.CommandLine()) {
				if c != '\n' && (c < ' ' || c > '~') {
					t.Errorf("%+q is shown raw", x.Command)
				}
			}
		}
	})
}
