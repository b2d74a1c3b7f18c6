// SPDX-License-Identifier: Apache-2.0

package strictjson

import "strconv"

// A SyntaxError says why a text was refused and where. It holds nothing of the text.
type SyntaxError struct {
	Code   Code
	Offset int // in bytes, from the start of the text
}

// Error is a constant text and the offset.
func (e *SyntaxError) Error() string {
	return "strictjson: " + e.Code.String() + " at byte " + strconv.Itoa(e.Offset)
}

// A Code is a reason to refuse a text.
type Code uint8

// The reasons. The zero Code means no reason.
const (
	_                 Code = iota
	CodeBytes              // Limits.Bytes exceeded
	CodeDepth              // Limits.Depth exceeded
	CodeValues             // Limits.Values exceeded
	CodeEnd                // the text ends too early
	CodeToken              // a byte that the grammar does not allow here
	CodeTrailing           // something behind the value
	CodeBOM                // a byte order mark at the start
	CodeUTF8               // ill-formed UTF-8 in a string
	CodeControl            // an unescaped control character in a string
	CodeEscape             // an escape that JSON does not have
	CodeSurrogate          // a lone surrogate escape
	CodeNumber             // a number with another spelling than JSON's
	CodeNumberLong         // a number of more than maxNumber bytes
	CodeNumberRange        // a number that a float64 cannot hold: too large, or too near to 0
	CodeDuplicate          // a second member of the same name
	CodeFolded             // a second member of the same name but for case (Limits.FoldedNames)
	CodeUnsafeInteger      // Canonical: an integer beyond 2^53
	CodeUnknownMember      // Unmarshal: a member that the Go type does not have
	CodeType               // Unmarshal: a value that the Go type cannot hold
)

var codeTexts = [...]string{
	CodeBytes:         "text too long",
	CodeDepth:         "nested too deeply",
	CodeValues:        "too many values",
	CodeEnd:           "unexpected end",
	CodeToken:         "unexpected byte",
	CodeTrailing:      "data after the value",
	CodeBOM:           "byte order mark",
	CodeUTF8:          "ill-formed UTF-8",
	CodeControl:       "unescaped control character",
	CodeEscape:        "unknown escape",
	CodeSurrogate:     "lone surrogate escape",
	CodeNumber:        "ill-formed number",
	CodeNumberLong:    "number too long",
	CodeNumberRange:   "number out of range",
	CodeDuplicate:     "duplicate member name",
	CodeFolded:        "member names that differ only in case",
	CodeUnsafeInteger: "integer beyond 2^53",
	CodeUnknownMember: "unknown member",
	CodeType:          "value of another type",
}

// String is the constant text of c.
func (c Code) String() string {
	if int(c) < len(codeTexts) && codeTexts[c] != "" {
		return codeTexts[c]
	}
	return "unknown code"
}
