// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// EncodedTokens returns how many control tokens s holds behind percent escapes
// (%3C) or the escapes of JSON and of source code (\u003c, \x3c), one level deep.
// No profile removes them: they are visible text that no tokenizer decodes, and a
// URL's query is honestly full of them. It is for reports. spec: scrub/4.6
func EncodedTokens(s string) int {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '\\') < 0 {
		return 0
	}
	decoded := unescape(s)
	m := matcher{table: Builtin(), buf: new(ucd.Buffer), seen: surveyed, all: true}
	m.find(s)
	plain := m.count
	m.find(decoded)
	return max(0, m.count-plain)
}

// unescape decodes what can be decoded; the rest stays.
func unescape(s string) string {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		r, n := escape1(s[i:])
		if n == 0 {
			b = append(b, s[i])
			i++
			continue
		}
		if s[i] == '%' || r < utf8.RuneSelf {
			b = append(b, byte(r)) // bytes of UTF-8 are escaped one by one
		} else {
			b = utf8.AppendRune(b, r)
		}
		i += n
	}
	return string(b)
}

// escape1 returns what the escape at the start of s stands for, and its length; 0
// if not found.
func escape1(s string) (r rune, n int) {
	skip, digits := 0, 0
	switch {
	case s[0] == '%':
		skip, digits = 1, 2
	case strings.HasPrefix(s, `\u`):
		skip, digits = 2, 4
	case strings.HasPrefix(s, `\x`):
		skip, digits = 2, 2
	default:
		return 0, 0
	}
	if len(s) < skip+digits {
		return 0, 0
	}
	for _, c := range []byte(s[skip : skip+digits]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, 0
		}
	}
	return r, skip + digits
}
