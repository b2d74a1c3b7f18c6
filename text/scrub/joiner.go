// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// joinerScripts are those that are written with joiners. RFC 5892 is for domain
// names: it forbids what Bengali and Persian prose, and Malayalam chillus of the
// older encoding, are full of.
var joinerScripts = ucd.SetOf(
	ucd.ScriptArabic, ucd.ScriptSyriac, ucd.ScriptMongolian, ucd.ScriptNko, ucd.ScriptAdlam,
	ucd.ScriptDevanagari, ucd.ScriptBengali, ucd.ScriptGurmukhi, ucd.ScriptGujarati, ucd.ScriptOriya,
	ucd.ScriptTamil, ucd.ScriptTelugu, ucd.ScriptKannada, ucd.ScriptMalayalam, ucd.ScriptSinhala,
	ucd.ScriptTibetan, ucd.ScriptMyanmar, ucd.ScriptKhmer, ucd.ScriptChakma,
)

// viramaScripts are those in which a joiner behind the virama chooses the form of the
// conjunct (Unicode 15.0, chapters 12 to 17). Other scripts have marks of the class of
// the virama too, and no use for a joiner behind them: Tifinagh, Thai, Lao, Tibetan,
// Myanmar, Khmer.
var viramaScripts = ucd.SetOf(
	ucd.ScriptDevanagari, ucd.ScriptBengali, ucd.ScriptGurmukhi, ucd.ScriptGujarati, ucd.ScriptOriya,
	ucd.ScriptTamil, ucd.ScriptTelugu, ucd.ScriptKannada, ucd.ScriptMalayalam, ucd.ScriptSinhala,
	ucd.ScriptChakma, ucd.ScriptGrantha, ucd.ScriptNewa, ucd.ScriptTirhuta, ucd.ScriptSharada,
	ucd.ScriptModi, ucd.ScriptNandinagari, ucd.ScriptKaithi, ucd.ScriptBrahmi, ucd.ScriptSaurashtra,
	ucd.ScriptBalinese, ucd.ScriptJavanese, ucd.ScriptMeeteiMayek,
)

const numberJoiner = 0x1107F // of the class of a virama in Brahmi, and none

// maxConjoined is how many marks a letter carries that a virama joins to the next, with
// the virama and a margin. Of so few none is removed later as one too many.
const maxConjoined = 3

// joiner says what the joiner r = s[at:end] does.
func (f *faithful) joiner(s string, at, end int, r rune) use {
	if r == zwj && betweenPictographs(s, at, end) {
		return pictographing
	}
	base := f.bases.before(s, at)
	if last, _ := utf8.DecodeLastRuneInString(s[:at]); ucd.Virama(last) {
		if last != numberJoiner && f.bases.marks <= maxConjoined && bareLetter(base, ucd.Of(base)) &&
			ucd.Extensions(base).And(ucd.Extensions(last)).And(viramaScripts).Len() > 0 {
			return conjoining
		}
	} else if ucd.JoinerAllowed(s[:at], r, s[end:]) {
		return shaping
	}
	return joining.when(joins(s, at, end, base))
}

// joins reports whether one or two joiners, and nothing else that is hidden, stand
// beside a letter of a script that uses them. A mark has the script of its base here: a
// virama on a Latin letter does not count as one of its script. Behind a joiner that a virama needs
// stands no other.
func joins(s string, at, end int, base rune) bool {
	start, stop, ok := hiddenRun(s, at, end)
	if !ok || stop-start > 2*len("\u200c") {
		return false
	}
	if last, _ := utf8.DecodeLastRuneInString(s[:start]); start < at && ucd.Virama(last) {
		return false
	}
	if usesJoiners(base) {
		return true
	}
	after, _, _ := ucd.Decode(s[stop:])
	return ucd.Of(after)&ucd.Mark == 0 && usesJoiners(after)
}

func usesJoiners(r rune) bool { return ucd.Extensions(r).And(joinerScripts).Len() > 0 }

// A baseScan knows what the marks before a place stand on. The place moves from left to
// right, so each character is looked at once.
type baseScan struct {
	at    int
	base  rune
	marks int // on base, before the place
}

// before returns the last character of s[:at] that is neither a mark nor hidden, 0 if
// no such character is there.
func (b *baseScan) before(s string, at int) rune {
	marks := 0
	for i := at; ; {
		if i <= b.at {
			b.marks += marks
			break
		}
		r, w := utf8.DecodeLastRuneInString(s[:i])
		p := ucd.Of(r)
		if p&(ucd.Mark|ucd.Hidden) == 0 {
			b.base, b.marks = r, marks
			break
		}
		if p&ucd.Hidden == 0 {
			marks++
		}
		i -= w
	}
	b.at = at
	return b.base
}
