// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// candidates finds where something may begin, without looking at the rest.
type candidates struct {
	s     string
	table *TokenTable
	at    [len(beginnings)]int // of each, where it stands next
	wide  int                  // the next opener that is not ASCII
	scan  bool                 // there may be one
}

// beginnings are the bytes that can begin something.
const beginnings = "\n<[#&"

func newCandidates(s string, m *matcher) candidates {
	c := candidates{s: s, table: m.table, scan: m.seen&(ucd.Opener|ucd.NonStarter) != 0, wide: -1}
	for k := range c.at {
		c.at[k] = c.index(beginnings[k], 0)
	}
	return c
}

// index returns where x stands next and is promising, len(s) if nowhere.
func (c *candidates) index(x byte, from int) int {
	for {
		n := strings.IndexByte(c.s[from:], x)
		if n < 0 {
			return len(c.s)
		}
		if from += n; c.promising(from) {
			return from
		}
		from++
	}
}

// next returns the first candidate at or after i, len(s) if not found.
func (c *candidates) next(i int) int {
	first := len(c.s)
	for k := range c.at {
		if c.at[k] < i {
			c.at[k] = c.index(beginnings[k], i)
		}
		first = min(first, c.at[k])
	}
	if c.scan {
		first = min(first, c.nextWide(i))
	}
	return first
}

// promising rules out most of what begins no token, by what stands behind it.
func (c *candidates) promising(at int) bool {
	if at+1 == len(c.s) {
		return c.s[at] == '\n'
	}
	if c.s[at] == '\n' {
		return c.table.mayBeRole(c.s, skipBlanks(c.s, at+1))
	}
	b := c.s[at+1]
	if b >= 0x80 || b == '&' || b == '\n' || b == '\r' {
		return true
	}
	switch c.s[at] {
	case '<':
		return b == '|' || b == '<' || b == '[' || b == '#' || (letter(b) || b == '/') && c.table.mayBeAngle(c.s[at+1:])
	case '[':
		return b == '|' || b == '<' || b == '[' || b == '#' || (letter(b) || b == '/') && c.table.mayBeBracket(c.s[at+1:])
	case '#':
		return b == '#' || b == '<' || b == '['
	case '&':
		r, w := reference(c.s[at:])
		if w == 0 {
			r, w = bareAngle(c.s[at:])
		}
		return w > 0 && r != '&'
	}
	return true
}

// mayBeAngle reports whether what stands behind "<" may be a token, or become one
// once another within it is removed. It rules out a plain name that no token has.
func (t *TokenTable) mayBeAngle(s string) bool {
	n := nameLength(s)
	if n == len(s) {
		return false
	}
	switch s[n] {
	case '>':
		return t.angles.has(s, n)
	case '=':
		return t.prefixes.has(s, n+1)
	case ' ', '\t':
		return t.partials.has(s, n)
	}
	return goesOn(s[n])
}

// mayBeBracket is mayBeAngle for "[".
func (t *TokenTable) mayBeBracket(s string) bool {
	n := nameLength(s)
	if n == len(s) {
		return false
	}
	if s[n] == ']' {
		return t.brackets.has(s, n)
	}
	return goesOn(s[n])
}

func nameLength(s string) int {
	n := 0
	for n < len(s) && nameChar(s[n]) {
		n++
	}
	return n
}

// goesOn reports whether b, which is in no plain name, can stand within a token,
// or begin another within it.
func goesOn(b byte) bool {
	return b >= utf8.RuneSelf || strings.IndexByte("|:<[#&\r\n", b) >= 0
}

// A nameSet holds the lengths of names by their first letter, in the view: bit n is set
// where a name of n bytes begins with it, bit 63 where a longer one does too.
type nameSet [256]uint64

// initial returns the index of names that begin as s does. Those of closing tags stand apart.
func initial(s string) byte {
	if s[0] == '/' && len(s) > 1 {
		return fold[s[1]&0x7f] | 0x80
	}
	return fold[s[0]&0x7f]
}

// add adds the key of a name; with longer, also every longer key that begins so.
func (x *nameSet) add(key string, longer bool) {
	lengths := uint64(1) << min(len(key), 63)
	if longer {
		lengths = -lengths
	}
	for c := range x {
		if key == "" || key == "/" || initial(key) == byte(c) {
			x[c] |= lengths
		}
	}
}

// has reports whether the set may hold the ASCII name s[:n].
func (x *nameSet) has(s string, n int) bool { return x[initial(s)]>>min(n, 63)&1 != 0 }

func (c *candidates) nextWide(i int) int {
	for c.wide < i {
		at, p, w := ucd.Scan(c.s, i, ucd.Opener)
		if p&ucd.Opener != 0 && c.s[at] >= 0x80 {
			c.wide = at
			break
		}
		if at == len(c.s) {
			c.wide = at
			break
		}
		i = at + w
	}
	return c.wide
}

func skipBlanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}
