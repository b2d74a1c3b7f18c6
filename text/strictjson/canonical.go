// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical appends the form of RFC 8785 (JCS) to dst. Beyond what Reset refuses
// it refuses a number that JCS would silently fold into another one: an integer
// beyond 2^53 spelled as such, and any number beyond 2^53 whose canonical form is
// not the same number. Lone surrogates are refused whatever lim says. The error
// is a *SyntaxError; dst is returned unchanged then.
func Canonical(dst, src []byte, lim Limits) ([]byte, error) {
	lim.MendSurrogates = false
	var d Doc
	if err := d.Reset(src, lim); err != nil {
		return dst, err
	}
	c := canonicalizer{dst: dst}
	if err := c.value(d.Root()); err != nil {
		return dst, err
	}
	return c.dst, nil
}

type canonicalizer struct {
	dst     []byte
	members []member // of the objects that are being emitted, the innermost last
}

type member struct {
	name string
	val  Value
}

func (c *canonicalizer) value(v Value) error {
	switch v.Kind() {
	case '{':
		return c.object(v)
	case '[':
		return c.array(v)
	case '"':
		c.dst = AppendQuote(c.dst, v.Text())
	case '0':
		return c.number(v)
	default:
		c.dst = append(c.dst, v.Raw()...)
	}
	return nil
}

func (c *canonicalizer) array(v Value) error {
	c.dst = append(c.dst, '[')
	first := true
	for e := range v.Elements() {
		if !first {
			c.dst = append(c.dst, ',')
		}
		first = false
		if err := c.value(e); err != nil {
			return err
		}
	}
	c.dst = append(c.dst, ']')
	return nil
}

func (c *canonicalizer) object(v Value) error {
	base := len(c.members)
	for name, val := range v.Members() {
		c.members = append(c.members, member{name.Text(), val})
	}
	slices.SortFunc(c.members[base:], func(a, b member) int { return compareUTF16(a.name, b.name) })
	end := len(c.members)
	c.dst = append(c.dst, '{')
	for i := base; i < end; i++ {
		if i > base {
			c.dst = append(c.dst, ',')
		}
		m := c.members[i]
		c.dst = append(AppendQuote(c.dst, m.name), ':')
		if err := c.value(m.val); err != nil {
			return err
		}
	}
	c.dst = append(c.dst, '}')
	c.members = c.members[:base]
	return nil
}

// compareUTF16 compares by UTF-16 code units, the order of RFC 8785, section
// 3.2.3: that of the code points, but for U+E000 to U+FFFF, which come behind
// the surrogates of all that follow them.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	for !utf8.RuneStart(a[i]) {
		i-- // what comes before is equal, so this is the start in b too
	}
	x, _ := utf8.DecodeRuneInString(a[i:])
	y, _ := utf8.DecodeRuneInString(b[i:])
	rank := func(r rune) int {
		if 0xe000 <= r && r <= 0xffff {
			return int(r) + utf8.MaxRune
		}
		return int(r)
	}
	return rank(x) - rank(y)
}

func (c *canonicalizer) number(v Value) error {
	const safe = 1 << 53
	raw := v.Raw()
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return &SyntaxError{CodeNumberRange, v.Offset()} // the scan has seen to that
	}
	start := len(c.dst)
	if f == 0 {
		c.dst = append(c.dst, '0') // nor is there a -0: RFC 8785, section 3.2.2.3
	} else {
		c.dst = jsontext.AppendFloat(c.dst, f, 64)
	}
	if math.Abs(f) < safe {
		return nil
	}
	spelledInteger := !bytes.ContainsAny(raw, ".eE")
	if spelledInteger && math.Abs(f) > safe || !sameNumber(raw, c.dst[start:]) {
		return &SyntaxError{CodeUnsafeInteger, v.Offset()}
	}
	return nil
}

// sameNumber reports whether two JSON numbers of the same sign, neither of them
// 0 or longer than maxNumber, denote the same number.
func sameNumber(a, b []byte) bool {
	var bufA, bufB [maxNumber]byte
	digitsA, expA := decimal(bufA[:0], a)
	digitsB, expB := decimal(bufB[:0], b)
	return expA == expB && bytes.Equal(digitsA, digitsB)
}

// decimal appends the significant digits of num to digits: num is
// ±0.digits × 10^exp.
func decimal(digits, num []byte) (_ []byte, exp int) {
	mantissa := bytes.TrimPrefix(num, []byte("-"))
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		exp, _ = strconv.Atoi(string(mantissa[i+1:])) // in the range of a float64, so it fits
		mantissa = mantissa[:i]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte("."))
	digits = append(append(digits, whole...), fraction...)
	exp += len(whole)
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
		exp--
	}
	return bytes.TrimRight(digits, "0"), exp
}
