// SPDX-License-Identifier: Apache-2.0

package scripttest

import (
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for command, want := range map[string]string{
		`pellucid pins list                  # all`:                  "pins|list",
		`pellucid ledger verify --key "$(cat a b)" > out`:            "ledger|verify|--key|$(cat a b)",
		`pellucid scrub 2>log`:                                       "scrub",
		`bin/pellucid wrap --name 'a b' -- sh server.sh < x | tee y`: "wrap|--name|a b|--|sh|server.sh",
	} {
		args, ours := arguments(command)
		if got := strings.Join(args, "|"); !ours || got != want {
			t.Errorf("%s: %s, want %s", command, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	const id = "4a0c5f7d2b91e3384a0c5f7d2b91e338"
	other := strings.Repeat("0", 32)
	for _, c := range []struct {
		page, printed string
		want          bool
	}{
		{"held  " + id + "  3 bytes\n", "held   " + other + "  14 bytes\n", true},
		{"held\n", "held\nreleased\n", false},
		{"held\n…\n", "held\nreleased\n", true},
		{"a " + id + " b " + id, "a " + other + " b " + id, false},
		{"2026-11-22 23:43Z", "2027-01-01 00:00Z", true},
		{"[\"a\",\n\"b\"]", `["a","b"]`, true},
		{"deadline", "deadlines", false},
	} {
		if got := matches(c.page, c.printed, map[string]string{}); got != c.want {
			t.Errorf("%q, %q: %v", c.page, c.printed, got)
		}
	}
}
