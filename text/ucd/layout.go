// SPDX-License-Identifier: Apache-2.0

package ucd

import (
	"slices"
	"unicode/utf8"
)

// The layout table: strong direction in bits 0 and 1, joining type in the next three.
const (
	dirLeft  = 1
	dirRight = 2
	dirMask  = 3

	joinShift = 2
	joinMask  = 7

	isVirama       = 1 << 5
	isPictographic = 1 << 6
	isSymbol       = 1 << 7
)

// Joining_Type, in the order of the generator.
const (
	joinNone = iota
	joinCausing
	joinDual
	joinLeft
	joinRight
	joinTransparent
)

func joiningType(r rune) uint8 { return lookupLayout(r) >> joinShift & joinMask }

// Virama reports whether r has the combining class of a virama (9), in NewestVersion.
func Virama(r rune) bool { return lookupLayout(r)&isVirama != 0 }

// Pictographic reports whether r is Extended_Pictographic: an emoji, or reserved for one.
func Pictographic(r rune) bool { return lookupLayout(r)&isPictographic != 0 }

// Symbol reports whether r is not ASCII and of the general categories So, Sm or No.
func Symbol(r rune) bool { return lookupLayout(r)&isSymbol != 0 }

// Direction reports whether r is a strong character of left-to-right (Bidi_Class
// L) or of right-to-left (R, AL) text.
func Direction(r rune) (left, right bool) {
	d := lookupLayout(r) & dirMask
	return d == dirLeft, d == dirRight
}

const (
	zwnj = 0x200C
	zwj  = 0x200D
)

// JoinerAllowed reports whether RFC 5892, appendices A.1 and A.2, lets r (U+200C
// or U+200D) stand between before and after: after a virama, and for U+200C also
// between letters that would join. It is false for any other r. It looks past
// transparent characters, which do not include U+200C and U+200D: over a whole
// text it looks at each at most twice.
func JoinerAllowed(before string, r rune, after string) bool {
	if r != zwnj && r != zwj {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(before)
	if Virama(last) {
		return true
	}
	return r == zwnj && joinsOn(before) && joinsBack(after)
}

// joinsOn reports whether s ends with a letter that joins to what follows.
func joinsOn(s string) bool {
	for len(s) > 0 {
		r, w := utf8.DecodeLastRuneInString(s)
		switch joiningType(r) {
		case joinLeft, joinDual:
			return true
		case joinTransparent:
			s = s[:len(s)-w]
		default:
			return false
		}
	}
	return false
}

// joinsBack reports whether s begins with a letter that joins to what precedes.
func joinsBack(s string) bool {
	for len(s) > 0 {
		r, w, _ := Decode(s)
		switch joiningType(r) {
		case joinRight, joinDual:
			return true
		case joinTransparent:
			s = s[w:]
		default:
			return false
		}
	}
	return false
}

// EmojiSequence returns the length in bytes of the longest emoji sequence at the
// start of s, 0 if not found. It knows the sequences of emoji-test.txt, in
// every qualification, which include keycaps (that begin with an ASCII character)
// and the three flags made of tags; and a character that is not ASCII with the
// U+FE0F that emoji-variation-sequences.txt gives it.
func EmojiSequence(s string) int {
	state, longest := uint32(emojiStart), 0
	for i := 0; i < len(s); {
		r, w, ok := Decode(s[i:])
		if !ok {
			break
		}
		if state, ok = emojiStep(state, uint32(r)); !ok {
			break
		}
		i += w
		if emojiStates[state]&1 != 0 {
			longest = i
		}
	}
	return longest
}

// emojiStep returns the state that r leads to.
func emojiStep(state, r uint32) (uint32, bool) {
	lo, hi := int(emojiStates[state]>>1), int(emojiStates[state+1]>>1)
	for end := hi; lo < hi; {
		m := int(uint(lo+hi) >> 1)
		switch x := emojiEdges[m] & decompRune; {
		case x == r:
			return emojiEdges[m] >> 21, m < end
		case x < r:
			lo = m + 1
		default:
			hi = m
		}
	}
	return 0, false
}

// StandardVariant reports whether StandardizedVariants.txt gives base, which is neither a Han
// nor a Mongolian character, a variant with the selector U+FE00 to U+FE0F.
func StandardVariant(base, selector rune) bool {
	if selector < 0xFE00 || selector > 0xFE0F || base < 0 || base > MaxRune {
		return false
	}
	_, is := slices.BinarySearch(standardVariants[:], uint32(base)<<4|uint32(selector-0xFE00))
	return is
}
