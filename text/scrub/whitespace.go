// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A row of white space is one that pushes what stands behind it out of sight: so many blanks on
// one line, or so many line breaks. A description is read in a small window.
type rowLimits struct{ blanks, lines int }

var (
	textRows        = rowLimits{512, 128}
	descriptionRows = rowLimits{128, 32}
)

// longRow returns the first such row of s that has text behind it; at is -1 if not found.
// It looks at the bytes of s in steps that no such row is shorter than. spec: scrub/3.13
func longRow(s string, limits rowLimits) (at, end int) {
	step := min(limits.blanks, limits.lines)
	for i := step - 1; i < len(s); i += step {
		if c := s[i]; c > ' ' && !inOddSpace[c] {
			continue
		}
		if visibleASCII(s[max(0, i-step/4)]) && visibleASCII(s[min(len(s)-1, i+step/4)]) {
			continue // a row of step bytes goes further to one side
		}
		at, end = runeStart(s, i), i
		if r, _, _ := ucd.Decode(s[at:]); !showsBlank(r) {
			continue
		}
		for at > 0 {
			r, w := utf8.DecodeLastRuneInString(s[:at])
			if !showsBlank(r) {
				break
			}
			at -= w
		}
		blanks, lines, most := 0, 0, 0
		for end = at; end < len(s); {
			r, w, _ := ucd.Decode(s[end:])
			if !showsBlank(r) {
				break
			}
			switch end += w; r {
			case '\n':
				lines, blanks = lines+1, 0
			case '\r':
			default:
				blanks++
				most = max(most, blanks)
			}
		}
		if end < len(s) && (most >= limits.blanks || lines >= limits.lines) {
			return at, end
		}
		i += (end - i) / step * step
	}
	return -1, 0
}

// blankShare returns the first row that pushes text out of a small window, where such rows are more than
// half of the text; at is -1 if they are not. It looks closely where a sample of the text is blank.
func blankShare(s string) (at, end int) {
	const stride = 61
	samples, blanks := 0, 0
	for i := stride + len(s)&31; i < len(s); i += stride + len(s)&31 {
		samples++
		if c := s[i]; c <= ' ' || inOddSpace[c] {
			blanks++
		}
	}
	at = -1
	if len(s) > 2*descriptionRows.lines && (samples < 8 || blanks*5 >= samples*2) {
		total := 0
		for from := 0; ; {
			start, stop := longRow(s[from:], descriptionRows)
			if start < 0 {
				break
			}
			if total == 0 {
				at, end = from+start, from+stop
			}
			total, from = total+stop-start, from+stop
		}
		if total*2 <= len(s) {
			at = -1
		}
	}
	return at, end
}

// showsBlank reports whether r is white space to the eye: U+2800 is a symbol without ink.
func showsBlank(r rune) bool { return whiteSpace(r) || r == 0x2800 }

// inOddSpace holds the bytes, but those of ASCII, of which white space is made in UTF-8.
var inOddSpace = func() (is [256]bool) {
	for r := rune(utf8.RuneSelf); r <= 0x3000; r++ {
		if oddSpace(r) || showsBlank(r) {
			for _, b := range []byte(string(r)) {
				is[b] = true
			}
		}
	}
	return is
}()

func visibleASCII(c byte) bool { return ' ' < c && c < utf8.RuneSelf }

// The least that a code in spaces of different widths writes: so many in rows of two kinds, or so
// many of five kinds in a text, or of four if they are one in so many characters. Typography uses four
// at most, and never puts two side by side.
const (
	oddInRows, kindsInRow  = 8, 2
	oddInText, kindsInText = 32, 5
	oddShare               = 16
)

// oddSpaces returns the first row of s, or all of s, that carries a message in its spaces; at is
// -1 if not found. It looks for U+00A0 and for what begins with the byte E2: no row is
// without one of them. spec: scrub/3.13
func oddSpaces(s string) (at, end int) {
	if !holdsWideSpace(s) {
		return -1, 0 // one kind at most
	}
	var all uint32 // the kinds in the text, one bit each
	some, mixed, first := 0, 0, 0
	wide, narrow := strings.IndexByte(s, 0xe2), strings.IndexByte(s, 0xc2)
	for i := 0; wide >= 0 || narrow >= 0; wide, narrow = next(s, 0xe2, wide, i), next(s, 0xc2, narrow, i) {
		at = wide
		if at < 0 || narrow >= 0 && narrow < at {
			at = narrow
		}
		i = at + 1
		if r, _, _ := ucd.Decode(s[at:]); !oddSpace(r) {
			continue
		}
		for strings.HasSuffix(s[:at], "\u3000") {
			at -= len("\u3000")
		}
		var kinds uint32
		row := 0
		for end = at; end < len(s); {
			r, w, _ := ucd.Decode(s[end:])
			if oddSpace(r) {
				kinds |= 1 << kindOfSpace(r)
				row++
			} else if r != ' ' && r != '\t' {
				break
			}
			end += w
		}
		if row == 0 {
			continue
		}
		i = end
		if all == 0 {
			first = at
		}
		if bits.OnesCount32(kinds) >= kindsInRow {
			if mixed += row; mixed >= oddInRows {
				return first, end
			}
		}
		all |= kinds
		some += row
	}
	most := bits.OnesCount32(all)
	if some >= oddInText && (most >= kindsInText || most == kindsInText-1 && some*oddShare > ucd.Count(s)) {
		return first, len(s)
	}
	return -1, 0
}

// holdsWideSpace reports whether s holds an odd space that is not U+00A0.
func holdsWideSpace(s string) bool {
	for i := strings.IndexByte(s, 0xe2); i >= 0 && i+2 < len(s); i = next(s, 0xe2, i, i+1) {
		switch b := s[i+2]; s[i+1] {
		case 0x80:
			if b <= 0x8a || b == 0xaf {
				return true
			}
		case 0x81:
			if b == 0x9f {
				return true
			}
		}
	}
	return strings.Contains(s, "\u3000")
}

func kindOfSpace(r rune) int {
	switch r {
	case 0xA0:
		return 11
	case 0x202F:
		return 12
	case 0x205F:
		return 13
	case 0x3000:
		return 14
	}
	return int(r - 0x2000)
}

// describedOut returns the white space of a description that hides text or carries it.
func describedOut(s string) (at, end int) {
	if at, end = longRow(s, descriptionRows); at < 0 {
		at, end = oddSpaces(s)
	}
	return at, end
}

// MayHideInSpace reports whether the wide surface profile refuses s for its white space alone.
func MayHideInSpace(s string) bool {
	at, _ := describedOut(s)
	return at >= 0
}

// noteWhiteSpace notes white space that hides text or carries it.
func (p *pass) noteWhiteSpace() {
	at, end := longRow(p.text, textRows)
	if at < 0 {
		at, end = blankShare(p.text)
	}
	if at < 0 && p.facts.nfkc { // each odd space is changed by NFKC
		at, end = oddSpaces(p.text)
	}
	if at >= 0 {
		p.r.addNote(OddWhiteSpace, at, end)
	}
}
