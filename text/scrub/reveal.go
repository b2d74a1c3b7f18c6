// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// HiddenKind is a way to hide a message in characters that a reader does not see.
type HiddenKind string

const (
	TagMessage       HiddenKind = "tag characters"       // U+E0020 to U+E007E are ASCII
	SelectorMessage  HiddenKind = "variation selectors"  // VS1 to VS256 are bytes
	ZeroWidthMessage HiddenKind = "zero-width binary"    // U+200B, U+200C and the like are bits
	OperatorMessage  HiddenKind = "invisible operators"  // U+2062 and U+2064 are bits
	DirectionMessage HiddenKind = "direction marks"      // U+200E and U+200F are bits
	OpaqueMessage    HiddenKind = "undecoded characters" // a long run that yields no text
)

// Hidden is a message that stood in hidden characters. It is for people to read,
// never for a model. Message is third-party text: show it by finding.Quote only.
type Hidden struct {
	Kind       HiddenKind
	Start, End int // bytes of the text
	Message    string
}

const (
	minHidden     = 4  // characters of a run that is worth a look
	opaqueMinimum = 16 // characters of a run that is reported though it yields no text
	maxMessage    = 4096
)

// Reveal decodes the hidden messages of s. It looks at runs of hidden characters
// of one kind, not across visible text; time is linear.
func Reveal(s string) []Hidden {
	var found []Hidden
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		if prop&ucd.Hidden == 0 || s[at] < 0x80 {
			i = at + w
			continue
		}
		r, _, _ := ucd.Decode(s[at:])
		kind := channelOf(r)
		if kind == SelectorMessage {
			if _, end, ok := credentialAt(s, at); ok { // it says where the text comes from
				i = end
				continue
			}
		}
		var run []rune
		for i = at; i < len(s); i += w {
			if r, w, _ = ucd.Decode(s[i:]); channelOf(r) != kind || kind == "" {
				break
			}
			run = append(run, r)
		}
		if kind == "" {
			i = at + utf8.RuneLen(r)
			continue
		}
		if h, ok := decodeRun(kind, run); ok {
			h.Start, h.End = at, i
			found = append(found, h)
		}
	}
	return found
}

// channelOf returns the kind of message that r can be a part of, "" for none.
func channelOf(r rune) HiddenKind {
	switch {
	case 0xE0000 <= r && r <= 0xE007F:
		return TagMessage
	case 0xFE00 <= r && r <= 0xFE0F, 0xE0100 <= r && r <= 0xE01EF:
		return SelectorMessage
	case 0x200B <= r && r <= 0x200D, r == 0x2060, r == 0xFEFF:
		return ZeroWidthMessage
	case 0x2061 <= r && r <= 0x2064:
		return OperatorMessage
	case r == lrm, r == rlm:
		return DirectionMessage
	}
	return ""
}

func decodeRun(kind HiddenKind, run []rune) (Hidden, bool) {
	if len(run) < minHidden {
		return Hidden{}, false
	}
	var message string
	switch kind {
	case TagMessage:
		message = decodeTags(run)
	case SelectorMessage:
		message = decodeSelectors(run)
	default:
		message = decodeSymbols(run)
	}
	if message != "" {
		return Hidden{Kind: kind, Message: clip(message)}, true
	}
	return Hidden{Kind: OpaqueMessage}, len(run) >= opaqueMinimum
}

func decodeTags(run []rune) string {
	var b strings.Builder
	for _, r := range run {
		if c := r - 0xE0000; 0x20 <= c && c <= 0x7E {
			b.WriteByte(byte(c))
		}
	}
	return b.String()
}

func decodeSelectors(run []rune) string {
	b := make([]byte, 0, len(run))
	for _, r := range run {
		if r <= 0xFE0F {
			b = append(b, byte(r-0xFE00))
		} else {
			b = append(b, byte(r-0xE0100+16))
		}
	}
	if !readable(string(b)) {
		return ""
	}
	return string(b)
}

// decodeSymbols reads a run of up to four different characters: two of them as
// bits, with any others between groups, or four as pairs of bits. Which is which
// and how many bits make a character is tried; the most readable wins.
func decodeSymbols(run []rune) string {
	kinds := distinct(run)
	if len(kinds) < 2 || len(kinds) > 5 {
		return ""
	}
	best, most := "", -1
	try := func(s string) {
		if n := plainOf(s); readable(s) && (n > most || n == most && len(s) > len(best)) {
			best, most = s, n
		}
	}
	for i, zero := range kinds {
		for j, one := range kinds {
			if i == j {
				continue
			}
			bits, grouped := bitsOf(run, zero, one)
			for _, width := range []int{8, 7, 16} {
				try(charactersOf(bits, width))
			}
			try(grouped)
		}
	}
	if len(kinds) == 4 {
		for _, order := range fourOrders {
			try(charactersOf(pairBits(run, kinds, order), 8))
		}
	}
	return best
}

// fourOrders are the orders of four characters as 00, 01, 10, 11.
var fourOrders = func() (all [][4]byte) {
	for a := range byte(4) {
		for b := range byte(4) {
			for c := range byte(4) {
				if d := 6 - a - b - c; a != b && b != c && a != c {
					all = append(all, [4]byte{a, b, c, d})
				}
			}
		}
	}
	return all
}()

func distinct(run []rune) (kinds []rune) {
	for _, r := range run {
		known := false
		for _, k := range kinds {
			known = known || k == r
		}
		if !known {
			if kinds = append(kinds, r); len(kinds) > 5 {
				break
			}
		}
	}
	return kinds
}

// bitsOf returns the bits of run, and what they spell where any other character
// ends a group.
func bitsOf(run []rune, zero, one rune) (bits []byte, grouped string) {
	var b strings.Builder
	n, value := 0, rune(0)
	end := func() {
		if n > 0 && value <= utf8.MaxRune {
			b.WriteRune(value)
		}
		n, value = 0, 0
	}
	separated := false
	for _, r := range run {
		switch r {
		case zero, one:
			bit := byte(0)
			if r == one {
				bit = 1
			}
			bits = append(bits, bit)
			n, value = n+1, min(value<<1|rune(bit), utf8.MaxRune+1)
		default:
			separated = true
			end()
		}
	}
	end()
	if !separated {
		return bits, ""
	}
	return bits, b.String()
}

func pairBits(run, kinds []rune, order [4]byte) (bits []byte) {
	for _, r := range run {
		for k, x := range kinds {
			if x == r {
				bits = append(bits, order[k]>>1, order[k]&1)
			}
		}
	}
	return bits
}

// charactersOf reads bits as characters of that width, the most significant
// first; what is left over at the end is dropped.
func charactersOf(bits []byte, width int) string {
	b := make([]byte, 0, len(bits)/width*2)
	for ; len(bits) >= width; bits = bits[width:] {
		v := rune(0)
		for _, bit := range bits[:width] {
			v = v<<1 | rune(bit)
		}
		if width == 16 {
			b = utf8.AppendRune(b, v)
		} else {
			b = append(b, byte(v))
		}
	}
	return string(b)
}

// readable reports whether s looks like a text: UTF-8 of which nearly all is
// printable ASCII or letters.
func readable(s string) bool {
	if len(s) < 2 || !utf8.ValidString(s) {
		return false
	}
	good, all := 0, 0
	for _, r := range s {
		all++
		if r == '\n' || 0x20 <= r && r < 0x7F || r > 0xA0 && r != utf8.RuneError && ucd.Of(r)&(ucd.Hidden|ucd.Flagged) == 0 {
			good++
		}
	}
	return good*100 >= all*95
}

func clip(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return s[:runeStart(s, maxMessage)]
}

// plainOf counts the printable ASCII of s. Misread bits seldom yield any: the
// bytes of an English sentence, taken by twos, are as many Chinese characters.
func plainOf(s string) int {
	n := 0
	for i := range len(s) {
		if 0x20 <= s[i] && s[i] < 0x7F {
			n++
		}
	}
	return n
}
