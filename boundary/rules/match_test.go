// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	table := newTable(map[string]string{
		"*": "all", "read_*": "read", "read_file": "name", "*_file": "file", "a*": "a", "*a": "ends", "": "empty",
	})
	for name, want := range map[string]string{
		"x": "all", "read_x": "read", "read_file": "name", "write_file": "file", "read__file": "read",
		"aa": "a", "ba": "ends", "a": "a", "": "empty",
	} {
		if got, ok := table.find(name); got != want || !ok {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if _, ok := (&table).find("x"); !ok {
		t.Error("nothing for x")
	}
	var none table0
	if _, ok := none.find("x"); ok {
		t.Error("an empty table finds something")
	}
}

type table0 = table[int]

// TestMatch holds match to what a regular expression says.
func TestMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab]{0,10}`).Draw(t, "name")
		re := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", ".*") + "$")
		if got, want := match(pattern, name), re.MatchString(name); got != want {
			t.Fatalf("match(%q, %q) = %v", pattern, name, got)
		}
	})
}

// TestMatchTime: a name is a stranger's, and a pattern must not make it dear.
func TestMatchTime(t *testing.T) {
	pattern, name := strings.Repeat("a*", 128)+"b", strings.Repeat("a", 1<<20)
	start := time.Now()
	if match(pattern, name) {
		t.Error("matches")
	}
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
}

// TestRuleAllocatesNothing: it is asked for every message.
func TestRuleAllocatesNothing(t *testing.T) {
	s := parse(t, "version: 1\nservers: {a: {command: [x], tools: {\"read_*\": {allow: false}, b: {}}}}").Server("a")
	if n := testing.AllocsPerRun(100, func() { s.Rule("read_x"); s.Rule("b"); s.Rule("other") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
