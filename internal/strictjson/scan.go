package strictjson

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// The scan functions take the offset where their piece begins and return the
// offset behind it, or the offset of the error and its code.

func (d *Doc) scanText() (int, Code) {
	src := d.src
	if len(src) > d.lim.Bytes {
		return d.lim.Bytes, CodeBytes
	}
	if len(src) >= 3 && string(src[:3]) == "\xef\xbb\xbf" {
		return 0, CodeBOM
	}
	i, code := d.scanValue(skipSpace(src, 0), 0)
	if code != 0 {
		return i, code
	}
	if i = skipSpace(src, i); i < len(src) {
		return i, CodeTrailing
	}
	return i, 0
}

// skipSpace returns the offset of the first octet from i on that is not JSON white space.
func skipSpace(src []byte, i int) int {
	for i < len(src) && src[i] <= ' ' && uint64(1)<<src[i]&(1<<' '|1<<'\t'|1<<'\n'|1<<'\r') != 0 {
		i++
	}
	return i
}

func (d *Doc) scanValue(i, depth int) (int, Code) {
	if i >= len(d.src) {
		return i, CodeEnd
	}
	switch d.src[i] {
	case '"':
		return d.scanString(i, 0)
	case '{':
		return d.scanObject(i, depth)
	case '[':
		return d.scanArray(i, depth)
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return d.scanNumber(i)
	case 't':
		return d.scanLiteral(i, "true")
	case 'f':
		return d.scanLiteral(i, "false")
	case 'n':
		return d.scanLiteral(i, "null")
	}
	return i, CodeToken
}

// push adds the index entry of a value without children.
func (d *Doc) push(start, end int, startFlag, endFlags uint32) bool {
	n := len(d.nodes)
	if n >= d.lim.Values {
		return false
	}
	d.nodes = append(d.nodes, node{uint32(start) | startFlag, uint32(end) | endFlags, uint32(n + 1)})
	return true
}

func (d *Doc) scanLiteral(i int, word string) (int, Code) {
	for k := 0; k < len(word); k++ {
		if i+k >= len(d.src) {
			return i + k, CodeEnd
		}
		if d.src[i+k] != word[k] {
			return i + k, CodeToken
		}
	}
	if !d.push(i, i+len(word), 0, 0) {
		return i, CodeValues
	}
	return i + len(word), 0
}

func (d *Doc) scanArray(i, depth int) (int, Code) {
	self := len(d.nodes)
	if depth >= d.lim.Depth {
		return i, CodeDepth
	}
	if !d.push(i, i, 0, 0) {
		return i, CodeValues
	}
	src := d.src
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == ']' {
		d.close(self, i+1)
		return i + 1, 0
	}
	for {
		var code Code
		if i, code = d.scanValue(i, depth+1); code != 0 {
			return i, code
		}
		if i = skipSpace(src, i); i >= len(src) {
			return i, CodeEnd
		}
		switch src[i] {
		case ',':
			i = skipSpace(src, i+1)
		case ']':
			d.close(self, i+1)
			return i + 1, 0
		default:
			return i, CodeToken
		}
	}
}

func (d *Doc) scanObject(i, depth int) (int, Code) {
	self := len(d.nodes)
	if depth >= d.lim.Depth {
		return i, CodeDepth
	}
	if !d.push(i, i, 0, 0) {
		return i, CodeValues
	}
	src := d.src
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == '}' {
		d.close(self, i+1)
		return i + 1, 0
	}
	var names nameSet
	for {
		var code Code
		if i, code = d.scanName(i); code != 0 {
			return i, code
		}
		names.add(d)
		if i, code = d.scanValue(i, depth+1); code != 0 {
			return i, code
		}
		if i = skipSpace(src, i); i >= len(src) {
			return i, CodeEnd
		}
		switch src[i] {
		case ',':
			i = skipSpace(src, i+1)
		case '}':
			d.close(self, i+1)
			if names.suspect {
				if at, code := d.findDuplicate(self, names.n); code != 0 {
					return at, code
				}
			}
			return i + 1, 0
		default:
			return i, CodeToken
		}
	}
}

// scanName scans a member's name and its colon, up to the value.
func (d *Doc) scanName(i int) (int, Code) {
	src := d.src
	if i >= len(src) {
		return i, CodeEnd
	}
	if src[i] != '"' {
		return i, CodeToken
	}
	i, code := d.scanString(i, isName)
	if code != 0 {
		return i, code
	}
	if i = skipSpace(src, i); i >= len(src) {
		return i, CodeEnd
	}
	if src[i] != ':' {
		return i, CodeToken
	}
	return skipSpace(src, i+1), 0
}

// close completes the entry of the object or array at index self.
func (d *Doc) close(self, end int) {
	n := &d.nodes[self]
	n.end, n.next = uint32(end), uint32(len(d.nodes))
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// special marks, by its lowest set bit, the first octet of x (in memory order)
// that ends a plain run inside a string: a quote, a backslash or a control
// character. The subtraction can only mark wrongly above a right mark.
func special(x uint64) uint64 {
	quote, slash := x^'"'*ones, x^'\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-' '*ones)&^x) & highs
}

// plainRun returns the offset of the first octet of src from i on that is
// special, or len(src), and the octets before it ORed together in any order.
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
// octets, so every offset stays, and whatever is copied from the text later is
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

func (d *Doc) scanNumber(start int) (int, Code) {
	src, i := d.src, start
	if src[i] == '-' {
		i++
	}
	var ok bool
	first := i
	if i, ok = skipDigits(src, i); !ok {
		return badNumber(src, i)
	}
	if src[first] == '0' && i > first+1 {
		return first + 1, CodeNumber
	}
	if i < len(src) && src[i] == '.' {
		if i, ok = skipDigits(src, i+1); !ok {
			return badNumber(src, i)
		}
	}
	exponent := 0
	if i < len(src) && src[i]|' ' == 'e' {
		exponent = i
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		if i, ok = skipDigits(src, i); !ok {
			return badNumber(src, i)
		}
	}
	if i-start > MaxNumber {
		return start, CodeNumberLong
	}
	// Up to 100 digits and an exponent of up to two digits lie well inside a float64's range.
	if (i-start > 100 || exponent != 0 && i-exponent > 3) && !inRange(src[start:i]) {
		return start, CodeNumberRange
	}
	if !d.push(start, i, 0, 0) {
		return start, CodeValues
	}
	return i, 0
}

func badNumber(src []byte, i int) (int, Code) {
	if i >= len(src) {
		return i, CodeEnd
	}
	return i, CodeNumber
}

// skipDigits returns the offset behind the digits at i, and whether there were any.
func skipDigits(src []byte, i int) (int, bool) {
	start := i
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	return i, i > start
}

// inRange reports whether a float64 can hold the number: it must neither
// overflow nor, not being 0, become 0.
func inRange(num []byte) bool {
	f, err := strconv.ParseFloat(alias(num), 64)
	if err != nil || math.IsInf(f, 0) {
		return false
	}
	if f != 0 {
		return true
	}
	for _, c := range num {
		if c|' ' == 'e' {
			break
		}
		if '1' <= c && c <= '9' {
			return false
		}
	}
	return true
}

// alias is b as a string, without a copy.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// aliasBytes is s as octets, without a copy; they must not be changed.
func aliasBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
