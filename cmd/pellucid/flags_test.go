// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// TestFlagsOfMembers: a flag that takes its help from a member of the configuration takes the
// words of that member, and has its default. evidence differs: wrap has no ledger by default, and
// a flag of guard without a value leaves the configuration in force.
func TestFlagsOfMembers(t *testing.T) {
	var c cli
	k, err := newParser(&c, &env{Stdout: io.Discard, Stderr: io.Discard, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	help, found := rules.Help(), map[string]bool{}
	err = kong.Visit(k.Model, func(n kong.Visitable, next kong.Next) error {
		f, isFlag := n.(*kong.Flag)
		if !isFlag || !strings.HasPrefix(f.Help, "@") {
			return next(nil)
		}
		path, _, _ := strings.Cut(f.Help[1:], " ")
		m, known := help[path]
		if found[path] = true; !known || strings.Contains(helpOf(f.Value), "@") {
			t.Errorf("--%s: there is no member %s", f.Name, path)
		}
		words := slices.DeleteFunc(strings.Split(f.Enum, ","), func(s string) bool { return s == "" })
		if slices.Sort(words); m.Words != nil && !slices.Equal(words, slices.Sorted(slices.Values(m.Words))) {
			t.Errorf("--%s takes %q, %s takes %q", f.Name, words, path, m.Words)
		}
		if f.Default != "" && m.Default != "" && f.Default != m.Default && path != "evidence.mode" {
			t.Errorf("--%s is %s by default, %s is %s", f.Name, f.Default, path, m.Default)
		}
		return next(nil)
	})
	if err != nil || len(found) < 12 {
		t.Errorf("%d flags were found, %v", len(found), err)
	}
}
