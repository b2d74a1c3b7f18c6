// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestREADME types what README says under "Grounding" into a shell, but for what
// keeps running, takes long or needs somebody else's adapter.
func TestREADME(t *testing.T) {
	sh := newShell(t)
	script, commands := shown(t, "Grounding", "pellucid ground serve", "pellucid conform")
	if commands < 5 {
		t.Fatalf("%d commands found: this test has lost sight of the README", commands)
	}
	out := sh.run(t, script)
	for _, want := range []string{"FALSE: 2 validators", "1 stored", "VERIFIED: 1 validator", "1 withheld"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in what is printed:\n%s", want, out)
		}
	}
}

// TestREADMEEvidence does the same with "Evidence", on the record of one call. The id
// that stands there is replaced by that record's.
func TestREADMEEvidence(t *testing.T) {
	sh := newShell(t)
	script, commands := shown(t, "Evidence")
	if commands < 7 {
		t.Fatalf("%d commands found: this test has lost sight of the README", commands)
	}
	answer := sh.run(t, "pellucid wrap --name demo --evidence best-effort --env "+roleVariable+`=server -- pellucid 2>log <<'END'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"script","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"whisper","arguments":{}}}
END
`)
	id := regexp.MustCompile(`"evidence":"([0-9a-f]{32})"`).FindStringSubmatch(answer)
	if id == nil {
		t.Fatalf("no evidence in %s", answer)
	}
	script = regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllLiteralString(script, id[1])
	out := sh.run(t, script)
	for _, want := range []string{"key-installed", "message " + id[1], "records of ", "demo"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in what is printed:\n%s", want, out)
		}
	}
}

// shown returns what the shell blocks of a section of README hold, as one script, without
// the lines that begin like one of skip, and how many of them are ours.
func shown(t *testing.T, title string, skip ...string) (script string, commands int) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## "+title)
	section, _, _ = strings.Cut(section, "\n## ")
	var b strings.Builder
	b.WriteString("set -e\n")
	inside := false
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
			continue
		}
		if !inside || hasPrefixOf(line, skip) {
			continue
		}
		if strings.HasPrefix(line, "pellucid ") {
			commands++
		}
		b.WriteString(line)
	}
	return b.String(), commands
}

func hasPrefixOf(line string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return false
}

// A shell has this program in its path, and a state directory of its own.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "pellucid")); err != nil {
		t.Fatal(err)
	}
	return &shell{dir, append(os.Environ(), roleVariable+"=pellucid", "PELLUCID_DB=", "PELLUCID_STATE="+filepath.Join(dir, "state"),
		"PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))}
}

func (s *shell) run(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
