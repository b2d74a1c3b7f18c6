// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"cmp"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A Score is a weight, a reputation, a trust or a share from 0 to 1, in
// millionths. The arithmetic on it is exact: no result depends on the order of a
// sum or on the machine. The zero Score is 0, the strict choice.
type Score uint32

// One is the greatest Score.
const One Score = 1_000_000

const scoreDigits = 6

// maxNumeral is the longest spelling that parseScore reads, in bytes.
const maxNumeral = 64

// parseScore reads a number as JSON spells it, from 0 to 1. The error is a code:
// malformed, outOfRange, or tooPrecise for a number that is no whole count of
// millionths; nothing is rounded.
func parseScore(s string) (Score, error) {
	digits, point, err := decimal(s)
	if err != nil {
		return 0, err
	}
	switch {
	case digits == "":
		return 0, nil
	case point > 1 || point == 1 && digits != "1": // no zero leads, so it is more than 1
		return 0, outOfRange
	case len(digits)-point > scoreDigits:
		return 0, tooPrecise
	}
	var n Score
	for i := range len(digits) {
		n = n*10 + Score(digits[i]-'0')
	}
	for range scoreDigits - (len(digits) - point) {
		n *= 10
	}
	return n, nil
}

// decimal takes a JSON number apart: it is 0.digits × 10^point, digits without
// zeros at either end. A negative number is out of range.
func decimal(s string) (digits string, point int, err error) {
	if len(s) > maxNumeral {
		return "", 0, tooLong
	}
	mantissa, exponent := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exponent = s[:i], s[i+1:]
		if point, err = exponentOf(exponent); err != nil {
			return "", 0, err
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if !allDigits(whole) || len(whole) > 1 && whole[0] == '0' || hasPoint && !allDigits(fraction) {
		return "", 0, malformed
	}
	if negative {
		return "", 0, outOfRange
	}
	digits = whole + fraction
	significant := strings.TrimLeft(digits, "0")
	point += len(whole) - (len(digits) - len(significant))
	return strings.TrimRight(significant, "0"), point, nil
}

func exponentOf(s string) (int, error) {
	unsigned := s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		unsigned = s[1:]
	}
	if !allDigits(unsigned) {
		return 0, malformed
	}
	if n, err := strconv.Atoi(s); err == nil && -1e6 < n && n < 1e6 {
		return n, nil
	}
	// Beyond any number that a score or a float64 can be.
	if s[0] == '-' {
		return -1e6, nil
	}
	return 1e6, nil
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// String is the shortest decimal spelling, such as "0.75".
func (s Score) String() string { return fixed(big.NewInt(int64(s)), scoreDigits) }

// MarshalJSON writes the score as a JSON number.
func (s Score) MarshalJSON() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalJSON reads a JSON number as parseScore does.
func (s *Score) UnmarshalJSON(b []byte) error {
	v, err := parseScore(string(b))
	if err == nil {
		*s = v
	}
	return err
}

// A Weight is what a vote, or all votes for a verdict, weigh: a product of four
// Scores, or a sum of such, exact. It has room for 3.4 × 10^14 votes of full
// weight, which is more than memory holds.
type Weight struct{ hi, lo uint64 } // in units of 10^-24

const weightDigits = 4 * scoreDigits

func product(a, b, c, d Score) Weight {
	hi, lo := bits.Mul64(uint64(a)*uint64(b), uint64(c)*uint64(d))
	return Weight{hi, lo}
}

func (w Weight) plus(v Weight) Weight {
	lo, carry := bits.Add64(w.lo, v.lo, 0)
	hi, _ := bits.Add64(w.hi, v.hi, carry)
	return Weight{hi, lo}
}

// times is w × s in units of 10^-30, the most significant word first.
func (w Weight) times(s Score) [3]uint64 {
	carry, lo := bits.Mul64(w.lo, uint64(s))
	top, hi := bits.Mul64(w.hi, uint64(s))
	hi, carry = bits.Add64(hi, carry, 0)
	return [3]uint64{top + carry, hi, lo}
}

// Compare returns -1, 0 or +1 as w is less than, equal to or greater than v.
func (w Weight) Compare(v Weight) int {
	return cmp.Or(cmp.Compare(w.hi, v.hi), cmp.Compare(w.lo, v.lo))
}

// IsZero reports whether w is 0.
func (w Weight) IsZero() bool { return w == Weight{} }

// exceeds reports whether w is more than the share s of total.
func (w Weight) exceeds(s Score, total Weight) bool {
	mine, bar := w.times(One), total.times(s)
	return slices.Compare(mine[:], bar[:]) > 0
}

// String is the exact decimal spelling, such as "0.72".
func (w Weight) String() string {
	n := new(big.Int).SetUint64(w.hi)
	n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(w.lo))
	return fixed(n, weightDigits)
}

// MarshalText writes the weight as String does: a JSON string, since a number
// of so many digits does not survive every reader.
func (w Weight) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// fixed spells n × 10^-digits.
func fixed(n *big.Int, digits int) string {
	s := n.String()
	if pad := digits + 1 - len(s); pad > 0 {
		s = strings.Repeat("0", pad) + s
	}
	at := len(s) - digits
	return strings.TrimSuffix(strings.TrimRight(s[:at]+"."+s[at:], "0"), ".")
}
