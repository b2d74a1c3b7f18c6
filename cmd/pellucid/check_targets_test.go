// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/preflight"
	"github.com/pellucid-mcp/pellucid/boundary/protect"
)

// TestParseWrap: the command lines that pellucid protect writes are read by the parser of
// pellucid wrap.
func TestParseWrap(t *testing.T) {
	for _, x := range []struct {
		args []string
		want *preflight.Wrapped // nil: refused
	}{
		{[]string{"wrap", "--name", "files", "--env", "TOKEN", "--", "npx", "--yes", "srv"}, &preflight.Wrapped{Name: "files", Env: []string{"TOKEN"}, Command: []string{"npx", "--yes", "srv"}}},
		{[]string{"wrap", "--", "/bin/srv"}, &preflight.Wrapped{Name: "srv", Command: []string{"/bin/srv"}}},
		{[]string{"wrap", "srv", "-x"}, &preflight.Wrapped{Name: "srv", Command: []string{"srv", "-x"}}},
		{[]string{"wrap", "--set", "pin=p", "--cwd", "/w", "--", "srv", "--", "a"}, &preflight.Wrapped{Name: "srv", Pin: "p", Cwd: "/w", Command: []string{"srv", "--", "a"}}},
		{[]string{"wrap", "--name", "n", "--url", "env:PELLUCID_URL", "--header", "X=env:V", "--transport", "sse"},
			&preflight.Wrapped{Name: "n", URL: "env:PELLUCID_URL", Header: []string{"X=env:V"}, SSE: true, Command: []string{}}},
		{[]string{"wrap", "--unknown"}, nil},
		{[]string{"wrap", "--pin", "p", "--", "srv"}, nil},
		{[]string{"wrap", "--name", "n"}, nil},
		{[]string{"wrap", "--set", "pins=p", "--", "srv"}, nil},
		{[]string{"wrap", "--unknown", "--", "srv"}, nil},
		{[]string{"wrap", "--name"}, nil},
		{[]string{"wrap", "--transport", "carrier", "--url", "x"}, nil},
	} {
		got, err := parseWrap(x.args)
		if x.want == nil {
			if err == nil {
				t.Errorf("%q: %+v", x.args, got)
			}
			continue
		}
		if got != nil && len(got.Command) == 0 && len(x.want.Command) == 0 {
			got.Command = x.want.Command
		}
		if err != nil || !reflect.DeepEqual(got, x.want) {
			t.Errorf("%q:\n got %+v, %v\nwant %+v", x.args, got, err, x.want)
		}
	}
}

// FuzzParseWrap: any command line in a client's file is read or refused, and nothing is run.
func FuzzParseWrap(f *testing.F) {
	f.Add("--name\nn\n--\nx")
	f.Add("--help")
	f.Add("--url\nenv:U\n--header\nX=env:V")
	f.Fuzz(func(t *testing.T, args string) {
		if w, err := parseWrap(append([]string{"wrap"}, strings.Split(args, "\n")...)); (w == nil) == (err == nil) {
			t.Errorf("%+v, %v", w, err)
		}
	})
}

// TestProtectedTargets: a file that pellucid protect has rewritten has the same targets as
// before.
func TestProtectedTargets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	const before = `{"mcpServers":{
		"plain": {"command": "npx", "args": ["-y", "srv", "--", "two words"]},
		"values": {"command": "srv", "env": {"TOKEN": "s3cret", "B": "c"}, "cwd": "/w"},
		"far": {"type": "http", "url": "https://a.example/mcp?key=s3cret", "headers": {"Authorization": "Bearer s3cret"}},
		"old": {"type": "sse", "url": "https://b.example/sse"}}}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	targets := func() (lines []string) {
		t.Helper()
		find := &preflight.Finder{Getenv: func(string) string { return "" }, ParseWrap: parseWrap}
		all, err := find.Files([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			lines = append(lines, x.Name+": "+x.CommandLine())
		}
		return lines
	}
	was := targets()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opt := protect.Options{Binary: self, Records: filepath.Join(t.TempDir(), "protect")}
	if r, err := opt.Run([]protect.Target{{Path: path, Format: protect.Generic}}, protect.Job{}); err != nil || !r.Files[0].Changed {
		t.Fatalf("%+v, %v", r, err)
	}
	if is := targets(); len(was) != 4 || !slices.Equal(is, was) {
		t.Errorf("\n got %q\nwant %q", is, was)
	}
}
