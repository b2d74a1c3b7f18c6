// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A spacer is what is left where something was taken out that kept two words apart: "\n",
// " " or "". The order of their bytes is that of their strength. spec: scrub/3.4
type spacer string

const (
	blank   spacer = " "
	newLine spacer = "\n"
)

// over returns the stronger of two spacers.
func (g spacer) over(other spacer) spacer {
	switch {
	case g == newLine || other == newLine:
		return newLine
	case g == blank || other == blank:
		return blank
	}
	return ""
}

// spacerOf returns the spacer that the hidden character r leaves. What is default ignorable leaves
// none: it never kept anything apart.
func spacerOf(r rune) spacer {
	switch ucd.Substitute(r) {
	case '\n':
		return newLine
	case ' ':
		return blank
	}
	switch classOf(r) {
	case Bidi, ZeroWidth, InvisibleOperator, VariationSelector, Tag, Filler:
		return ""
	case Annotation:
		if r < 0xFFF9 {
			return ""
		}
	case Format:
		if 0x1BCA0 <= r && r <= 0x1BCA3 || 0x1D173 <= r && r <= 0x1D17A {
			return ""
		}
	}
	return blank
}

// partingRun returns the end of the run of controls and separators that begins with r =
// s[at:end], the spacer that the whole run leaves, and its class.
func partingRun(s string, end int, r rune) (stop int, g spacer, c Class) {
	g, c = spacerOf(r), partingClass(r)
	for end < len(s) {
		next, w, ok := ucd.Decode(s[end:])
		if !ok || ucd.Of(next)&ucd.Hidden == 0 || !controls(next) || next == '\r' && end+1 < len(s) && s[end+1] == '\n' {
			break
		}
		g = g.over(spacerOf(next))
		if is := partingClass(next); weight(is) > weight(c) {
			c = is
		}
		end += w
	}
	return end, g, c
}

// controls reports whether r is of a class that no use keeps.
func controls(r rune) bool {
	c := classOf(r)
	return c == Control || c == Separator || c == Noncharacter
}

// partingClass returns the class of an edit that took out the hidden character r.
func partingClass(r rune) Class {
	switch spacerOf(r) {
	case newLine:
		return LineBreak
	case blank:
		if ucd.Substitute(r) != 0 {
			return OddSpace
		}
	}
	return classOf(r)
}

// part takes out [at, end) of the text and leaves the spacer there, unless white space stands
// beside it. A line break is not left at the beginning of a text, a blank at neither end.
func (p *pass) part(at, end int, g spacer, c Class) {
	ed := &p.r.ed
	from := ed.copy(at)
	if g != "" && !spaced(ed.out, ed.in[end:], g) {
		ed.out = append(ed.out, g...)
		p.parted = true
	}
	ed.recordEdit(c, at, end, from)
}

// spaced reports whether before and after need no g between them.
func spaced(before []byte, after string, g spacer) bool {
	if len(before) == 0 {
		return true
	}
	last, _ := utf8.DecodeLastRune(before)
	next, _, _ := ucd.Decode(after)
	if g == newLine {
		return last == '\n' || next == '\n' || len(after) > 1 && after[:2] == "\r\n"
	}
	return after == "" || whiteSpace(last) || whiteSpace(next)
}

// whiteSpace reports whether r is white space that every profile keeps.
func whiteSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r' || oddSpace(r)
}

// oddSpace reports whether r is a space that is not ASCII.
func oddSpace(r rune) bool {
	return r == 0xA0 || 0x2000 <= r && r <= 0x200A || r == 0x202F || r == 0x205F || r == 0x3000
}
