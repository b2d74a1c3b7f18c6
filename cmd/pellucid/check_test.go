// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// A server for scripts: its tool "now" has the description that this variable holds,
// escaped, and each word of the other names one more tool.
const (
	describeVariable = "PELLUCID_TEST_DESCRIPTION"
	toolsVariable    = "PELLUCID_TEST_TOOLS"
	legacyVariable   = "PELLUCID_TEST_LEGACY" // it ends if another message than initialize comes first
	// Each word of this one names a tool for clients with the capability elicitation.
	capableVariable = "PELLUCID_TEST_CAPABLE"
)

func init() {
	if os.Getenv(roleVariable) != "describing" {
		return
	}
	text, err := unquote(os.Getenv(describeVariable))
	if err != nil {
		os.Exit(1)
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "describing", Version: "1"}, nil)
	capable := strings.Fields(os.Getenv(capableVariable))
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, r)
			list, is := result.(*mcp.ListToolsResult)
			session, _ := r.GetSession().(*mcp.ServerSession)
			if !is || session.InitializeParams() != nil && session.InitializeParams().Capabilities.Elicitation != nil {
				return result, err
			}
			list.Tools = slices.DeleteFunc(list.Tools, func(t *mcp.Tool) bool { return slices.Contains(capable, t.Name) })
			return result, err
		}
	})
	for _, name := range append(append(strings.Fields(os.Getenv(toolsVariable)), capable...), "now") {
		tool := &mcp.Tool{Name: name, Description: "Does what it is called."}
		if name == "now" {
			tool.Description = text
		}
		mcp.AddTool(s, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			os.Exit(9) // check calls nothing
			return nil, nil, nil
		})
	}
	var over mcp.Transport = &mcp.StdioTransport{}
	if os.Getenv(legacyVariable) != "" {
		in := bufio.NewReader(os.Stdin)
		_, _ = in.Peek(1)
		if first, _ := in.Peek(in.Buffered()); !bytes.Contains(first, []byte(`"initialize"`)) {
			os.Exit(8)
		}
		over = &mcp.IOTransport{Reader: io.NopCloser(in), Writer: os.Stdout}
	}
	if err := s.Run(context.Background(), over); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// TestConfigReader: what stands in a file, and what is started for it.
func TestConfigReader(t *testing.T) {
	r := &configReader{getenv: func(name string) string { return map[string]string{"TOKEN": "t0p"}[name] }}
	tests := []struct {
		name, client string
		format       protect.Format
		file         string
		want         []string // name, command or problem
	}{
		{"plain", "", protect.Generic, `{"mcpServers": {"files": {"command": "npx", "args": ["-y", "srv ${TOKEN}"], "env": {"A": "b"}, "cwd": "/w"}}, // yes
			"servers": {"later": {"command": "x",}}}`,
			[]string{"files: npx -y \"srv t0p\"; with a value of the file in A; in /w", "later: x"}},
		{"behind the boundary", "cursor", protect.Generic, `{"mcpServers": {"files": {"command": "/opt/pellucid",
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
			[]string{"a\u202e: " + `"x\u202ey" "" "two words" "$(x)"`}},
		{"bad entries", "", protect.Generic, `{"mcpServers": {"a": {}, "b": 1, "c": {"command": "x", "envFile": "e"}, "d": {"command": "x", "env": {"K": "${input:key}"}}}}`,
			[]string{"a: its entry has neither a command nor a URL", "b: !", "c: its entry has an envFile", "d: !"}},
	}
	for _, x := range tests {
		targets, err := r.parse(x.client, "/dir/f.json", x.format, []byte(x.file))
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		var got []string
		for _, g := range targets {
			is := strings.Join(append([]string{strings.TrimSuffix(strings.TrimPrefix((&target{command: g.command}).shown(), "  "), "\n")}, g.detail...), "; ")
			switch {
			case g.problem != nil:
				is = g.problem.Error()
			case g.command == nil:
				is = "URL"
			}
			if g.problem == nil && (g.dial == nil || strings.Contains(g.identity, "t0p")) {
				t.Errorf("%s: %q has no dialer, or a secret in %q", x.name, g.name, g.identity)
			}
			got = append(got, g.name+": "+is)
		}
		if !slices.EqualFunc(got, x.want, func(g, w string) bool {
			w, some := strings.CutSuffix(w, "!")
			return g == w || strings.HasPrefix(g, w) && (some || strings.Contains(w, "its entry"))
		}) {
			t.Errorf("%s:\n got %q\nwant %q", x.name, got, x.want)
		}
	}
}

// TestConfigReaderRefuses: what is no configuration is none, and says so.
func TestConfigReaderRefuses(t *testing.T) {
	r := &configReader{getenv: func(string) string { return "" }}
	for _, file := range []string{"", "{", "[]", "{}", `{"mcpServers": []}`, `{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`} {
		if got, err := r.file("", "f\u202e.json", []byte(file)); err == nil || strings.ContainsRune(err.Error(), '\u202e') {
			t.Errorf("%q: %v, %v", file, got, err)
		}
	}
}

// FuzzConfigReader: any file is read or refused, and never started.
func FuzzConfigReader(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"files": {"command": "npx", "args": ["-y"], "env": {"A": "${HOME:-b}"}}, "far": {"url": "https://a.example", "headers": {"X": "y"}}}}`))
	f.Add([]byte(`{"context_servers": {"a": {"command": {"path": "pellucid", "args": ["wrap", "--name", "n", "--", "x"]}}}}`))
	f.Add([]byte(`{"projects": {"/p": {"mcpServers": {"a": {"command": "pellucid", "args": ["wrap", "--help"]}}}}}`))
	r := &configReader{getenv: func(string) string { return "" }}
	f.Fuzz(func(t *testing.T, b []byte) {
		targets, err := r.file("", "f.json", b)
		if err != nil && targets != nil {
			t.Error("targets beside an error")
		}
		for _, x := range targets {
			if (x.dial == nil) == (x.problem == nil) {
				t.Errorf("%+q: neither a dialer nor a problem, or both", x.name)
			}
			for _, c := range []byte(x.shown()) {
				if c != '\n' && (c < ' ' || c > '~') {
					t.Errorf("%+q is shown raw", x.command)
				}
			}
		}
	})
}

// TestAskEach: only a yes is one, and the command stands before the question.
func TestAskEach(t *testing.T) {
	for answers, want := range map[string]string{
		"y\nn\n": "started declined", "\nYES\n": "declined started", "yep\n y \n": "declined started", "y\n": "nobody", "": "nobody", "y\ny": "nobody",
	} {
		targets := []*target{{name: "a\u202e", file: "f.json", command: []string{"x", "a\u200bb"}}, {name: "b", file: "f.json", command: []string{"y"}}}
		var out bytes.Buffer
		got := "nobody"
		if err := askEach(strings.NewReader(answers), &out, targets); err == nil {
			words := []string{}
			for _, x := range targets {
				words = append(words, map[bool]string{false: "started", true: "declined"}[x.declined])
			}
			got = strings.Join(words, " ")
		}
		if got != want {
			t.Errorf("%q: %s, want %s", answers, got, want)
		}
		if !strings.Contains(out.String(), "\n  x \"a\\u200bb\"\nStart it? [y/N] ") || strings.ContainsAny(out.String(), "\u202e\u200b") {
			t.Errorf("%+q", out.String())
		}
	}
}

// TestDeclined: what nobody wants started, or its file has disabled, is not, and is not
// clean.
func TestDeclined(t *testing.T) {
	no := &target{name: "a", file: "f.json", command: []string{"/no/such"}, declined: true}
	off := &target{name: "b", file: "f.json", command: []string{"/no/such"}, disabled: true}
	all := []*target{no, off}
	r, err := new(checkCmd).all(t.Context(), newVerifying(&env{Stderr: io.Discard}, all), &surface.Gate{}, all)
	if err != nil || r.Conclusion != notChecked || r.exit() == nil || r.Servers[1].Conclusion != skipped {
		t.Errorf("%+v, %v", r, err)
	}
}
