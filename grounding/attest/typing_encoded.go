// SPDX-License-Identifier: Apache-2.0

package attest

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// The measure of an encoded payload. Hashes and keys are encoded too, so the
// encoding is no reason: that it decodes to text is.
const (
	minEncoded = 24 // characters
	minDecoded = 18 // bytes of a whole run
	minWithin  = 24 // bytes of a part of one: each try is one more chance for a hash
	minEscapes = 8  // in one word
)

// encodedAt finds a run of base64, base64url, base32 or hex that decodes to text.
// A run of minEncoded characters covers an index that is a multiple of it, so only
// these are looked at.
func encodedAt(s string) int {
	done := 0
	for i := minEncoded - 1; i < len(s); {
		if !encoding64(s[i]) {
			i += minEncoded
			continue
		}
		start, end := i, i+1
		for start > done && encoding64(s[start-1]) {
			start--
		}
		for end < len(s) && encoding64(s[end]) {
			end++
		}
		if end-start >= minEncoded {
			if at := payload(s[start:end]); at >= 0 {
				return start + at
			}
		}
		done = end
		i = end + minEncoded
	}
	return -1
}

func encoding64(c byte) bool {
	return letter(c) || digit(c) || c == '+' || c == '/' || c == '-' || c == '_'
}

// payload looks at the whole run and, where it holds separators of paths and
// names, at each part.
func payload(run string) int {
	if decodesToText(run, minDecoded) {
		return 0
	}
	start := 0
	for i := 0; i <= len(run); i++ {
		if i < len(run) && (letter(run[i]) || digit(run[i])) {
			continue
		}
		if i-start >= minEncoded && i-start < len(run) && decodesToText(run[start:i], minWithin) {
			return start
		}
		start = i + 1
	}
	return -1
}

// decodesToText tries every encoding at every alignment: what stands before the
// payload may be made of the same characters. At the first, least bytes suffice.
func decodesToText(run string, least int) bool {
	if !mixed(run) {
		return false
	}
	buf := make([]byte, len(run))
	try := func(k int, s string, decode func(dst, src []byte) (int, error)) bool {
		least := least
		if k > 0 {
			least = minWithin
		}
		n, err := decode(buf, []byte(s))
		return err == nil && n >= least && isText(buf[:n])
	}
	if isHex(run) {
		for k := range 2 {
			s := run[k:]
			if try(k, s[:len(s)&^1], hex.Decode) {
				return true
			}
		}
	}
	if is32(run) {
		upper := strings.ToUpper(run)
		for k := range 8 {
			s := upper[k:]
			if try(k, s[:whole(len(s), 8, 1, 3, 6)], base32.StdEncoding.WithPadding(base32.NoPadding).Decode) {
				return true
			}
		}
	}
	std := strings.NewReplacer("-", "+", "_", "/").Replace(run)
	for k := range 4 {
		s := std[k:]
		if try(k, s[:whole(len(s), 4, 1)], base64.RawStdEncoding.Decode) {
			return true
		}
	}
	return false
}

// whole returns n less what makes n modulo m one of the remainders that no
// encoding ends with.
func whole(n, m int, not ...int) int {
	for _, r := range not {
		if n%m == r {
			return n - 1
		}
	}
	return n
}

// mixed reports whether s has characters of more than one class: words have not.
func mixed(s string) bool {
	classes := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z':
			classes |= 1
		case c >= 'A' && c <= 'Z':
			classes |= 2
		case digit(c):
			classes |= 4
		default:
			classes |= 8
		}
	}
	return classes&(classes-1) != 0
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; !digit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

// is32: base32 is written in one case; keys in base64 that have both are not it.
func is32(s string) bool {
	upper, lower := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z':
			upper = true
		case c >= 'a' && c <= 'z':
			lower = true
		case c < '2' || c > '7':
			return false
		}
	}
	return upper != lower
}

// isText reports whether b is something to read: at least 97 % of its characters
// are printable and 60 % letters or blanks.
func isText(b []byte) bool {
	total, printable, letters := 0, 0, 0
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		b = b[n:]
		total++
		switch {
		case r == utf8.RuneError && n == 1:
		case r < 0x80:
			blank := r == ' ' || r == '\n' || r == '\t' || r == '\r'
			if blank || r > ' ' && r < 0x7F {
				printable++
			}
			if blank || letter(byte(r)) {
				letters++
			}
		case ucd.Of(r)&(ucd.Hidden|ucd.Flagged) == 0:
			printable++
			if sc := ucd.ScriptOf(r); sc != ucd.ScriptCommon && sc != ucd.ScriptUnknown {
				letters++
			}
		}
	}
	return total > 0 && 100*printable >= 97*total && 100*letters >= 60*total
}

// escapesAt finds a word with at least minEscapes percent triplets, \x or \u
// escapes, or numeric character references, that together decode to text.
func escapesAt(s string) int {
	for i := 0; i < len(s); {
		n := strings.IndexAny(s[i:], `%\&`)
		if n < 0 {
			return -1
		}
		i += n
		at := i
		var count int
		if count, i = escapedWord(s, i); count >= minEscapes {
			return at
		}
	}
	return -1
}

// escapedWord decodes the escapes from s[i] to the end of the word. It returns
// their number, 0 where they are no text.
func escapedWord(s string, i int) (count, end int) {
	var decoded []byte
	var high rune
	for i < len(s) && s[i] > ' ' {
		r, isByte, n := escape(s[i:])
		switch {
		case n == 0:
			i++
			continue
		case isByte:
			decoded = append(decoded, byte(r))
		case utf16.IsSurrogate(r) && r < 0xDC00:
			high = r
		case utf16.IsSurrogate(r):
			decoded = utf8.AppendRune(decoded, utf16.DecodeRune(high, r))
		default:
			decoded = utf8.AppendRune(decoded, r)
		}
		count++
		i += n
	}
	if count < minEscapes || !isText(decoded) {
		return 0, i
	}
	return count, i
}

// escape reads one escape at the start of s: a byte or a code point, and its
// length; 0 if not found.
func escape(s string) (r rune, isByte bool, n int) {
	switch {
	case s[0] == '%':
		r, n = digits(s, 1, 3, 16)
		return r, true, n
	case strings.HasPrefix(s, `\x`):
		r, n = digits(s, 2, 4, 16)
		return r, true, n
	case strings.HasPrefix(s, `\u{`), strings.HasPrefix(s, "&#x"), strings.HasPrefix(s, "&#X"):
		r, n = digits(s, 3, closing(s), 16)
		return r, false, n
	case strings.HasPrefix(s, `\u`):
		r, n = digits(s, 2, 6, 16)
		return r, false, n
	case strings.HasPrefix(s, "&#"):
		r, n = digits(s, 2, closing(s), 10)
		return r, false, n
	}
	return 0, false, 0
}

// closing returns the index of the "}" or ";" near the start of s, 0 if it is far.
func closing(s string) int {
	return max(strings.IndexAny(s[:min(len(s), 12)], "};"), 0)
}

// digits reads s[from:to] and returns the length of the escape: with what closes
// it, if to is an index of that.
func digits(s string, from, to, base int) (rune, int) {
	if to <= from || to > len(s) {
		return 0, 0
	}
	v, err := strconv.ParseUint(s[from:to], base, 32)
	if err != nil || v > ucd.MaxRune {
		return 0, 0
	}
	if to < len(s) && (s[to] == '}' || s[to] == ';') {
		to++
	}
	return rune(v), to
}
