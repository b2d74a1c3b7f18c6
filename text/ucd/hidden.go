// SPDX-License-Identifier: Apache-2.0

package ucd

// A HiddenClass says why a character is removed (or turned into a space or a
// line feed): a reader does not see it, but a model reads it.
type HiddenClass uint8

const (
	NotHidden         HiddenClass = iota // a reader sees the character
	Bidi                                 // reorders what a person sees
	ZeroWidth                            // spaces, joiners and the byte order mark of no width
	InvisibleOperator                    // invisible mathematics, deprecated format characters
	VariationSelector                    // 260 invisible values: a byte channel
	Tag                                  // ASCII in disguise
	Filler                               // letters without a glyph, soft hyphen, grapheme joiner
	Annotation                           // interlinear annotation and its unassigned neighbours
	Format                               // shorthand, music and hieroglyph layout
	Control                              // C0 but TAB and LF, DEL, C1
	Separator                            // line, paragraph and Ogham space: shown as blank or not at all
	Noncharacter                         // never assigned to a character
	numHiddenClasses  = iota
)

var hiddenNames = [numHiddenClasses]string{
	"none", "bidi", "zero-width", "invisible-operator", "variation-selector", "tag",
	"filler", "annotation", "format", "control", "separator", "noncharacter",
}

// String returns the name of the class in lower case, "none" for NotHidden.
func (c HiddenClass) String() string {
	if int(c) < len(hiddenNames) {
		return hiddenNames[c]
	}
	return "invalid"
}

type hiddenRange struct {
	lo, hi uint32
	class  HiddenClass
}

// hiddenRanges is THE list of hidden characters, sorted and disjoint. The
// generator reads it from this file and folds it into Prop, after checking that
// it covers every format, control, default-ignorable and noncharacter code point
// of the Unicode version but the visible prepended marks (U+0600 and the like),
// TAB and LF.
// The two last code points of every plane are noncharacters by rule, not here.
var hiddenRanges = [...]hiddenRange{
	{0x0000, 0x0008, Control},
	{0x000B, 0x001F, Control},
	{0x007F, 0x009F, Control},
	{0x00AD, 0x00AD, Filler},
	{0x034F, 0x034F, Filler},
	{0x061C, 0x061C, Bidi},
	{0x115F, 0x1160, Filler},
	{0x1680, 0x1680, Separator},
	{0x17B4, 0x17B5, Filler},
	{0x180B, 0x180F, VariationSelector},
	{0x200B, 0x200D, ZeroWidth},
	{0x200E, 0x200F, Bidi},
	{0x2028, 0x2029, Separator},
	{0x202A, 0x202E, Bidi},
	{0x2060, 0x2060, ZeroWidth},
	{0x2061, 0x2065, InvisibleOperator},
	{0x2066, 0x2069, Bidi},
	{0x206A, 0x206F, InvisibleOperator},
	{0x3164, 0x3164, Filler},
	{0xFDD0, 0xFDEF, Noncharacter},
	{0xFE00, 0xFE0F, VariationSelector},
	{0xFEFF, 0xFEFF, ZeroWidth},
	{0xFFA0, 0xFFA0, Filler},
	{0xFFF0, 0xFFFB, Annotation},
	{0x13430, 0x1343F, Format},
	{0x1BCA0, 0x1BCA3, Format},
	{0x1D173, 0x1D17A, Format},
	{0xE0000, 0xE00FF, Tag},
	{0xE0100, 0xE01EF, VariationSelector},
	{0xE01F0, 0xE0FFF, Tag},
}

// ClassOf returns the class of a hidden character, NotHidden for any other.
// It is not NotHidden exactly where Of(r)&Hidden is set.
func ClassOf(r rune) HiddenClass {
	u := uint32(r)
	if u&0xFFFE == 0xFFFE && u <= MaxRune {
		return Noncharacter
	}
	lo, hi := 0, len(hiddenRanges)
	for lo < hi {
		if m := int(uint(lo+hi) >> 1); hiddenRanges[m].hi < u {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(hiddenRanges) && hiddenRanges[lo].lo <= u {
		return hiddenRanges[lo].class
	}
	return NotHidden
}

// Substitute returns the byte that stands for a hidden character which parts
// words or lines: LF for CR, VT, FF, NEL and the line and paragraph separators,
// a space for the Ogham space. For any other r it returns 0, which means: remove
// it, if it is hidden. That CR LF is one line break is the caller's to know.
func Substitute(r rune) byte {
	switch r {
	case '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return '\n'
	case 0x1680:
		return ' '
	}
	return 0
}

// InRFCSet reports whether the Veritas grounding RFC section 4.4 names r: 156
// code points. The canonical hash of its section 7 removes exactly these.
func InRFCSet(r rune) bool {
	switch {
	case r < 0x200B:
		return false
	case r <= 0x2063:
		return r <= 0x200D || 0x202A <= r && r <= 0x202F || r == 0x2060 || r >= 0x2062
	}
	return 0xFE00 <= r && r <= 0xFE0F || 0xE0000 <= r && r <= 0xE007F
}

// Suspicious reports whether r is one of the 151 code points of the server
// verifier's SUSPICIOUS_UNICODE, for which a server's description has no use.
func Suspicious(r rune) bool {
	switch {
	case r < 0x200B:
		return false
	case r <= 0x2069:
		return r <= 0x200F || 0x202A <= r && r <= 0x202E || 0x2060 <= r && r <= 0x2064 || r >= 0x2066
	}
	return r == 0xFEFF || 0xFFF9 <= r && r <= 0xFFFB || 0xE0000 <= r && r <= 0xE007F
}
