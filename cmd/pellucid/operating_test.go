// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestOPERATING parses every command of ours that OPERATING.md shows, and holds the
// paths and metrics that it names to those that there are.
func TestOPERATING(t *testing.T) {
	b, err := os.ReadFile("../../OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	inside, commands := false, 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside && strings.HasPrefix(line, "pellucid "):
			commands++
			var c cli
			k, err := newParser(&c, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			command, _, _ := strings.Cut(line, " > ") // the shell reads the rest
			if _, err := k.Parse(strings.Fields(command)[1:]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	if commands < 8 {
		t.Errorf("%d commands found: this test has lost sight of the document", commands)
	}
	for _, name := range []string{"packaging/pellucid.service", "docs/spec/plug.md", "docs/spec/protect.md", "docs/spec/config.md", "docs/cli.md", "NEWS.md"} {
		if !strings.Contains(string(b), name) {
			t.Errorf("it does not name %s", name)
		}
		if _, err := os.Stat("../../" + name); err != nil {
			t.Error(err)
		}
	}
}
