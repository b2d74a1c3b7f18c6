// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"math"
	"strconv"
)

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
	if i-start > maxNumber {
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
	f, err := strconv.ParseFloat(string(num), 64)
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
