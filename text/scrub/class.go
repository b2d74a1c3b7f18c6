// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A Class says what an Edit or a Note is about.
type Class uint8

// The first classes are ucd's hidden classes, in their order.
const (
	_                 Class = iota
	Bidi                    // hidden: reorders what a person sees
	ZeroWidth               // hidden: joiner, space of no width, byte order mark
	InvisibleOperator       // hidden: invisible mathematics, deprecated format
	VariationSelector       // hidden
	Tag                     // hidden: tag character
	Filler                  // hidden: letter without a glyph, soft hyphen
	Annotation              // hidden: interlinear annotation
	Format                  // hidden: shorthand, music, hieroglyph layout
	Control                 // hidden: C0, DEL, C1
	Separator               // hidden: a line or paragraph separator that was removed
	Noncharacter            // hidden
	LineBreak               // became LF
	OddSpace                // became a space
	AnsiEscape              // terminal control sequence, whole
	ControlToken            // a chat template's token
	RoleMarker              // text that claims a role of the conversation
	HiddenReference         // character reference to a hidden character
	Confusable              // replaced by, or noted as being taken for, an ASCII character
	NFKC                    // changed by normalisation
	NFKCLossy               // … in a way that changes what a number says
	CombiningFlood          // non-starters beyond the eighth on one base; noted: beyond the fifth
	Truncated               // cut off, and the marker that says so
	IllFormedUTF8           // became U+FFFD
	MarkupTag               // HTML tag, comment or the "<" of one
	MarkupLink              // Markdown link, image or reference definition
	PrivateUse              // noted, kept
	Unassigned              // noted, kept
	BlankSymbol             // noted, kept
	Suspicious              // refused by surface
	SplitToken              // a control token spread over adjacent texts
	AmbiguousToken          // noted, kept: a spelling of a control token that honest text has too
	OddWhiteSpace           // noted, kept: white space that pushes text out of sight or carries a message
	ContentCredential       // a C2PA manifest, whole
	numClasses
)

var classCodes = [numClasses]finding.Code{
	Bidi: finding.HiddenBidi, ZeroWidth: finding.HiddenZeroWidth,
	InvisibleOperator: finding.HiddenOperator, VariationSelector: finding.HiddenVariation,
	Tag: finding.HiddenTag, Filler: finding.HiddenFiller, Annotation: finding.HiddenAnnotation,
	Format: finding.HiddenFormat, Control: finding.ControlCharacter,
	Separator: finding.LineBreak, Noncharacter: finding.Noncharacter,
	LineBreak: finding.LineBreak, OddSpace: finding.OddSpace, AnsiEscape: finding.AnsiEscape,
	ControlToken: finding.ControlToken, RoleMarker: finding.RoleMarker,
	HiddenReference: finding.HiddenReference, Confusable: finding.Confusable,
	NFKC: finding.NFKC, NFKCLossy: finding.NFKCLossy, CombiningFlood: finding.CombiningFlood,
	Truncated: finding.Truncated, IllFormedUTF8: finding.IllFormedUTF8,
	MarkupTag: finding.MarkupTag, MarkupLink: finding.MarkupLink,
	PrivateUse: finding.PrivateUse, Unassigned: finding.Unassigned,
	BlankSymbol: finding.BlankSymbol, Suspicious: finding.SuspiciousUnicode,
	SplitToken: finding.SplitAcrossBlocks, AmbiguousToken: finding.AmbiguousToken,
	OddWhiteSpace: finding.OddWhiteSpace, ContentCredential: finding.ContentCredential,
}

// Code returns the name of the class in the closed vocabulary, "" for none.
func (c Class) Code() finding.Code {
	if c < numClasses {
		return classCodes[c]
	}
	return ""
}

// Hidden reports whether c is a class of characters that a reader does not see.
func (c Class) Hidden() bool { return Bidi <= c && c <= Noncharacter }

// classOf returns the class of a hidden character.
func classOf(r rune) Class { return Class(ucd.ClassOf(r)) }

// keptClass returns the class under which a kept character is noted.
func keptClass(r rune) Class {
	switch {
	case r == 0x2800 || r == 0xFFFC:
		return BlankSymbol
	case 0xE000 <= r && r <= 0xF8FF, r >= 0xF0000:
		return PrivateUse
	}
	return Unassigned
}
