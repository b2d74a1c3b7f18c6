package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestREADME types what README says under "Grounding" into a shell, but for what
// keeps running, takes long or needs somebody else's adapter.
func TestREADME(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Grounding")
	section, _, _ = strings.Cut(section, "\n## ")
	var script strings.Builder
	script.WriteString("set -e\n")
	inside, commands := false, 0
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
			continue
		case !inside, strings.HasPrefix(line, "pellucid ground serve"), strings.HasPrefix(line, "pellucid conform"):
			continue
		case strings.HasPrefix(line, "pellucid "):
			commands++
		}
		script.WriteString(line)
	}
	if commands < 5 {
		t.Fatalf("%d commands found: this test has lost sight of the README", commands)
	}
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "pellucid")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), roleVariable+"=pellucid", "PELLUCID_DB=", "PELLUCID_STATE="+filepath.Join(dir, "state"),
		"PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"FALSE: 2 validators", "1 stored", "VERIFIED: 1 validator", "1 withheld"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in what is printed:\n%s", want, out)
		}
	}
}
