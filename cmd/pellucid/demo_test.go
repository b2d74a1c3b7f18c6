// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/demo"
)

func TestWrapText(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 5, []string{""}},
		{"abc", 5, []string{"abc"}},
		{"ab cd ef", 5, []string{"ab cd", "ef"}},
		{"ab cd ef", 6, []string{"ab cd", "ef"}},
		{"abcdefgh", 5, []string{"abcde", "fgh"}},
		{"ab,cdefgh", 5, []string{"ab,", "cdefg", "h"}},
		{"a\n\nb", 5, []string{"a", "", "b"}},
		{"\uff21\uff22\uff23", 4, []string{"\uff21\uff22", "\uff23"}},
		{"e\u0301e\u0301e\u0301", 3, []string{"e\u0301e\u0301e\u0301"}},
		{"ab cdef ghi", 5, []string{"ab", "cdef", "ghi"}},
	} {
		if got := wrapText(c.text, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%+q at %d: %+q, want %+q", c.text, c.width, got, c.want)
		}
	}
}

// TestShowTellsFailure: a case that is not as it should be is said to be so, and
// nothing of it reaches the terminal raw.
func TestShowTellsFailure(t *testing.T) {
	var b bytes.Buffer
	s := &show{w: &b}
	s.outcome(demo.Outcome{Case: &demo.Case{Tool: "t", What: "w", Verdict: "fine"},
		Before: demo.Reply{Texts: []string{"a\u202eb\x1b[31m"}}, After: demo.Reply{Texts: []string{"a\u202eb\x1b[31m"}},
		Err: errors.New("not so \x1b[2J")})
	s.closing("/bin/pellucid")
	out := b.String()
	if s.failed != 1 || !strings.Contains(out, "FAILED") || !strings.Contains(out, "0 as they should be, 1 not") || strings.Contains(out, "genuine") {
		t.Errorf("the failure is not told:\n%s", out)
	}
	if strings.ContainsAny(out, "\x1b\u202e") {
		t.Errorf("raw characters: %+q", out)
	}
}
