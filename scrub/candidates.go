package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/ucd"
)

// candidates finds where something may begin, without looking at the rest.
type candidates struct {
	s     string
	octet [maxCandidates]byte
	at    [maxCandidates]int
	n     int
	wide  int  // the next opener that is not ASCII
	scan  bool // there may be one
}

// maxCandidates is the number of bytes that can begin something.
const maxCandidates = 5

func newCandidates(s string, m *matcher) candidates {
	c := candidates{s: s, scan: m.opener, wide: -1}
	for _, x := range []byte("\n<[#&") {
		if x != '&' || m.references {
			c.octet[c.n] = x
			c.at[c.n] = c.index(x, 0)
			c.n++
		}
	}
	return c
}

func (c *candidates) index(x byte, from int) int {
	if n := strings.IndexByte(c.s[from:], x); n >= 0 {
		return from + n
	}
	return len(c.s)
}

// next returns the first candidate at or after i, len(s) if there is none.
func (c *candidates) next(i int) int {
	for {
		first := len(c.s)
		for k := range c.n {
			if c.at[k] < i {
				c.at[k] = c.index(c.octet[k], i)
			}
			first = min(first, c.at[k])
		}
		if c.scan {
			first = min(first, c.nextWide(i))
		}
		if first == len(c.s) || c.promising(first) {
			return first
		}
		i = first + 1
	}
}

// promising rules out most of what begins no token, by the octet behind it.
func (c *candidates) promising(at int) bool {
	if at+1 == len(c.s) {
		return c.s[at] == '\n'
	}
	b := c.s[at+1]
	if b >= 0x80 || b == '&' || b == '\n' || b == '\r' {
		return true
	}
	switch c.s[at] {
	case '<':
		return letter(b) || b == '|' || b == '/' || b == '<' || b == '[' || b == '#'
	case '[':
		return letter(b) || b == '/' || b == '<' || b == '[' || b == '#' || b == '|'
	case '#':
		return b == '#' || b == '<' || b == '['
	case '&':
		return letter(b) || b == '#'
	}
	return true
}

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
