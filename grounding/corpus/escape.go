// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxFile  = 16 << 10 // bytes of a file
	maxText  = 1 << 20  // bytes of what an escaped text stands for
	maxTimes = 100_000
)

// unescape returns what s stands for, and why it stands for nothing.
func unescape(s string) (text, why string) {
	u := unescaper{s: s}
	for u.i < len(s) && u.why == "" {
		u.next(true)
	}
	return u.out.String(), u.why
}

type unescaper struct {
	s   string
	i   int
	out strings.Builder
	why string
}

// next takes one character or escape. rep: \rep is allowed.
func (u *unescaper) next(rep bool) {
	rest := u.s[u.i:]
	switch {
	case rest[0] < ' ' || rest[0] > '~':
		u.why = "not printable ASCII"
	case rest[0] != '\\':
		u.take(1, rest[:1])
	case strings.HasPrefix(rest, `\\`):
		u.take(2, `\`)
	case strings.HasPrefix(rest, `\n`):
		u.take(2, "\n")
	case strings.HasPrefix(rest, `\t`):
		u.take(2, "\t")
	case strings.HasPrefix(rest, `\u{`):
		u.codePoint(rest[len(`\u{`):])
	case strings.HasPrefix(rest, `\x`):
		u.escapedByte(rest[len(`\x`):])
	case rep && strings.HasPrefix(rest, `\rep{`):
		u.repeat()
	default:
		u.why = "no such escape"
	}
}

func (u *unescaper) take(n int, text string) {
	u.i += n
	if u.out.Len()+len(text) > maxText {
		u.why = "stands for more than 1 MiB"
		return
	}
	u.out.WriteString(text)
}

func (u *unescaper) codePoint(rest string) {
	hex, _, ok := strings.Cut(rest, "}")
	n, err := strconv.ParseUint(hex, 16, 21)
	r := rune(n)
	switch {
	case !ok || err != nil || hex != strconv.FormatUint(n, 16):
		u.why = `\u{HEX} is not in its one spelling`
	case !utf8.ValidRune(r):
		u.why = "not a Unicode scalar value"
	case r == '\n' || r == '\t' || '!' <= r && r <= '~':
		u.why = `\u{HEX} for what is written otherwise`
	case r == ' ' && u.i+len(`\u{20}`) != len(u.s):
		u.why = `\u{20} within a line`
	default:
		u.take(len(`\u{}`)+len(hex), string(r))
	}
}

func (u *unescaper) escapedByte(rest string) {
	if len(rest) < 2 || strings.ToLower(rest[:2]) != rest[:2] {
		u.why = `\xHH is not in its one spelling`
		return
	}
	n, err := strconv.ParseUint(rest[:2], 16, 8)
	if err != nil || n < 0x80 {
		u.why = `\xHH is not a byte from 80 to ff`
		return
	}
	u.take(len(`\xHH`), string([]byte{byte(n)}))
}

// repeat takes \rep{N}{UNIT}.
func (u *unescaper) repeat() {
	head, rest, ok := strings.Cut(u.s[u.i+len(`\rep{`):], "}{")
	n, err := strconv.Atoi(head)
	if !ok || err != nil || n < 2 || n > maxTimes || strconv.Itoa(n) != head {
		u.why = `\rep needs a number from 2 to 100000`
		return
	}
	unit := unescaper{s: rest}
	for unit.i < len(rest) && rest[unit.i] != '}' && unit.why == "" {
		unit.next(false)
	}
	switch {
	case unit.why != "":
		u.why = unit.why
	case unit.i >= len(rest) || unit.i == 0:
		u.why = `\rep has no unit`
	case u.out.Len()+n*unit.out.Len() > maxText:
		u.why = "stands for more than 1 MiB"
	default:
		u.i = len(u.s) - len(rest) + unit.i + 1
		u.out.WriteString(strings.Repeat(unit.out.String(), n))
	}
}
