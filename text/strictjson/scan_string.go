// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special marks, by its lowest set bit, the first byte of x (in memory order)
// that ends a plain run inside a string: a quote, a backslash or a control
// character. The subtraction can only mark wrongly above a right mark.
func special(x uint64) uint64 {
	quote, slash := x^'"'*ones, x^'\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & highs
}

// plainRun returns the offset of the first byte of src from i on that is
// special, or len(src), and the bytes before it ORed together in any order.
func plainRun(src []byte, i int) (end int, seen uint64) {
	for i+8 <= len(src) {
		x := binary.LittleEndian.Uint64(src[i:])
		if m := special(x); m != 0 {
			n := bits.TrailingZeros64(m) &^ 7
			return i + n/8, seen | x&(1<<n-1)
		}
		seen |= x
		i += 8
	}
	for ; i < len(src); i++ {
		c := src[i]
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
		seen |= uint64(c)
	}
	return i, seen
}

func (d *Doc) scanString(start int, flag uint32) (int, Code) {
	src := d.src
	var seen uint64
	var flags uint32
	i, code := start+1, Code(0)
	for {
		end, s := plainRun(src, i)
		i, seen = end, seen|s
		if i >= len(src) {
			code = CodeEnd
			break
		}
		if src[i] == '"' {
			break
		}
		if src[i] < ' ' {
			code = CodeControl
			break
		}
		var mended bool
		if i, mended, code = d.scanEscape(i, flag == 0); code != 0 {
			break
		}
		flags |= isEscaped
		if mended {
			flags |= isMended
		}
	}
	if seen&highs != 0 && !utf8.Valid(src[start+1:i]) {
		return start + 1 + wellFormed(src[start+1:i]), CodeUTF8
	}
	if code != 0 {
		return i, code
	}
	if !d.push(start, i+1, flag, flags) {
		return start, CodeValues
	}
	return i + 1, 0
}

// wellFormed returns the length of the longest prefix of b that is UTF-8.
func wellFormed(b []byte) int {
	i := 0
	for i < len(b) {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		i += n
	}
	return i
}

// scanEscape scans the escape at the backslash at i, surrogate pairs whole.
func (d *Doc) scanEscape(i int, inValue bool) (next int, mended bool, code Code) {
	src := d.src
	if i+1 >= len(src) {
		return len(src), false, CodeEnd
	}
	switch src[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, false, 0
	case 'u':
	default:
		return i, false, CodeEscape
	}
	u, n := hex4(src[i+2:])
	if n < 4 {
		if i+2+n >= len(src) {
			return len(src), false, CodeEnd
		}
		return i, false, CodeEscape
	}
	if u < 0xd800 || u > 0xdfff {
		return i + 6, false, 0
	}
	if u < 0xdc00 && i+7 < len(src) && src[i+6] == '\\' && src[i+7] == 'u' {
		if low, n := hex4(src[i+8:]); n == 4 && low >= 0xdc00 && low <= 0xdfff {
			return i + 12, false, 0
		}
	}
	if !d.lim.MendSurrogates || !inValue {
		return i, false, CodeSurrogate
	}
	d.mend(i)
	return i + 6, true, 0
}

// mend writes U+FFFD over the escape at i in a copy of the text: both have six
// bytes, so every offset stays, and whatever is copied from the text later is
// what was checked.
func (d *Doc) mend(i int) {
	if d.Mended == 0 {
		d.mended = append(d.mended[:0], d.src...)
	}
	copy(d.mended[i:], `\ufffd`)
	d.Mended++
}

// hex4 reads up to four hexadecimal digits and says how many there were.
func hex4(b []byte) (u rune, n int) {
	for ; n < 4 && n < len(b); n++ {
		c := b[n]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return u, n
		}
		u = u<<4 | rune(c)
	}
	return u, n
}
