// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A character that has no ink outside its script never stays in other text, and 20 marks of any
// script on a Latin letter, a blank or a digit do not stay either. spec: scrub/3.6.2
func TestNoMarkBeyondItsScript(t *testing.T) {
	scrubbers := []*Scrubber{compile(t, Policy{}), compile(t, Policy{Profile: Faithful})}
	blank, bound := 0, 0
	for r := rune(0x80); r <= ucd.MaxRune; r++ {
		p := ucd.Of(r)
		belongs := p&ucd.Bound != 0 && ucd.ScriptOf(r) > ucd.ScriptInherited
		if p&ucd.Blank == 0 && !belongs {
			continue
		}
		for _, s := range scrubbers {
			for _, base := range []string{"visible text", "visible text ", "visible text\n", "visible text 7", "visible text\u00a0", ""} {
				in := base + strings.Repeat(string(r), 20) + " more words here"
				out, _ := clean(t, s, in)
				if n := strings.Count(out, string(r)); n > 0 {
					t.Errorf("%s: %U stays %d times behind %+q", s.Policy().Profile, r, n, base)
				}
			}
			if p&ucd.Blank != 0 {
				blank++
				if out, _ := clean(t, s, "A"+string(r)+"b"); out != "A b" {
					t.Errorf("%s: %U between Latin letters becomes %+q", s.Policy().Profile, r, out)
				}
			} else {
				bound++
			}
		}
	}
	if blank < 100 || bound < 3000 {
		t.Errorf("%d blank signs and %d other marks were tried", blank, bound)
	}
}

// No mark stands in a row of more than maxRow, of whatever class it is.
func TestRowsOfMarks(t *testing.T) {
	scrubbers := []*Scrubber{compile(t, Policy{}), compile(t, Policy{Profile: Faithful})}
	for r := rune(0x80); r <= ucd.MaxRune; r++ {
		if ucd.Of(r)&(ucd.Mark|ucd.Hidden) != ucd.Mark {
			continue
		}
		for _, s := range scrubbers {
			in := "\u25cc" + strings.Repeat(string(r), 100) + "x"
			if out, res := clean(t, s, in); strings.Count(out, string(r)) > maxRow || !Replay(in, out, res.Edits) {
				t.Errorf("%s: %d of %U stay", s.Policy().Profile, strings.Count(out, string(r)), r)
			}
		}
	}
}

// What composedMark does not look for, NFKC does not bring: each Bound mark of a decomposition
// stands behind what it belongs to.
func TestComposedMark(t *testing.T) {
	for r := rune(0); r <= ucd.MaxRune; r++ {
		if ucd.Of(r)&(ucd.Bound|ucd.Blank) != 0 {
			continue
		}
		base := rune(0)
		for _, c := range ucd.NFKC.String(string(r)) {
			switch {
			case ucd.Of(c)&ucd.Mark == 0:
				base = c
			case ucd.Of(c)&ucd.Bound != 0 && ucd.ScriptOf(c) > ucd.ScriptInherited && !together(c, base) && !composedMark(string(c)):
				t.Errorf("%U brings %U", r, c)
			}
			if ucd.Of(c)&ucd.Blank != 0 {
				t.Errorf("%U brings %U", r, c)
			}
		}
	}
}
