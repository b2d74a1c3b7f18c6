// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"slices"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// unlike is what a character folds to that resembles nothing in a tag.
const unlike = 0

// maxReadings bounds the readings of one character. Unicode 15.0 needs four; a
// test walks all of it.
const maxReadings = 8

// readings returns every text that a reader may take the one character s for: it
// is seen through NFKC and its UTS #39 skeleton, in any order and until nothing
// changes, since one can hide what the other shows: U+03F2 has the skeleton "c",
// and NFKC makes U+03C2 of it, which has none. Each is folded: case, whatever is
// hidden or blank, a mark on a letter, and a dash or line between words do not
// count. b is scratch.
func readings(b *ucd.Buffer, s string) (out []string) {
	if len(s) == 1 {
		return []string{string(foldASCII(nil, s[0]))}
	}
	if p, _ := ucd.Peek(s, 0); p&(ucd.Hidden|ucd.Mark) != 0 {
		return []string{""}
	}
	forms := append(make([]string, 0, maxReadings), s)
	for i := 0; i < len(forms); i++ {
		for _, next := range []string{ucd.NFKC.String(forms[i]), string(b.AppendSkeleton(nil, forms[i]))} {
			if len(forms) < maxReadings && !slices.Contains(forms, next) {
				forms = append(forms, next)
			}
		}
		if folded := foldText(forms[i]); !slices.Contains(out, folded) {
			out = append(out, folded)
		}
	}
	return out
}

// foldText folds what one character was taken for.
func foldText(s string) string {
	var dst []byte
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			dst = foldASCII(dst, s[i])
			i++
			continue
		}
		p, w := ucd.Peek(s, i)
		if p&(ucd.Hidden|ucd.Mark) == 0 {
			dst = append(dst, unlike)
		}
		i += w
	}
	return string(dst)
}

// foldASCII appends the reading of one byte. Of the ASCII characters that have an ASCII
// look-alike, i stands for I, l, 1 and |, which also makes upper and lower case
// one; a byte that is not ASCII is ill-formed.
func foldASCII(dst []byte, c byte) []byte {
	switch {
	case c >= 0x80:
		return append(dst, unlike)
	case c <= ' ', c == 0x7F, c == '-', c == '_':
		return dst
	case c == '1', c == '|', c|0x20 == 'l', c|0x20 == 'i':
		return append(dst, 'i')
	case c == '0':
		return append(dst, 'o')
	case c|0x20 == 'm':
		return append(dst, 'r', 'n')
	case c == '\\':
		return append(dst, '/')
	case 'A' <= c && c <= 'Z':
		return append(dst, c|0x20)
	}
	return append(dst, c)
}
