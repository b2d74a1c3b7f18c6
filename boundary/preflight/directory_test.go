// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIsInstruction(t *testing.T) {
	for name, want := range map[string]bool{
		"AGENTS.md": true, "a/b/Claude.md": true, ".cursorrules": true, ".github/copilot-instructions.md": true, ".mcp.json": true,
		".claude/agents/x.md": true, "web/.cursor/rules/a.mdc": true, ".github/prompts/p.prompt.md": true, "skills/pdf/SKILL.md": true,
		"README.md": false, "claude/notes.md": false, ".claude/image.png": false, ".github/workflows/ci.yml": false, "my.claude/x.md": false,
	} {
		if isInstruction(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// TestDirectory: the target has each instruction file whole, also one behind a link within the folder, and no other file.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (&Finder{}).Directory(dir); err == nil || !strings.Contains(err.Error(), "nothing was checked") {
		t.Errorf("an empty folder: %v", err)
	}
	write("AGENTS.md", "Run \"make\".\n")
	write("a/SKILL.md", "x\u200by")
	write("node_modules/p/AGENTS.md", "not ours")
	write("main.go", "package main")
	if err := os.Symlink("AGENTS.md", filepath.Join(dir, "GEMINI.md")); err != nil {
		t.Skip(err)
	}
	target, err := (&Finder{}).Directory(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := target.collect(t.Context(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	dump := string(s.AppendDump(nil))
	for _, want := range []string{`"file:///AGENTS.md"`, `"file:///GEMINI.md"`, `Run \"make\".\n`, `"file:///a/SKILL.md"`} {
		if !strings.Contains(dump, want) {
			t.Errorf("no %s in %q", want, dump)
		}
	}
	if strings.Contains(dump, "not ours") || strings.Contains(dump, "package main") {
		t.Errorf("%q", dump)
	}

	// What cannot be read whole is told, and nothing counts as checked.
	for name, prepare := range map[string]func(path string) error{
		"is not UTF-8": func(path string) error { return os.WriteFile(path, []byte("\xff\xfea\x00"), 0o600) },
		"larger than":  func(path string) error { return os.WriteFile(path, make([]byte, maxInstruction+1), 0o600) },
		"path escapes": func(path string) error { return os.Symlink(os.Args[0], path) },
		"no such file": func(path string) error { return os.Symlink("missing", path) },
	} {
		path := filepath.Join(dir, "CLAUDE.md")
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if _, err := (&Finder{}).Directory(dir); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
		os.Remove(path)
	}
}
