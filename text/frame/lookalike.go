// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A tag is the name of a tag that must not be closed, or seem to be opened, by
// the text inside it, as a reader sees it: see fold.
type tag string

// fenceTag is what the name of every fence begins with.
var fenceTag = newTag(tagName)

func newTag(name string) tag {
	var b []byte
	for i := range len(name) {
		b = foldASCII(b, name[i])
	}
	return tag(b)
}

// appendNeutral appends s with the opening angle of every look-alike of a tag
// of tags written as &lt; and returns how many there were. What it appends holds
// none. It is linear in s.
func appendNeutral(dst []byte, s string, tags ...tag) ([]byte, int) {
	n, done := 0, 0
	for at, w := next(s, 0, tags...); w > 0; at, w = next(s, done, tags...) {
		dst = append(dst, s[done:at]...)
		dst = append(dst, "&lt;"...)
		done = at + w
		n++
	}
	return append(dst, s[done:]...), n
}

// holds reports whether s holds a look-alike. Where s is narrow (scrub.Clean.Narrow), no
// character but "<" can be its angle, and the others are not looked at.
func holds(s string, narrow bool, tags ...tag) bool {
	if !narrow {
		_, w := next(s, 0, tags...)
		return w > 0
	}
	var b ucd.Buffer
	for {
		n := strings.IndexByte(s, '<')
		if n < 0 {
			return false
		}
		if s = s[n+1:]; begins(&b, s, tags) {
			return true
		}
	}
}

// next returns where the first look-alike at or behind from begins, and how
// many bytes its opening angle has: 0 if not found.
func next(s string, from int, tags ...tag) (at, width int) {
	var b ucd.Buffer
	for from < len(s) {
		// Up to the next plain angle, only some other character may look like one.
		plain := len(s)
		if n := strings.IndexByte(s[from:], '<'); n >= 0 {
			plain = from + n
		}
		for from < plain {
			at, p, w := ucd.Scan(s[:plain], from, ucd.Opener)
			from = at + w
			if w == 0 {
				break
			}
			if p&ucd.Opener != 0 && angle(&b, s[at:]) > 0 && begins(&b, s[from:], tags) {
				return at, w
			}
		}
		if plain < len(s) && begins(&b, s[plain+1:], tags) {
			return plain, 1
		}
		from = plain + 1
	}
	return len(s), 0
}

func begins(b *ucd.Buffer, s string, tags []tag) bool {
	for _, t := range tags {
		if t.begins(b, s) {
			return true
		}
	}
	return false
}

// begins reports whether s, behind an opening angle, begins with slashes and
// t's name as a reader sees them. It stops at the next opening angle, so that
// all calls together are linear.
func (t tag) begins(b *ucd.Buffer, s string) bool {
	var buf [4]byte
	for i, n := 0, 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return t.goesOn(b, s[i:], n)
		}
		if n = t.read(n, string(foldASCII(buf[:0], s[i]))); n < 0 { // '<' is in no name
			return false
		}
		if n == len(t) {
			return true
		}
	}
	return false
}

// goesOn is begins where n bytes of the name have been read.
func (t tag) goesOn(b *ucd.Buffer, s string, n int) bool {
	m := matches{at: []int{n}}
	var buf [4]byte
	for i := 0; i < len(s) && len(m.at) > 0; {
		w := 1
		if s[i] < utf8.RuneSelf {
			m.take(t, foldASCII(buf[:0], s[i]))
		} else {
			if angle(b, s[i:]) > 0 {
				return false
			}
			_, w = ucd.Peek(s, i)
			m.takeAny(t, readings(b, s[i:i+w]))
		}
		if m.whole {
			return true
		}
		i += w
	}
	return false
}

// matches are how much of a tag's name may have been read: several lengths, where
// a character has several readings.
type matches struct {
	at    []int
	whole bool
}

// take reads folded, the only reading of a character.
func (m *matches) take(t tag, folded []byte) {
	kept := m.at[:0]
	for _, n := range m.at {
		if n = t.read(n, string(folded)); n == len(t) {
			m.whole = true
		}
		if n >= 0 {
			kept = append(kept, n)
		}
	}
	m.at = kept
}

// takeAny reads a character that has several readings.
func (m *matches) takeAny(t tag, all []string) {
	var next []int
	for _, n := range m.at {
		for _, folded := range all {
			to := t.read(n, folded)
			m.whole = m.whole || to == len(t)
			if to >= 0 && !slices.Contains(next, to) {
				next = append(next, to)
			}
		}
	}
	m.at = next
}

// read returns how much of t is read when folded follows its first n bytes, -1 if
// folded does not go on with it.
func (t tag) read(n int, folded string) int {
	for i := range len(folded) {
		switch {
		case n == len(t):
			return n
		case n == 0 && folded[i] == '/':
		case folded[i] != t[n]:
			return -1
		default:
			n++
		}
	}
	return n
}

// angle returns the width of the character that s begins with if a reader sees
// it begin with an opening angle, else 0.
func angle(b *ucd.Buffer, s string) int {
	if s[0] < utf8.RuneSelf {
		if s[0] == '<' {
			return 1
		}
		return 0
	}
	p, w := ucd.Peek(s, 0)
	if p&ucd.Opener == 0 {
		return 0
	}
	for _, r := range readings(b, s[:w]) {
		if strings.HasPrefix(r, "<") {
			return w
		}
	}
	return 0
}
