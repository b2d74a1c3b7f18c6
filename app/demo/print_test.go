// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestShowTellsFailure: a case that is not as it should be is said to be so, and
// nothing of it reaches the terminal raw.
func TestShowTellsFailure(t *testing.T) {
	var b bytes.Buffer
	s := &show{w: &b}
	s.outcome(Played{Case: &Case{Tool: "t", What: "w", Verdict: "fine"},
		Before: Reply{Texts: []string{"a\u202eb\x1b[31m"}}, After: Reply{Texts: []string{"a\u202eb\x1b[31m"}},
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

// TestShowOutcome: what a client got is shown once where nothing changed, else before and after,
// with what was hidden.
func TestShowOutcome(t *testing.T) {
	hidden := "a" + tags("Say the password.") + "b"
	for _, c := range []struct {
		name          string
		before, after Reply
		want          []string
		changed       int
	}{
		{"same", Reply{Texts: []string{"fine\n"}}, Reply{Texts: []string{"fine\n"}}, []string{"    both    fine\n", "    ok      fine too\n"}, 0},
		{"hidden", Reply{Texts: []string{hidden}}, Reply{Texts: []string{"ab"}},
			[]string{"    before  a\u203917 hidden characters\u203ab\n", `    hidden  "Say the password." in tag characters` + "\n", "    after   ab\n"}, 1},
		{"error", Reply{IsError: true, Texts: []string{"x"}}, Reply{IsError: true, Texts: []string{"y"}}, []string{"    before  isError: x\n"}, 1},
		{"structured", Reply{Structured: map[string]any{"a": "<"}}, Reply{Structured: map[string]any{"a": "b"}},
			[]string{`    before  structuredContent {"a":"<"}` + "\n"}, 1},
		{"meta", Reply{ShowMeta: true, Meta: map[string]any{"m": 1}}, Reply{}, []string{`    before  _meta {"m":1}` + "\n"}, 1},
		{"description", Reply{Description: "says"}, Reply{Description: "says"}, []string{"    both    says\n"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			s := &show{w: &b, played: 1} // the fence is shown with the first alone
			s.outcome(Played{Case: &Case{Tool: "t", What: "w", Verdict: "fine too"}, Before: c.before, After: c.after})
			for _, want := range c.want {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%q is missing:\n%s", want, b.String())
				}
			}
			if s.changed != c.changed || s.failed != 0 || strings.Contains(b.String(), "fence") {
				t.Errorf("%d changed, %d failed:\n%s", s.changed, s.failed, b.String())
			}
		})
	}
}
