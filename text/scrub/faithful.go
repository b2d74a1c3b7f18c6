// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const (
	zwnj = 0x200C
	zwj  = 0x200D
	lrm  = 0x200E
	rlm  = 0x200F
	alm  = 0x061C
)

// faithful is what dropHiddenFaithfully knows of the text.
type faithful struct {
	rtl      rtlScan
	isolates []int // where the isolates stand that are kept; set by the first that is asked for
	bases    baseScan
	kept     [numUses]int

	sought, hangul bool // the text was searched for Hangul, and has some
}

// dropHiddenFaithfully removes hidden characters, except those that a language, an emoji
// or a file needs. If a text, with those of its item before it, holds more of a use than
// the allowance, then all of that use go from it: they are a code. spec: scrub/3.6
func dropHiddenFaithfully(p *pass) {
	var f faithful
	p.parted = false
	remove := p.remove
	f.sweep(p.text, [numUses]bool{}, remove)
	if over, is := p.over(&f.kept); is {
		p.begin()
		f = faithful{}
		f.sweep(p.text, over, remove)
	}
	p.kept = f.kept
	// What stays may have had its use across something that has now become a blank.
	p.again = p.again || p.parted && f.kept != [numUses]int{}
}

// sweep goes through s once. What it keeps, it counts; of the uses in over it keeps nothing.
// It calls remove for each character that it does not keep, and goes on where that says.
func (f *faithful) sweep(s string, over [numUses]bool, remove func(x span, r rune) (end int)) {
	emoji := 0 // s[:emoji] has been searched for emoji sequences
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Hidden|ucd.EmojiPart)
		if at == len(s) {
			break
		}
		i = at + w
		if prop&ucd.EmojiPart != 0 && at >= emoji {
			start := at
			// A keycap begins with an ASCII character, which Scan passes over.
			if at > emoji && keycapBase(s[at-1]) {
				start = at - 1
			}
			n := ucd.EmojiSequence(s[start:])
			if start+n <= at { // the digit before it is a digit
				start, n = at, ucd.EmojiSequence(s[at:])
			}
			if n > 0 {
				i, emoji = start+n, start+n
				continue
			}
		}
		if prop&ucd.Hidden == 0 && s[at] >= 0x80 {
			continue
		}
		r, _, _ := ucd.Decode(s[at:])
		u := f.use(s, at, i, r)
		if u == useless || over[u] {
			i = remove(span{at, i}, r)
			continue
		}
		f.kept[u]++
	}
}

func keycapBase(c byte) bool { return c == '#' || c == '*' || '0' <= c && c <= '9' }

// use says what the hidden character r = s[at:end] does for a language or a file. The
// answer must not become useless when other hidden characters go: it depends on visible
// characters, and on at most two characters of a hidden run.
func (f *faithful) use(s string, at, end int, r rune) use {
	is := useless
	switch r {
	case '\r':
		is = lineEnd.when(end < len(s) && s[end] == '\n')
	case zwnj, zwj:
		is = f.joiner(s, at, end, r)
	case lrm, rlm, alm:
		is = directing.when(shortRun(s, at, end) && f.rtl.near(s, at, end))
	case lri, rli, fsi, pdi:
		is = isolating.when(f.isolated(s, at))
	case zwsp:
		is = spacing.when(partsWords(s, at, end))
	case cgj:
		is = sorting.when(between(s, at, end, bareLetter, visible) || partsPoints(s, at, end))
	case shy:
		is = hyphenating.when(between(s, at, end, word, word) && inProse(s[:at]))
	case hcf, hjf:
		is = filling.when(fills(s, at, end, r))
	case hf:
		is = filling.when(f.standsForBlank(s, at, end))
	default:
		if classOf(r) == Format {
			return laying.when(laysOut(s, at, end, r))
		}
		is = varies(s, at, end, r)
	}
	return is
}

// shortRun: a row of direction marks, or of different ones, is a code.
func shortRun(s string, at, end int) bool {
	start, stop, ok := hiddenRun(s, at, end)
	n := end - at
	return ok && stop-start <= 2*n && s[start:start+n] == s[stop-n:stop]
}

// hiddenRun returns the run of hidden characters that holds s[at:end], all of the
// same length and kind. It is not ok if there are others in it, or too many.
func hiddenRun(s string, at, end int) (start, stop int, ok bool) {
	class := classOf(runeAt(s, at))
	start, stop = at, end
	for n := 0; start > 0; n++ {
		r, w := utf8.DecodeLastRuneInString(s[:start])
		if ucd.Of(r)&ucd.Hidden == 0 {
			break
		}
		if n > 2 || classOf(r) != class || w != end-at {
			return 0, 0, false
		}
		start -= w
	}
	for n := 0; stop < len(s); n++ {
		r, w, _ := ucd.Decode(s[stop:])
		if ucd.Of(r)&ucd.Hidden == 0 || r == '\r' {
			break
		}
		if n > 2 || classOf(r) != class || w != end-at {
			return 0, 0, false
		}
		stop += w
	}
	return start, stop, true
}

func runeAt(s string, at int) rune {
	r, _, _ := ucd.Decode(s[at:])
	return r
}

// reach is how far from a character of right-to-left text a direction mark can be
// of use, in bytes.
const reach = 64

// An rtlScan knows the strong right-to-left characters around a place that moves
// from left to right.
type rtlScan struct {
	at         int // s[:at] was looked at
	last, next int // of a right-to-left character: the last before the place, the first after
	some       bool
}

// near reports whether such a character stands within reach of s[start:end].
func (f *rtlScan) near(s string, start, end int) bool {
	if 0 < f.next && f.next < start {
		f.last, f.some = f.next, true
	}
	for f.at < len(s) && f.next < end {
		r, w, _ := ucd.Decode(s[f.at:])
		if _, right := ucd.Direction(r); right && ucd.Of(r)&ucd.Hidden == 0 {
			if f.at < start {
				f.last, f.some = f.at, true
			} else {
				f.next = f.at
			}
		}
		f.at += w
	}
	return f.some && start-f.last <= reach || f.next >= end && f.next-end <= reach
}
