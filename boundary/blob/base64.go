// SPDX-License-Identifier: Apache-2.0

// Package blob reads base64, data: URIs and character sets as the decoders in use do:
// strict ones, and those that skip what they do not know.
//
// Decoders disagree about base64. Python's b64decode skips every character outside
// the alphabet, "-" and "_" among them. Node's Buffer takes both alphabets and stops at the first "=".
// Browsers (atob, data: URIs) skip white space and refuse the rest. So a spelling has
// a [Form], and only for [Canonical] every decoder returns the same bytes. For [Loose]
// each decoder returns the same bytes or an error.
//
// A text in another character set than UTF-8 has several readings: that of its own
// character set and that of a reader who takes everything for UTF-8. [Read] returns
// all of them, so that each can be inspected.
package blob

import "encoding/base64"

// Form says which decoders agree about a spelling of base64.
type Form uint8

// The forms.
const (
	Canonical Form = iota // the standard alphabet, padded: all return the same bytes
	Loose                 // white space, padding or unused bits differ: the same bytes, or an error
	URLSafe               // the alphabet of URLs: some decoders skip "-" and "_"
	Ambiguous             // decoders return different bytes, or it is not base64
)

// FormOf returns the form of s. It needs no memory.
func FormOf(s string) Form {
	var standard, urlSafe, loose bool
	n, pads, last := 0, 0, byte(0)
	for i := range len(s) {
		c := s[i]
		switch {
		case isSpace(c):
			loose = true
			continue
		case c == '=':
			pads++
			continue
		case c == '+' || c == '/':
			standard = true
		case c == '-' || c == '_':
			urlSafe = true
		case value(c) < 0:
			return Ambiguous
		}
		if pads > 0 {
			return Ambiguous // bytes behind the padding
		}
		n, last = n+1, c
	}
	rest := n % 4
	if rest == 1 || pads > 2 || standard && urlSafe || n == 0 && pads > 0 {
		return Ambiguous
	}
	unused := 0 // bits of the last character that no byte holds
	if rest > 0 {
		unused = value(last) & (1<<(8-2*rest) - 1)
	}
	switch {
	case urlSafe:
		return URLSafe
	case loose, pads != (4-rest)%4, unused != 0:
		return Loose
	}
	return Canonical
}

// isSpace: the white space that browsers skip.
func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r' }

// value returns the six bits of a character of either alphabet, or -1.
func value(c byte) int {
	switch {
	case 'A' <= c && c <= 'Z':
		return int(c - 'A')
	case 'a' <= c && c <= 'z':
		return int(c-'a') + 26
	case '0' <= c && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// Decode returns the bytes of s, whose form is not Ambiguous.
func Decode(s string) []byte {
	digits := make([]byte, 0, len(s))
	for i := range len(s) {
		switch c := s[i]; {
		case c == '-':
			digits = append(digits, '+')
		case c == '_':
			digits = append(digits, '/')
		case value(c) >= 0:
			digits = append(digits, c)
		}
	}
	// In place: a byte is written only after the digits that hold it were read.
	n, _ := base64.RawStdEncoding.Decode(digits, digits)
	return digits[:n]
}

// Encode returns the canonical spelling.
func Encode(plain []byte) string { return base64.StdEncoding.EncodeToString(plain) }
