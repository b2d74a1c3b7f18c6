// SPDX-License-Identifier: Apache-2.0

package strictjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendQuote appends s as a JSON string with the fewest and shortest escapes
// that RFC 8259 allows, which are also those of RFC 8785. s should be UTF-8;
// every byte that is not becomes U+FFFD, so that the result always is.
func AppendQuote(dst []byte, s string) []byte {
	return append(appendInside(append(dst, '"'), s), '"')
}

// AppendStrings appends list as a JSON array of strings, each as AppendQuote spells it.
func AppendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuote(dst, s)
	}
	return append(dst, ']')
}

// appendInside appends what AppendQuote puts between the quotes.
func appendInside(dst []byte, s string) []byte {
	src := []byte(s) // the compiler copies nothing: TestQuoteAllocates
	for i := 0; i < len(src); {
		end, seen := plainRun(src, i)
		if seen&highs == 0 || utf8.Valid(src[i:end]) {
			dst = append(dst, src[i:end]...)
		} else {
			dst = appendRepaired(dst, src[i:end])
		}
		if i = end; i < len(src) {
			dst = appendEscape(dst, src[i])
			i++
		}
	}
	return dst
}

func appendRepaired(dst, src []byte) []byte {
	for len(src) > 0 {
		r, n := utf8.DecodeRune(src)
		dst = utf8.AppendRune(dst, r)
		src = src[n:]
	}
	return dst
}

// appendEscape appends the escape of a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
