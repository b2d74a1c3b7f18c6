// SPDX-License-Identifier: Apache-2.0

package ucd

import "math/bits"

// MaxRune is the last code point.
const MaxRune = 0x10FFFF

// OpenerSet holds the ASCII characters with which a chat model's control token
// can begin.
const OpenerSet = "<[#|{"

// Prop is a set of facts about one code point.
type Prop uint16

const (
	// Hidden: ClassOf is not NotHidden; to be removed or substituted.
	Hidden Prop = 1 << iota
	// NFKCActive: the normaliser must look: NFKC_Quick_Check is not Yes or the
	// combining class is not 0. Text without such a character is in NFKC.
	NFKCActive
	// NFCActive is the same for NFC.
	NFCActive
	// NFKCJoins: the decomposition begins with a character that may move before,
	// or compose with, what stands before it. Before any other character the
	// normaliser can cut. Every NFKCJoins character is NFKCActive.
	NFKCJoins
	// NFCJoins is the same for NFC.
	NFCJoins
	// NonStarter: the combining class is not 0.
	NonStarter
	// Confusable: not ASCII, unchanged by NFKC, and its UTS #39 prototype is
	// exactly one ASCII character: see ASCIIPrototype.
	Confusable
	// Opener: the NFKC or the skeleton begins with one of OpenerSet. Of says it of
	// ASCII too, Scan passes over ASCII.
	Opener
	// Flagged: not Hidden, but worth a note: private use, unassigned in NewestVersion,
	// newer than Version with a decomposition (which the normaliser does not know),
	// U+2800 (blank Braille) and U+FFFC (object replacement).
	Flagged
	// Lossy: the compatibility decomposition has a <super>, <sub> or <fraction>
	// part, so that NFKC changes what a number says.
	Lossy
	// Joining: a neighbour next to which JoinerAllowed may be true: a virama or
	// a letter that joins (Joining_Type L, R or D).
	Joining
	// EmojiPart: occurs in a sequence that EmojiSequence knows. That includes
	// the digits, ZWJ, U+FE0F and the tags of the three flags.
	EmojiPart
	// Mark: general category Mn, Mc or Me, in NewestVersion.
	Mark
	// IllFormed is never a code point's: Peek and Scan report ill-formed bytes
	// with it.
	IllFormed
	// Blank: not Hidden, and of one script or of music, where it has no ink of its own or only
	// changes how a sign beside it is drawn: the fillers, modifiers and joiners of hieroglyphs,
	// Khitan, Duployan, SignWriting and Brahmi, the viramas that stack, U+070F.
	Blank
	// Bound: a Mark that is not Hidden and belongs to a script, or to many and has the
	// combining class 0.
	Bound
)

const (
	propShift = 6 // as many bits as a UTF-8 trail byte carries: see Peek
	propMask  = 1<<propShift - 1
)

// Of returns the facts about r: one table read below U+20000. For a surrogate
// and outside the code space it is Flagged.
func Of(r rune) Prop {
	if uint32(r) < propLimit {
		return propData[int(propIndex[uint32(r)>>propShift])<<propShift|int(r&propMask)]
	}
	return propHighOf(uint32(r))
}

func propHighOf(u uint32) Prop {
	if u > MaxRune {
		return Flagged
	}
	lo, hi := 0, len(propHigh)
	for lo+1 < hi {
		if m := int(uint(lo+hi) >> 1); propHigh[m].from <= u {
			lo = m
		} else {
			hi = m
		}
	}
	return propHigh[lo].prop
}

type propRun struct {
	from uint32 // up to the next run's from
	prop Prop
}

// Decode returns the first code point of s and its width in bytes. Where s
// begins with ill-formed UTF-8 it returns U+FFFD, the length of the maximal
// subpart (1 to 3) and false. For an empty s the width is 0.
func Decode(s string) (r rune, width int, ok bool) {
	if len(s) == 0 {
		return 0xFFFD, 0, false
	}
	c := s[0]
	if c < 0x80 {
		return rune(c), 1, true
	}
	lo, hi := byte(0x80), byte(0xBF) // bounds of the second byte: Unicode table 3-7
	n := 0
	switch {
	case c < 0xC2 || c > 0xF4:
		return 0xFFFD, 1, false
	case c < 0xE0:
		n, r = 2, rune(c&0x1F)
	case c < 0xF0:
		n, r = 3, rune(c&0x0F)
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	default:
		n, r = 4, rune(c&0x07)
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	for i := 1; i < n; i++ {
		if i >= len(s) || s[i] < lo || s[i] > hi {
			return 0xFFFD, i, false
		}
		r = r<<6 | rune(s[i]&0x3F)
		lo, hi = 0x80, 0xBF
	}
	return r, n, true
}

// Peek returns the facts about the code point at s[i] and its width in bytes,
// IllFormed and the length of the maximal subpart where s is ill-formed there. i must be
// an index of s.
func Peek(s string, i int) (Prop, int) {
	c0 := s[i]
	switch {
	case c0 < 0x80:
		return propData[int(propIndex[c0>>propShift])<<propShift|int(c0&propMask)], 1
	case c0 < 0xE0:
		// Two bytes: the lead is the page, the trail the place in it.
		if c0 >= 0xC2 && i+1 < len(s) {
			if c1 := s[i+1]; c1&0xC0 == 0x80 {
				return propData[int(propIndex[c0&0x1F])<<propShift|int(c1&0x3F)], 2
			}
		}
	case c0 < 0xF0:
		// Three bytes; E0 and ED restrict the second.
		if i+2 < len(s) {
			c1, c2 := s[i+1], s[i+2]
			if c1&0xC0 == 0x80 && c2&0xC0 == 0x80 && (c0 != 0xED || c1 < 0xA0) && (c0 != 0xE0 || c1 >= 0xA0) {
				return propData[int(propIndex[uint32(c0&0x0F)<<6|uint32(c1&0x3F)])<<propShift|int(c2&0x3F)], 3
			}
		}
	case i+3 < len(s):
		c1, c2, c3 := s[i+1], s[i+2], s[i+3]
		r := rune(c0&0x0F)<<18 | rune(c1&0x3F)<<12 | rune(c2&0x3F)<<6 | rune(c3&0x3F)
		if c1&0xC0 == 0x80 && c2&0xC0 == 0x80 && c3&0xC0 == 0x80 && 0x10000 <= r && r <= MaxRune {
			return Of(r), 4
		}
	}
	r, w, ok := Decode(s[i:])
	if !ok {
		return IllFormed, w
	}
	return Of(r), w
}

// Scan returns the index of the first code point at or after i that has a fact
// in mask, with its facts and width, or len(s), 0, 0. It also stops at ill-formed
// bytes and at every control but TAB and LF, whatever the mask says; over the
// rest of ASCII it passes, whatever the mask says. 0 <= i <= len(s).
func Scan(s string, i int, mask Prop) (at int, p Prop, width int) {
	mask |= IllFormed
	for i < len(s) {
		c := s[i]
		if c < 0x80 {
			if c-0x20 < 0x7F-0x20 && i+1 < len(s) && s[i+1] >= 0x80 {
				i++ // a space between words
				continue
			}
			if i = asciiSpan(s, i); i < len(s) && s[i] < 0x80 {
				return i, Of(rune(s[i])), 1
			}
			continue
		}
		// Peek by hand: a call for each code point would double the time.
		switch {
		case c >= 0xC2 && c < 0xE0 && i+1 < len(s) && s[i+1]&0xC0 == 0x80:
			p = propData[int(propIndex[c&0x1F])<<propShift|int(s[i+1]&0x3F)]
			width = 2
		case c > 0xE0 && c < 0xF0 && i+2 < len(s) && s[i+1]&0xC0 == 0x80 && s[i+2]&0xC0 == 0x80 &&
			(c != 0xED || s[i+1] < 0xA0):
			p = propData[int(propIndex[uint32(c&0x0F)<<6|uint32(s[i+1]&0x3F)])<<propShift|int(s[i+2]&0x3F)]
			width = 3
		case c == 0xE0 && i+2 < len(s) && s[i+1]&0xE0 == 0xA0 && s[i+2]&0xC0 == 0x80:
			p = propData[int(propIndex[s[i+1]&0x3F])<<propShift|int(s[i+2]&0x3F)]
			width = 3
		default:
			p, width = Peek(s, i)
		}
		if p&mask != 0 {
			return i, p, width
		}
		i += width
	}
	return len(s), 0, 0
}

// asciiSpan returns the index of the first byte at or after i that is not
// printable ASCII, TAB or LF.
func asciiSpan(s string, i int) int {
	for {
		i += PlainASCII(s[i:])
		if i == len(s) || s[i] != '\n' && s[i] != '\t' {
			return i
		}
		i++
	}
}

// Count returns the number of characters of s, which is UTF-8: of the bytes that continue
// none. It takes a tenth of the time of utf8.RuneCountInString, which decodes.
func Count(s string) int {
	const lows = 0x0101010101010101
	n := len(s)
	for len(s) >= 8 {
		x := load64(s)
		n -= bits.OnesCount64(x >> 7 & ^(x >> 6) & lows)
		s = s[8:]
	}
	for i := range len(s) {
		if s[i]&0xC0 == 0x80 {
			n--
		}
	}
	return n
}

// PlainASCII returns the number of printable ASCII bytes at the start of s.
func PlainASCII(s string) int { return PlainASCIIBelow(s, 0x7F) }

// PlainASCIIBelow returns the number of bytes from 0x20 up to, but without, end at
// the start of s. end is an ASCII character from '@' to DEL.
func PlainASCIIBelow(s string, end byte) int {
	const (
		high   = 0x8080808080808080
		spaces = 0x2020202020202020
	)
	up := uint64(0x80-end) * 0x0101010101010101
	n := 0
	// A byte from end on has its high bit set after +(0x80-end), one that this
	// carries over and one below 0x20 after -0x20. Only a byte that is out of range
	// carries, and only upwards: the lowest one that is marked is always out of range.
	for len(s)-n >= 32 {
		q := s[n : n+32]
		a, b, c, d := load64(q), load64(q[8:]), load64(q[16:]), load64(q[24:])
		m := ((a + up) | (b + up) | (c + up) | (d + up)) |
			((a - spaces) | (b - spaces) | (c - spaces) | (d - spaces))
		if m&high != 0 {
			break
		}
		n += 32
	}
	for len(s)-n >= 8 {
		a := load64(s[n:])
		if m := ((a + up) | (a - spaces)) & high; m != 0 {
			return n + bits.TrailingZeros64(m)>>3
		}
		n += 8
	}
	for n < len(s) && s[n]-0x20 < end-0x20 {
		n++
	}
	return n
}

// load64 is one load on machines that allow it.
func load64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
