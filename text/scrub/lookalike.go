// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// noteLookalike notes the first character that is taken for an ASCII one and that honest text
// does not hold: a letter of another script in a word with ASCII letters, or a double of what
// programs read as syntax. spec: scrub/2
func (p *pass) noteLookalike() {
	s := p.text
	at := syntaxDouble(s)
	if mixed := mixedLetter(s); mixed >= 0 && (at < 0 || mixed < at) {
		at = mixed
	}
	if at >= 0 {
		_, w, _ := ucd.Decode(s[at:])
		p.r.addNote(Confusable, at, at+w)
	}
}

// syntaxDouble returns where the first double of a bracket, a colon, a slash or the like stands
// in s, -1 if s holds no such double. What typography, mathematics, phonetics and Japanese use is no
// such double.
func syntaxDouble(s string) int {
	first := -1
	for _, lead := range [...]byte{0xe2, 0xcb, 0xea} {
		for i := strings.IndexByte(s, lead); i >= 0; i = next(s, lead, i, i+1) {
			if lead == 0xe2 && i+1 < len(s) && (s[i+1] == 0x80 || s[i+1] == 0x82 || s[i+1] == 0x94) {
				continue // quotation marks and dashes, the euro, boxes
			}
			if r, _, _ := ucd.Decode(s[i:]); isSyntaxDouble(r) && (first < 0 || i < first) {
				first = i
			}
		}
	}
	return first
}

func isSyntaxDouble(r rune) bool {
	switch {
	case 0x2768 <= r && r <= 0x2775 || 0x29F5 <= r && r <= 0x29F9,
		r == 0x2216, r == 0x27CB, r == 0x27CD, r == 0x204E, r == 0x205A,
		r == 0x02C2, r == 0x02C3, r == 0x02F8, r == 0xA778, r == 0xA789:
		_, is := ucd.ASCIIPrototype(r)
		return is
	}
	return false
}

// mixedLetter returns where the first letter stands that is taken for an ASCII one, is of
// another script than Latin, and stands in one word with an ASCII letter; -1 if not found.
func mixedLetter(s string) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	var before uint64 // of the byte before: 1 if it is no ASCII, 2 if it is an ASCII letter
	for i, done := 0, 0; i < len(s); i += 8 {
		var w uint64
		if i+8 <= len(s) {
			b := s[i : i+8]
			w = uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
				uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		} else {
			for k := i; k < len(s); k++ {
				w |= uint64(s[k]) << (8 * (k - i))
			}
		}
		wide := w & highs
		if w&(0x40*ones)&^(wide>>1) == 0 && before&2 == 0 {
			before = wide >> 63 // no ASCII letter
			continue
		}
		low := (w | 0x20*ones) &^ highs
		ascii := (low + (0x80-'a')*ones) &^ (low + (0x80-'z'-1)*ones) & highs &^ wide
		if wide&(ascii<<8|before>>1<<7)|ascii&(wide<<8|before&1<<7) != 0 && done <= i+8 {
			at, end := mixedIn(s, max(i-1, done), min(i+8, len(s)))
			if at >= 0 {
				return at
			}
			done = end
		}
		before = wide>>63 | ascii>>63<<1
	}
	return -1
}

// mixedIn looks at the words around each place in s[at:end] where an ASCII letter and another
// character meet. It returns where the letter stands, and up to where it has looked.
func mixedIn(s string, at, end int) (found, done int) {
	for i := at + 1; i < end; i++ {
		a, b := s[i-1], s[i]
		if a < 0x80 == (b < 0x80) || !letter(a) && a < 0x80 || !letter(b) && b < 0x80 {
			continue
		}
		meets := i // the character beside the ASCII letter
		if a >= 0x80 {
			meets = runeStart(s, i-1)
		}
		if c := s[meets]; c < 0xcd || c == 0xe2 && meets+1 < len(s) && s[meets+1] < 0xb0 {
			continue // Latin, or punctuation
		}
		start, stop := lettersAround(s, meets)
		for k := start; k < stop; {
			r, w, _ := ucd.Decode(s[k:])
			if ucd.Of(r)&ucd.Confusable != 0 && imitates(r) {
				return k, stop
			}
			k += w
		}
		i = max(i, stop)
	}
	return -1, max(end, at)
}

// imitates reports whether r is a letter of a script that is not written beside Latin letters.
func imitates(r rune) bool {
	if r < 0x370 || 0x2000 <= r && r < 0x2C00 {
		return false
	}
	switch ucd.ScriptOf(r) {
	case ucd.ScriptCommon, ucd.ScriptInherited, ucd.ScriptLatin, ucd.ScriptHan, ucd.ScriptHiragana, ucd.ScriptKatakana, ucd.ScriptHangul, ucd.ScriptBopomofo:
		return false
	}
	return word(r, ucd.Of(r))
}

// maxMixedWord is how far a word is looked at on either side of a place, in bytes.
const maxMixedWord = 64

// lettersAround returns the run of letters and marks around the place i.
func lettersAround(s string, i int) (start, end int) {
	for start = runeStart(s, i); start > 0 && i-start < maxMixedWord; {
		from := runeStart(s, start-1)
		if r, _, _ := ucd.Decode(s[from:]); !word(r, ucd.Of(r)) {
			break
		}
		start = from
	}
	for end = runeStart(s, i); end < len(s) && end-i < maxMixedWord; {
		r, w, _ := ucd.Decode(s[end:])
		if !word(r, ucd.Of(r)) {
			break
		}
		end += w
	}
	return start, end
}
