// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// Visible returns s with every hidden character, control and ill-formed byte
// spelled out for a person, as in "[U+202E RIGHT-TO-LEFT OVERRIDE]" between single
// guillemets; TAB and LF stay. With ascii every other character that is not ASCII
// is spelled out too, by number, and the guillemets are "<" and ">". The result
// is for a terminal or a page, never for a model.
func Visible(s string, ascii bool) string {
	open, end := "\u2039", "\u203a"
	if ascii {
		open, end = "<", ">"
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if c := s[i]; c < 0x80 && (c >= 0x20 && c != 0x7f || c == '\n' || c == '\t') {
			b.WriteByte(c)
			i++
			continue
		}
		r, w, ok := ucd.Decode(s[i:])
		switch {
		case !ok:
			fmt.Fprintf(&b, "%sbytes %X%s", open, s[i:i+w], end)
		case ucd.Of(r)&ucd.Hidden != 0:
			fmt.Fprintf(&b, "%sU+%04X %s%s", open, r, hiddenName(r), end)
		case ascii || ucd.Of(r)&ucd.Flagged != 0:
			fmt.Fprintf(&b, "%sU+%04X%s", open, r, end)
		default:
			b.WriteString(s[i : i+w])
		}
		i += w
	}
	return b.String()
}

// hiddenName returns the Unicode name of a hidden character, or its class.
func hiddenName(r rune) string {
	switch {
	case 0xE0020 < r && r < 0xE007F:
		return fmt.Sprintf("TAG %q", r-0xE0000)
	case 0xFE00 <= r && r <= 0xFE0F:
		return fmt.Sprintf("VARIATION SELECTOR-%d", r-0xFE00+1)
	case 0xE0100 <= r && r <= 0xE01EF:
		return fmt.Sprintf("VARIATION SELECTOR-%d", r-0xE0100+17)
	}
	if n, ok := hiddenNames[r]; ok {
		return n
	}
	return strings.ToUpper(ucd.ClassOf(r).String())
}

var hiddenNames = map[rune]string{
	0x00: "NULL", 0x07: "BELL", 0x08: "BACKSPACE", 0x0B: "LINE TABULATION", 0x0C: "FORM FEED",
	0x0D: "CARRIAGE RETURN", 0x1B: "ESCAPE", 0x7F: "DELETE", 0x85: "NEXT LINE",
	0x9B: "CONTROL SEQUENCE INTRODUCER", 0xAD: "SOFT HYPHEN", 0x034F: "COMBINING GRAPHEME JOINER",
	0x061C: "ARABIC LETTER MARK", 0x115F: "HANGUL CHOSEONG FILLER", 0x1160: "HANGUL JUNGSEONG FILLER",
	0x1680: "OGHAM SPACE MARK", 0x17B4: "KHMER VOWEL INHERENT AQ", 0x17B5: "KHMER VOWEL INHERENT AA",
	0x180B: "MONGOLIAN FREE VARIATION SELECTOR ONE", 0x180C: "MONGOLIAN FREE VARIATION SELECTOR TWO",
	0x180D: "MONGOLIAN FREE VARIATION SELECTOR THREE", 0x180E: "MONGOLIAN VOWEL SEPARATOR",
	0x180F: "MONGOLIAN FREE VARIATION SELECTOR FOUR",
	0x200B: "ZERO WIDTH SPACE", 0x200C: "ZERO WIDTH NON-JOINER", 0x200D: "ZERO WIDTH JOINER",
	0x200E: "LEFT-TO-RIGHT MARK", 0x200F: "RIGHT-TO-LEFT MARK", 0x2028: "LINE SEPARATOR",
	0x2029: "PARAGRAPH SEPARATOR", 0x202A: "LEFT-TO-RIGHT EMBEDDING", 0x202B: "RIGHT-TO-LEFT EMBEDDING",
	0x202C: "POP DIRECTIONAL FORMATTING", 0x202D: "LEFT-TO-RIGHT OVERRIDE", 0x202E: "RIGHT-TO-LEFT OVERRIDE",
	0x2060: "WORD JOINER", 0x2061: "FUNCTION APPLICATION", 0x2062: "INVISIBLE TIMES",
	0x2063: "INVISIBLE SEPARATOR", 0x2064: "INVISIBLE PLUS", 0x2066: "LEFT-TO-RIGHT ISOLATE",
	0x2067: "RIGHT-TO-LEFT ISOLATE", 0x2068: "FIRST STRONG ISOLATE", 0x2069: "POP DIRECTIONAL ISOLATE",
	0x206A: "INHIBIT SYMMETRIC SWAPPING", 0x206B: "ACTIVATE SYMMETRIC SWAPPING",
	0x206C: "INHIBIT ARABIC FORM SHAPING", 0x206D: "ACTIVATE ARABIC FORM SHAPING",
	0x206E: "NATIONAL DIGIT SHAPES", 0x206F: "NOMINAL DIGIT SHAPES", 0x3164: "HANGUL FILLER",
	0xFEFF: "ZERO WIDTH NO-BREAK SPACE", 0xFFA0: "HALFWIDTH HANGUL FILLER",
	0xFFF9: "INTERLINEAR ANNOTATION ANCHOR", 0xFFFA: "INTERLINEAR ANNOTATION SEPARATOR",
	0xFFFB: "INTERLINEAR ANNOTATION TERMINATOR", 0xE0001: "LANGUAGE TAG", 0xE0020: "TAG SPACE",
	0xE007F: "CANCEL TAG",
}
