// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"
)

// TestCutAt: where a text was cut is a place of the input, also where its normal form is longer.
func TestCutAt(t *testing.T) {
	for _, c := range []struct {
		profile Profile
		text    string
		at      int
		cut     bool
	}{
		{Faithful, strings.Repeat("a", 20), 0, false},
		{Faithful, strings.Repeat("a", 21), 17, true},
		{Faithful, strings.Repeat("\u00e9", 21), 34, true},
		{Faithful, "\u200b" + strings.Repeat("a", 21), 19, true},
		{MCP, strings.Repeat("a", 21), 17, true},
		{MCP, strings.Repeat("\ufdfa", 4), 0, true},
		{MCP, "a\ufdfa", 0, false},
		{MCP, "a \ufdfa\ufdfa", 2, true}, // a part of the first is left, and the whole of it does not count
	} {
		s, err := Compile(Policy{Profile: c.profile, MaxChars: 20})
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		s.Scrub(c.text, &r)
		if at, cut := r.CutAt(); at != c.at || cut != c.cut {
			t.Errorf("%v, %+q: cut %v at %d, want %v at %d: %+q", c.profile, c.text, cut, at, c.cut, c.at, r.Clean.String())
		}
	}
}
