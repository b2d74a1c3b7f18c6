// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// clientFile is a file of a client in a directory of its own.
func clientFile(t *testing.T, client string, project bool, content string) Target {
	t.Helper()
	return Target{Client: client, Path: write(t, content), Format: Generic, project: project}
}

// shown is a report as a person and as a program read it, with the paths replaced.
func shown(t *testing.T, r Report, files []Target) (text, json string) {
	t.Helper()
	var person, program strings.Builder
	if err := r.Write(&person, terminal.Palette{}); err != nil {
		t.Fatal(err)
	}
	if err := terminal.WriteJSON(&program, r); err != nil {
		t.Fatal(err)
	}
	text, json = person.String(), program.String()
	for i, f := range files {
		name := "FILE" + string(rune('A'+i))
		both := strings.NewReplacer(strings.ReplaceAll(f.Path, `\`, `\\`), name, f.Path, name) // quoted, or as it is
		text, json = both.Replace(text), both.Replace(json)
	}
	return text, json
}

// TestRun plans, changes and restores the files of two clients, and says so.
func TestRun(t *testing.T) {
	const before = `{"mcpServers":{"a\u202e":{"command":"x"},"kept":{"command":"y"}}}`
	o := options(t)
	o.Skip = []string{"kept"}
	files := []Target{clientFile(t, "cursor", true, before), clientFile(t, "zed", false, `{"mcpServers":{}}`), clientFile(t, "windsurf", false, "{")}
	servers := "  wrapped   a‹U+202E RIGHT-TO-LEFT OVERRIDE›\n  skipped   kept: as asked\n"
	for _, x := range []struct {
		name string
		job  Job
		text []string // in this order
		json string
		err  error
	}{
		{"dry run", Job{DryRun: true}, []string{"cursor  FILEA\n" + servers, `    -`, `    +`, "\n1 file would be changed. Nothing was.\n", "A file of a project"},
			`{"dry_run":true,"undo":false,"files":[{"client":"cursor","path":"FILEA","changed":true,"servers":[{"at":["mcpServers"],"name":"a\u202e","action":"wrapped","disabled":false},`, ErrFormat},
		{"run", Job{}, []string{"cursor  FILEA\n" + servers + "  back-up   ", "\n1 file changed. Restart the clients; pellucid protect --undo takes it back.\n", "A file of a project"},
			`"changed":true,"backup":"`, ErrFormat},
		{"again", Job{}, []string{"cursor  FILEA\n  already   a‹U+202E RIGHT-TO-LEFT OVERRIDE›\n", "\n\nNothing was changed.\n"}, `"changed":false,"servers":[{"at":["mcpServers"],"name":"a\u202e","action":"already"`, ErrFormat},
		{"undo", Job{Undo: true}, []string{"cursor  FILEA\n  restored  a‹U+202E RIGHT-TO-LEFT OVERRIDE›\n\n1 file restored. Restart the clients.\n"}, `"undo":true,"files":[{"client":"cursor"`, nil},
		{"undo again", Job{Undo: true}, []string{"Nothing to undo: Pellucid has changed no file that was found.\n"}, `{"dry_run":false,"undo":true,"files":[]}`, nil},
	} {
		r, err := o.Run(files, x.job)
		if !errors.Is(err, x.err) || (err == nil) != (x.err == nil) {
			t.Errorf("%s: %v, want %v", x.name, err, x.err)
		}
		text, json := shown(t, r, files)
		rest := text
		for _, part := range x.text {
			_, after, found := strings.Cut(rest, part)
			if !found {
				t.Errorf("%s: no %q in\n%s", x.name, part, text)
			}
			rest = after
		}
		if !strings.Contains(json, x.json) || strings.ContainsRune(text+json, '\u202e') {
			t.Errorf("%s: no %q in %s", x.name, x.json, json)
		}
		if now := read(t, files[0].Path); (now == before) != (x.job.DryRun || x.job.Undo) {
			t.Errorf("%s: the file is %q", x.name, now)
		}
	}
}

// TestRunNamed: a file that was named is named in the advice to undo, and an undo of a file
// that was never changed fails.
func TestRunNamed(t *testing.T) {
	o := options(t)
	files := []Target{{Path: filepath.Join(t.TempDir(), "zo\u00eb \u65e5.json"), Format: Generic}}
	if err := os.WriteFile(files[0].Path, []byte(`{"mcpServers":{"a":{"command":"x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := o.Run(files, Job{Undo: true}); !errors.Is(err, errNoRecord) || len(r.Files) != 1 || r.Files[0].Error == "" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err := o.Run(files, Job{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := shown(t, r, files); !strings.HasPrefix(text, "file  FILEA\n") || !strings.Contains(text, "; pellucid protect --undo --file "+strings.Replace(terminal.ShellWord("a b"), "a b", "FILEA", 1)+" takes it back.\n") {
		t.Errorf("%s", text)
	}
}

// TestRunEmpty: an editor's settings without servers are not listed, and one that cannot be
// written is said to be unchanged.
func TestRunEmpty(t *testing.T) {
	o := options(t)
	r, err := o.Run([]Target{clientFile(t, "zed", false, "{}")}, Job{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := shown(t, r, nil); text != "No server is configured in any client's file.\n" {
		t.Errorf("%q", text)
	}
	failed := Report{Files: []FileReport{{Path: "f", Error: "why", Servers: []Server{{Name: "a", Action: Wrapped}}}}}
	if text, _ := shown(t, failed, nil); text != "file  f\n  wrapped   a\n  nothing was changed\n" {
		t.Errorf("%q", text)
	}
}

// TestUnknown: a name of Skip that no server has is found, unless a file cannot be read.
func TestUnknown(t *testing.T) {
	good := clientFile(t, "cursor", false, `{"mcpServers":{"a":{"command":"x"}}}`)
	bad := clientFile(t, "zed", false, `{`)
	for _, x := range []struct {
		skip  []string
		files []Target
		want  string
	}{
		{nil, []Target{good}, ""},
		{[]string{"a"}, []Target{good}, ""},
		{[]string{"a", "b", "c"}, []Target{good}, "b"},
		{[]string{"b"}, []Target{good, bad}, ""},
		{[]string{"b"}, nil, "b"},
	} {
		o := options(t)
		o.Skip = x.skip
		if got := o.Unknown(x.files); got != x.want {
			t.Errorf("%q: %q, want %q", x.skip, got, x.want)
		}
	}
}
