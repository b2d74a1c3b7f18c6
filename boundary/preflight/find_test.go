// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/protect"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestCommand: a command is checked as it is, and one behind pellucid wrap as the command
// behind it.
func TestCommand(t *testing.T) {
	for _, x := range []struct {
		server  string
		command []string
		name    string
		pin     string
		line    string
		err     string
		usage   bool
	}{
		{"", []string{"/bin/srv", "a b"}, "srv", "", "  /bin/srv " + terminal.ShellWord("a b") + "\n", "", false},
		{"s", []string{"/bin/srv"}, "s", "", "  /bin/srv\n", "", false},
		{"", []string{"pellucid", "wrap", "--name", "n", "--pin", "p", "--", "srv", "-x"}, "n", "p", "  srv -x\n", "", false},
		{"s", []string{"pellucid.exe", "wrap", "--", "srv"}, "s", "", "  srv\n", "", false},
		{"", []string{"pellucid", "wrap", "--url", "https://a.example"}, "", "", "", "check: this wraps a URL: name the client's file that has it", true},
		{"", []string{"pellucid", "wrap", "--unknown"}, "", "", "", "check: " + errUnknownWrap.Error(), true},
		{"", []string{"pellucid", "wrap"}, "", "", "", "check: its entry wraps nothing", true},
	} {
		f := finder(nil)
		f.Server = x.server
		got, err := f.Command(x.command, []string{"A=b", "C"})
		if x.err != "" {
			if err == nil || err.Error() != x.err || errors.Is(err, ErrUsage) != x.usage {
				t.Errorf("%q: %v, want %s", x.command, err, x.err)
			}
			continue
		}
		if err != nil || got.Name != x.name || got.pin != x.pin || got.CommandLine() != x.line || got.dial == nil || got.Asks(true) {
			t.Errorf("%q: %+v, %v", x.command, got, err)
		}
	}
}

// TestFiles: a file is a client's configuration or a saved surface; anything else is an error
// that says what to do.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("mcp.json", `{"mcpServers":{"a":{"command":"x"},"off":{"command":"y","disabled":true}}}`)
	dump := write("dump.json", string(dumpOf(t, "now", "Says the time.")))
	other := write("other\u202e.json", `{"a":1}`)
	for _, x := range []struct {
		paths []string
		names string
		asks  string
		kind  error
		err   string
	}{
		{[]string{config, dump}, "a off ", "a", nil, ""},
		{[]string{"-"}, "stdin", "stdin", nil, ""},
		{[]string{other}, "", "", ErrFormat, "is neither a client's configuration nor a saved surface"},
		{[]string{"https://a.example/mcp"}, "", "", ErrUsage, `check: takes files, not URLs: write the URL into a file: {"mcpServers": {"NAME": {"url": "https://example.com/mcp"}}}`},
		{[]string{filepath.Join(dir, "none.json")}, "", "", os.ErrNotExist, "check: "},
	} {
		f := finder(nil)
		f.Stdin = strings.NewReader(`{"mcpServers":{"stdin":{"command":"x"}}}`)
		all, err := f.Files(x.paths)
		if x.kind != nil {
			if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.err) || strings.ContainsRune(err.Error(), '\u202e') {
				t.Errorf("%q: %v, want %s", x.paths, err, x.err)
			}
			continue
		}
		var names, asks []string
		for _, g := range all {
			names = append(names, g.Name)
			if g.Asks(false) {
				asks = append(asks, g.Name)
			}
		}
		if err != nil || strings.Join(names, " ") != x.names || strings.Join(asks, " ") != x.asks {
			t.Errorf("%q: %q, asks about %q, %v", x.paths, names, asks, err)
		}
	}
}

// TestDump: only a saved surface is one; one that is too large is refused as a server is.
func TestDump(t *testing.T) {
	f := finder(nil)
	f.Server, f.Stdin = "s", bytes.NewReader(dumpOf(t, "now", "Says the time."))
	if got, err := f.Dump("-"); err != nil || got.Name != "s" || got.File != "-" || got.dump == nil {
		t.Errorf("%+v, %v", got, err)
	}
	f.Stdin = strings.NewReader(`{"mcpServers":{}}`)
	if _, err := f.Dump("-"); !errors.Is(err, ErrFormat) || !strings.HasSuffix(err.Error(), "is no saved surface: check --dump writes one") {
		t.Errorf("%v", err)
	}
	f.Stdin = strings.NewReader(strings.Repeat(" ", 64<<20+1))
	got, err := f.Dump("-")
	var refused *surface.RefusedError
	if err != nil || !errors.As(got.problem, &refused) || refused.Reason != surface.TooLarge {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestSelect: a server is found by what its file or the person calls it.
func TestSelect(t *testing.T) {
	all := []*Target{{Name: "cursor/a", entry: "a"}, {Name: "zed/a", entry: "a"}, {Name: "zed/b\u202e", entry: "b\u202e"}}
	for name, want := range map[string]int{"": 3, "a": 2, "zed/a": 1, "b\u202e": 1} {
		f := finder(nil)
		f.Server = name
		if got, err := f.Select(all); err != nil || len(got) != want {
			t.Errorf("%+q: %d, %v", name, len(got), err)
		}
	}
	f := finder(nil)
	f.Server = "c\u202e"
	want := `check: no server is called "c\u202e": there is cursor/a, zed/a, ` + terminal.ShellWord("zed/b\u202e")
	if _, err := f.Select(all); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if got, err := f.Select(nil); err != nil || len(got) != 0 {
		t.Errorf("no servers: %v, %v", got, err)
	}
	for range 20 {
		all = append(all, &Target{Name: "x"})
	}
	if _, err := f.Select(all); err == nil || !strings.HasSuffix(err.Error(), ", x, …") {
		t.Errorf("%v", err)
	}
}

// TestClients reads the files of all clients on a machine, and fails with one that is damaged.
func TestClients(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	m := protect.Machine{OS: "linux", Home: home, Dir: t.TempDir(), Getenv: func(string) string { return "" }}
	for _, x := range []struct {
		content, names string
		kind           error
	}{
		{`{"mcpServers":{"a":{"command":"x"}}}`, "cursor/a", nil},
		{`{}`, "", nil}, // nothing is configured in it yet
		{`{`, "", ErrFormat},
	} {
		if err := os.WriteFile(path, []byte(x.content), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := finder(nil).Clients(m)
		var names []string
		for _, g := range all {
			names = append(names, g.Name)
		}
		if !errors.Is(err, x.kind) || strings.Join(names, " ") != x.names {
			t.Errorf("%s: %q, %v", x.content, names, err)
		}
	}
}

// TestTitle: names and files are escaped, and a target without a name is a surface.
func TestTitle(t *testing.T) {
	for want, x := range map[string]*Target{
		"a":                                      {Name: "a"},
		"surface (f)":                            {File: "f"},
		"a" + terminal.Inline("\u202e") + " (f)": {Name: "a\u202e", File: "f"},
	} {
		if got := x.Title(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestProgress: where no terminal is, a line says once what is done.
func TestProgress(t *testing.T) {
	a := &Target{Name: "a\u202e", File: "f"}
	var out strings.Builder
	p := NewProgress(&out, []*Target{a, {Name: "b"}})
	p.Begin(a)
	p.Question("b", surface.Step{Chunk: 1, Chunks: 2})
	p.Done()
	if out.String() != "verifying 2 servers …\n" {
		t.Errorf("%q", out.String())
	}
	for want, x := range map[string]surface.Step{"verifying b …": {Chunk: 1, Chunks: 1}, "verifying b … part 2 of 3": {Chunk: 2, Chunks: 3}} {
		if got := verifying(p.titles["b"], x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if p.titles[a.Name] != a.Title() {
		t.Errorf("%q", p.titles)
	}
}
