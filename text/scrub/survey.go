// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// facts say which steps have something to do. They err on the side of work.
type facts struct {
	seen      ucd.Prop
	illFormed bool
	hidden    bool // a hidden character or a control
	nfkc      bool // not known to be in NFKC
	marks     bool // non-starters, or what canonically decomposes into them
	confused  bool // a confusable character, or what NFKC may make one
	opener    bool // something that is not ASCII and can open a token
	marked    bool // a mark, or a blank sign of a script
	bound     bool // a mark of one script or of the class 0, or a blank sign
	imitated  bool // a letter that imitates an ASCII one
}

// surveyed is what the survey looks for, the first of each.
const surveyed = ucd.IllFormed | ucd.Hidden | ucd.NFKCActive | ucd.NFCActive | ucd.NonStarter |
	ucd.Opener | ucd.Confusable | ucd.Mark | ucd.Blank | ucd.Bound

// survey gathers the facts about s. It stops once for each, so that what is
// common in a script costs one stop a text. If r is not nil, what is kept but
// worth a note is noted there.
func survey(s string, r *Result) facts {
	var seen ucd.Prop
	imitated := false
	mask := ucd.Prop(surveyed)
	if r != nil {
		mask |= ucd.Flagged
	}
	for i := 0; i < len(s); {
		at, p, w := ucd.Scan(s, i, mask)
		if at == len(s) {
			break
		}
		i = at + w
		if s[at] < 0x80 {
			p = ucd.Hidden // a control: ASCII stops Scan for nothing else
		}
		if r != nil {
			if p&ucd.Flagged != 0 {
				c, _, _ := ucd.Decode(s[at:])
				r.addNote(keptClass(c), at, i)
			}
			if p&ucd.Confusable != 0 {
				if seen&p == p&^ucd.Flagged && isPunctuation(s[at:i]) {
					continue // the most of French and English text that is not ASCII
				}
				c, _, _ := ucd.Decode(s[at:])
				switch {
				case imitates(c):
					imitated = true // and noteLookalike looks for all
				case isSyntaxDouble(c) && !imitated && !r.Has(Confusable):
					r.addNote(Confusable, at, i)
					fallthrough
				default:
					seen |= p
					mask &^= p &^ (ucd.Flagged | ucd.Confusable)
					continue
				}
			}
		}
		seen |= p
		mask &^= p &^ ucd.Flagged
	}
	return facts{
		seen:      seen,
		imitated:  imitated,
		illFormed: seen&ucd.IllFormed != 0,
		hidden:    seen&ucd.Hidden != 0,
		nfkc:      seen&(ucd.NFKCActive|ucd.IllFormed) != 0,
		marks:     seen&(ucd.NonStarter|ucd.NFCActive) != 0,
		confused:  seen&(ucd.Confusable|ucd.NFKCActive) != 0,
		// NFKC can compose an ASCII opener with a mark: U+226E.
		opener: seen&(ucd.Opener|ucd.NonStarter) != 0,
		marked: seen&(ucd.Mark|ucd.Blank) != 0,
		bound:  seen&(ucd.Bound|ucd.Blank) != 0,
	}
}

// isPunctuation reports whether c, a character in UTF-8, is of U+2000 to U+203F.
func isPunctuation(c string) bool { return len(c) == 3 && c[:2] == "\xe2\x80" }

// plain reports whether any profile that changes text would leave s as it is, for
// the case that matters most: printable ASCII without token syntax.
func plain(s string, limit int, t *TokenTable) bool {
	if len(s) > limit || strings.IndexByte(s, '<') >= 0 || strings.IndexByte(s, '[') >= 0 ||
		strings.IndexByte(s, '#') >= 0 || strings.IndexByte(s, '&') >= 0 || t.startsRole(s, 0) {
		return false
	}
	for _, b := range t.unseen {
		if strings.IndexByte(s, b) >= 0 {
			return false
		}
	}
	lines := false
	i := ucd.PlainASCIIBelow(s, t.plainEnd)
	for i < len(s) {
		switch s[i] {
		case '\n':
			lines = true
			if i+1 < len(s) && (t.opens[s[i+1]] || s[i+1] == ' ' || s[i+1] == '\t') && t.startsRole(s, i+1) {
				return false
			}
		case '\t':
		default:
			return false
		}
		i++
		i += ucd.PlainASCIIBelow(s[i:], t.plainEnd)
	}
	if beginsAsJSON(s) && strings.Contains(s, `\u`) {
		return false
	}
	rows := textRows
	if !lines {
		rows.lines = rows.blanks // a longer step
	} else if strings.Contains(s, armourBegin) {
		return false
	}
	if at, _ := longRow(s, rows); at >= 0 || strings.IndexByte(s, '\\') >= 0 && escapesTags(s) {
		return false
	}
	at, _ := blankShare(s)
	return at < 0
}
