// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const (
	cgj  = 0x034F
	shy  = 0x00AD
	zwsp = 0x200B
	lri  = 0x2066
	rli  = 0x2067
	fsi  = 0x2068
	pdi  = 0x2069
	mvs  = 0x180E
	vs15 = 0xFE0E
	vs16 = 0xFE0F
	hcf  = 0x115F
	hjf  = 0x1160
	hf   = 0x3164
)

// A use is what a hidden character does for a reader.
type use uint8

const (
	useless       use = iota
	lineEnd           // the CR of CR LF
	shaping           // ZWNJ between letters that would join (RFC 5892, A.1)
	conjoining        // a joiner behind a virama
	joining           // another joiner of a script that is written with them
	directing         // a direction mark near right-to-left text
	isolating         // one of a pair that isolates text near right-to-left text
	spacing           // a word boundary in a script without spaces
	hyphenating       // where a word may be broken
	sorting           // a grapheme joiner
	varying           // the variant of a Han character, or one that the standard lists
	mongolian         // the variant of a Mongolian letter
	styling           // a symbol as text or as an emoji
	pictographing     // a joiner between emoji that no list joins yet
	filling           // the place of a jamo that a syllable lacks
	laying            // the layout of hieroglyphs, shorthand and music
	modifying         // a blank sign of a script, beside its script
	foreign           // a mark of one script on a letter of another
	numUses
)

func (u use) when(is bool) use {
	if is {
		return u
	}
	return useless
}

// allowed is how many characters of a use a text may hold: always, and one more for each
// so many visible characters. Honest text stays far below it. What is without a limit
// changes what a person sees. spec: scrub/3.6
var allowed = [numUses]struct{ always, each int }{
	conjoining:  {32, 8},
	joining:     {32, 16},
	directing:   {32, 32},
	isolating:   {64, 16}, // two a pair
	spacing:     {32, 2},
	hyphenating: {32, 32},
	sorting:     {32, 32},
	varying:     {96, 32},
	mongolian:   {32, 8},

	styling:       {8, 8},
	pictographing: {32, 2},
	filling:       {32, 8},
	laying:        {32, 2},
	modifying:     {64, 2},
	foreign:       {8, 16},
}

// A beside is a condition on a character beside a hidden one.
type beside func(r rune, p ucd.Prop) bool

func visible(_ rune, p ucd.Prop) bool { return p&ucd.Hidden == 0 }

func bareLetter(r rune, p ucd.Prop) bool { return word(r, p) && p&ucd.Mark == 0 }

// word reports whether r is a letter or a mark.
func word(r rune, p ucd.Prop) bool {
	left, right := ucd.Direction(r)
	return p&ucd.Hidden == 0 && (left || right || p&ucd.Mark != 0)
}

// between reports whether two characters stand on each side of s[at:end], of which the
// near ones fit near and the far ones fit far. So no other hidden character is within
// two characters: a hidden character after every letter is a code.
func between(s string, at, end int, near, far beside) bool {
	for _, fits := range [...]beside{near, far} {
		if at == 0 || end == len(s) {
			return false
		}
		r, w := utf8.DecodeLastRuneInString(s[:at])
		if !fits(r, ucd.Of(r)) {
			return false
		}
		at -= w
		if r, w, _ = ucd.Decode(s[end:]); !fits(r, ucd.Of(r)) {
			return false
		}
		end += w
	}
	return true
}

// longestWord is how far the beginning of a word is looked for, in characters.
const longestWord = 80

// inProse reports whether the word with which s ends is one of prose: markup, paths and
// identifiers hold no soft hyphen.
func inProse(s string) bool {
	for range longestWord {
		r, w := utf8.DecodeLastRuneInString(s)
		if w == 0 {
			return true
		}
		switch p := ucd.Of(r); {
		case r == shy || word(r, p):
		case p&ucd.Hidden != 0:
			return false // what stands before it is not known until it is gone
		default:
			return strings.IndexByte("<[{&|/\\_@#$%=", s[len(s)-1]) < 0
		}
		s = s[:len(s)-w]
	}
	return false
}

// maxPoints is how many points a Hebrew letter carries, with a margin.
const maxPoints = 4

// partsPoints reports whether a grapheme joiner stands alone among the points of a Hebrew
// letter. It keeps two vowels, or a vowel and a meteg, in the order in which they are read.
func partsPoints(s string, at, end int) bool {
	before, after := 0, 0
	for ; at > 0 && before <= maxPoints; before++ {
		r, w := utf8.DecodeLastRuneInString(s[:at])
		if ucd.ScriptOf(r) != ucd.ScriptHebrew {
			return false
		}
		if at -= w; ucd.Of(r)&ucd.Mark == 0 {
			break
		}
	}
	for ; end < len(s) && after <= maxPoints; after++ {
		r, w, _ := ucd.Decode(s[end:])
		if ucd.Of(r)&ucd.Mark == 0 {
			if r == cgj {
				return false
			}
			break
		}
		if ucd.ScriptOf(r) != ucd.ScriptHebrew {
			return false
		}
		end += w
	}
	return 0 < before && before <= maxPoints && 0 < after && after <= maxPoints
}

// spaceless are scripts whose words are not parted by spaces. A person who types them, or
// a program that breaks their lines, puts U+200B between words.
var spaceless = ucd.SetOf(
	ucd.ScriptThai, ucd.ScriptLao, ucd.ScriptKhmer, ucd.ScriptMyanmar, ucd.ScriptTibetan,
	ucd.ScriptJavanese, ucd.ScriptBalinese, ucd.ScriptTaiLe, ucd.ScriptNewTaiLue, ucd.ScriptTaiTham, ucd.ScriptTaiViet,
)

// partsWords reports whether U+200B stands alone beside such a script.
func partsWords(s string, at, end int) bool {
	if at == 0 || end == len(s) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(s[:at])
	after, _, _ := ucd.Decode(s[end:])
	if before < 0x300 && after < 0x300 {
		return false
	}
	return visible(0, ucd.Of(before)) && visible(0, ucd.Of(after)) && before != '\n' && after != '\n' &&
		(ucd.Extensions(before).And(spaceless).Len() > 0 || ucd.Extensions(after).And(spaceless).Len() > 0)
}

// Variation selectors that a registered sequence uses. The standardised sequences of Han
// characters use the first three selectors, and the Ideographic Variation Database gives
// no character more than 32 variants. So no selector is left with which the usual code
// writes a letter: it adds 0xE00F0 to a byte.
const (
	firstStandard, lastStandard       = 0xFE00, 0xFE02
	firstIdeographic, lastIdeographic = 0xE0100, 0xE011F
)

// varies says whether the variation selector r stands alone behind what it varies.
func varies(s string, at, end int, r rune) use {
	if at == 0 {
		return useless
	}
	base, _ := utf8.DecodeLastRuneInString(s[:at])
	next, _, _ := ucd.Decode(s[end:])
	if ucd.Of(base)&(ucd.Hidden|ucd.Mark) != 0 || end < len(s) && ucd.Of(next)&ucd.Hidden != 0 && classOf(next) == VariationSelector {
		return useless
	}
	switch {
	case ucd.StandardVariant(base, r):
		if r == vs15 {
			return styling
		}
		return varying
	case r == vs15 || r == vs16:
		// An emoji has a selector where a list gives it one. People's keyboards put one behind other symbols.
		return styling.when((ucd.Symbol(base) || ucd.Pictographic(base)) && ucd.Of(base)&ucd.EmojiPart == 0)
	case firstStandard <= r && r <= lastStandard, firstIdeographic <= r && r <= lastIdeographic:
		script := ucd.ScriptOf(base)
		return varying.when(script == ucd.ScriptHan || script == ucd.ScriptPhagsPa && r == firstStandard)
	case 0x180B <= r && r <= 0x180F:
		return mongolian.when(ucd.ScriptOf(base) == ucd.ScriptMongolian && (r != mvs || ucd.ScriptOf(next) == ucd.ScriptMongolian))
	}
	return useless
}

// betweenPictographs reports whether a ZWJ joins two pictographs. The newest emoji are not in
// the list of sequences, but they are built like that.
func betweenPictographs(s string, at, end int) bool {
	r, w := utf8.DecodeLastRuneInString(s[:at])
	if r == vs16 || 0x1F3FB <= r && r <= 0x1F3FF { // a skin tone
		r, _ = utf8.DecodeLastRuneInString(s[:at-w])
	}
	return ucd.Pictographic(r) && ucd.Pictographic(runeAt(s, end))
}

// fills reports whether the jamo filler r stands in the place of the leading consonant or the
// vowel of a syllable that lacks it.
func fills(s string, at, end int, r rune) bool {
	last, _ := utf8.DecodeLastRuneInString(s[:at])
	next, w, _ := ucd.Decode(s[end:])
	if r == hcf {
		return vowelJamo(next) || next == hjf && trailingJamo(runeAt(s, end+w))
	}
	return leadingJamo(last) || last == hcf && trailingJamo(next)
}

// standsForBlank reports whether a Hangul filler stands alone in a text that has Hangul: a name
// of a player that looks empty.
func (f *faithful) standsForBlank(s string, at, end int) bool {
	last, _ := utf8.DecodeLastRuneInString(s[:at])
	if at > 0 && ucd.Of(last)&ucd.Hidden != 0 || end < len(s) && ucd.Of(runeAt(s, end))&ucd.Hidden != 0 {
		return false
	}
	if !f.sought {
		f.sought, f.hangul = true, strings.ContainsFunc(s, func(r rune) bool {
			return ucd.ScriptOf(r) == ucd.ScriptHangul && ucd.Of(r)&ucd.Hidden == 0
		})
	}
	return f.hangul
}

func leadingJamo(r rune) bool  { return 0x1100 <= r && r < hcf || 0xA960 <= r && r <= 0xA97C }
func vowelJamo(r rune) bool    { return hjf < r && r <= 0x11A7 || 0xD7B0 <= r && r <= 0xD7C6 }
func trailingJamo(r rune) bool { return 0x11A8 <= r && r <= 0x11FF || 0xD7CB <= r && r <= 0xD7FB }

// maxLaid is how many format characters stand between two hieroglyphs: where one group ends, a
// joiner, where the next begins.
const maxLaid = 3

// laysOut reports whether the format character r stands beside a sign of its script, or of music.
func laysOut(s string, at, end int, r rune) bool {
	start, stop, ok := hiddenRun(s, at, end)
	if !ok || stop-start > maxLaid*(end-at) {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(s[:start])
	return layOut(r, last) || layOut(r, runeAt(s, stop))
}

func layOut(r, sign rune) bool {
	if r >= 0x1D173 {
		return musical(sign)
	}
	return ucd.Of(sign)&ucd.Hidden == 0 && ucd.ScriptOf(sign) == scriptOfFormat(r)
}

// scriptOfFormat: the controls of shorthand are of no script in the data.
func scriptOfFormat(r rune) ucd.Script {
	if r >= 0x1BCA0 {
		return ucd.ScriptDuployan
	}
	return ucd.ScriptEgyptianHieroglyphs
}

// maxNested is how deep isolates are kept within one another.
const maxNested = 2

// isolated reports whether the isolate at s[at] is one of a pair that is kept.
func (f *faithful) isolated(s string, at int) bool {
	if f.isolates == nil {
		f.isolates = pairs(s)
	}
	_, is := slices.BinarySearch(f.isolates, at)
	return is
}

// An isolate was opened and waits for what closes it.
type isolate struct {
	at      int
	opener  rune
	first   rune // the opener that the first strong character asks for: lri or rli
	visible bool // there is something between the two
	right   bool // of right-to-left text
}

// pairs returns where the isolates stand that are kept, sorted and never nil: balanced on
// one line, around visible text, right-to-left or within reach of right-to-left text, and
// not deeply nested. U+2066 and U+2067 must say what the text within says: otherwise they
// only show it in another order.
func pairs(s string) []int {
	kept := []int{}
	var open []isolate
	var near [][2]int // pairs that right-to-left text may follow
	last := -reach - 1
	for i := 0; i < len(s); {
		r, w, _ := ucd.Decode(s[i:])
		switch {
		case r == '\n' || r == '\r' || ucd.Of(r)&ucd.Hidden != 0 && ucd.Substitute(r) == '\n':
			open = open[:0]
		case r == lri || r == rli || r == fsi:
			open = append(open, isolate{at: i, opener: r})
		case r == pdi && len(open) > 0:
			x := open[len(open)-1]
			open = open[:len(open)-1]
			if len(open) > 0 {
				open[len(open)-1].take(x)
			}
			switch {
			case len(open) >= maxNested || !x.visible || x.first != 0 && x.opener != fsi && x.opener != x.first:
			case x.right || x.at-last <= reach:
				kept = append(kept, x.at, i)
			default:
				near = append(near, [2]int{x.at, i})
			}
		case ucd.Of(r)&ucd.Hidden == 0:
			_, right := ucd.Direction(r)
			if right {
				kept, near, last = follow(kept, near, i), near[:0], i
			}
			if len(open) > 0 {
				open[len(open)-1].see(r)
			}
		}
		i += w
	}
	slices.Sort(kept)
	return kept
}

// follow keeps the pairs within reach of the right-to-left character at i.
func follow(kept []int, near [][2]int, i int) []int {
	for _, x := range near {
		if i-x[1] <= reach {
			kept = append(kept, x[0], x[1])
		}
	}
	return kept
}

// see takes a visible character.
func (x *isolate) see(r rune) {
	left, right := ucd.Direction(r)
	x.visible = x.visible || r > ' '
	x.right = x.right || right
	if x.first == 0 && right {
		x.first = rli
	} else if x.first == 0 && left {
		x.first = lri
	}
}

// take takes what an isolate within x held. What is isolated does not count for the first
// strong character.
func (x *isolate) take(inner isolate) {
	x.visible = x.visible || inner.visible
	x.right = x.right || inner.right
}
