// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const backspace = '\b'

// dropOverstruck takes out what backspaces take back, as a terminal shows it: of the letter of
// bold and underlined text one stays, of a progress bar what was written last. Backspaces with
// nothing behind them on their line take nothing back. spec: scrub/3.12
func dropOverstruck(p *pass) {
	s := p.text
	var cells []span // what a line shows, as far as it was read
	for from := 0; ; {
		n := strings.IndexByte(s[from:], backspace)
		if n < 0 {
			return
		}
		start, end := from+behindLastBreak(s[from:from+n]), len(s)
		if n := strings.IndexFunc(s[start:], breaksLine); n >= 0 {
			end = start + n
		}
		cells = overstrike(cells[:0], s, start, end)
		at := start
		for _, x := range append(cells, span{end, end}) {
			if at < x.at {
				p.r.ed.drop(at, x.at, Control)
			}
			at = x.end
		}
		from = end
	}
}

// behindLastBreak returns where the last line of s begins.
func behindLastBreak(s string) int {
	n := strings.LastIndexFunc(s, breaksLine)
	if n < 0 {
		return 0
	}
	_, w, _ := ucd.Decode(s[n:])
	return n + w
}

func breaksLine(r rune) bool { return r == '\n' || ucd.Substitute(r) == '\n' }

// overstrike appends to cells what the line s[at:end] shows. Hidden characters and marks
// belong to the character before them.
func overstrike(cells []span, s string, at, end int) []span {
	for at < end {
		if s[at] == backspace {
			stop := at
			for stop < end && s[stop] == backspace {
				stop++
			}
			n := stop - at
			switch {
			case !writes(s[stop:end]):
				cells = append(cells, span{at, stop})
			case n == 1 && s[stop] == '_' && len(cells) > 0 && underlined(s[cells[len(cells)-1].at:]):
				stop++ // the line stands below the letter, whichever came first
			default:
				cells = cells[:max(0, len(cells)-n)]
			}
			at = stop
			continue
		}
		r, w, _ := ucd.Decode(s[at:])
		if n := len(cells); n > 0 && ucd.Of(r)&(ucd.Hidden|ucd.Mark) != 0 && cells[n-1].end == at {
			cells[n-1].end = at + w
		} else {
			cells = append(cells, span{at, at + w})
		}
		at += w
	}
	return cells
}

// underlined reports whether s begins with a letter or a digit: what else stands before a backspace
// and "_" was typed and taken back.
func underlined(s string) bool {
	r, _, _ := ucd.Decode(s)
	return '0' <= r && r <= '9' || word(r, ucd.Of(r))
}

// writes reports whether s begins with a visible character.
func writes(s string) bool {
	r, _, _ := ucd.Decode(s)
	return s != "" && r >= ' ' && ucd.Of(r)&ucd.Hidden == 0
}
