// SPDX-License-Identifier: Apache-2.0

package href

import (
	"strings"
	"unicode/utf8"
)

const acePrefix = "xn--"

// decodeLabel returns what a label in lower case that begins with acePrefix shows
// to a reader. It is false where the label encodes nothing.
func decodeLabel(label string) ([]rune, bool) {
	return decodePunycode(label[len(acePrefix):])
}

// The parameters of RFC 3492, section 5.
const (
	base        = 36
	tMin        = 1
	tMax        = 26
	skew        = 38
	damp        = 700
	initialBias = 72
	initialN    = 0x80
)

// decodePunycode decodes s, which holds lower case letters, digits and hyphens
// only, by RFC 3492, section 6.2. Every text has one encoding; ok is false if s
// is not such a text, or encodes ASCII only. A label has at most 63 bytes, so the cost of
// the insertions is bounded.
func decodePunycode(s string) ([]rune, bool) {
	if len(s) > maxLabel {
		return nil, false
	}
	basic, s := "", s
	if i := strings.LastIndexByte(s, '-'); i == 0 {
		return nil, false
	} else if i > 0 {
		basic, s = s[:i], s[i+1:]
	}
	out := []rune(basic)
	n, i, bias := initialN, 0, initialBias
	for first := true; len(s) > 0; first = false {
		delta, size, ok := decodeDelta(s, bias)
		if !ok {
			return nil, false
		}
		s = s[size:]
		i += delta
		bias = adapt(delta, len(out)+1, first)
		n += i / (len(out) + 1)
		i %= len(out) + 1
		if n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
			return nil, false
		}
		out = append(out, 0)
		copy(out[i+1:], out[i:])
		out[i] = rune(n)
		i++
	}
	return out, len(out) > len(basic)
}

// decodeDelta decodes one variable-length integer at the start of s and returns
// its size in bytes.
func decodeDelta(s string, bias int) (delta, size int, ok bool) {
	weight := 1
	for k := base; size < len(s); k += base {
		digit, ok := digitValue(s[size])
		if !ok {
			return 0, 0, false
		}
		size++
		delta += digit * weight
		if delta > 1<<30 { // more than any code point in any label needs
			return 0, 0, false
		}
		t := min(max(k-bias, tMin), tMax)
		if digit < t {
			return delta, size, true
		}
		weight *= base - t
		if weight > 1<<30 {
			return 0, 0, false
		}
	}
	return 0, 0, false
}

func digitValue(c byte) (int, bool) {
	switch {
	case 'a' <= c && c <= 'z':
		return int(c - 'a'), true
	case '0' <= c && c <= '9':
		return int(c-'0') + 26, true
	}
	return 0, false
}

func adapt(delta, points int, first bool) int {
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for delta > (base-tMin)*tMax/2 {
		delta /= base - tMin
		k += base
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}
