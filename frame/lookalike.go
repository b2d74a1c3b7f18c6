package frame

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/internal/ucd"
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

// next returns where the first look-alike at or behind from begins, and how
// many octets its opening angle has: 0 if there is none.
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
	var buf [32]byte
	n := 0
	for i := 0; i < len(s); {
		folded, w := buf[:0], 1
		if s[i] < utf8.RuneSelf {
			folded = foldASCII(folded, s[i]) // '<' is in no name
		} else {
			if angle(b, s[i:]) > 0 {
				return false
			}
			_, w = ucd.Peek(s, i)
			folded = fold(folded, b, s[i:i+w])
		}
		for _, c := range folded {
			switch {
			case n == 0 && c == '/':
			case c != t[n]:
				return false
			default:
				if n++; n == len(t) {
					return true
				}
			}
		}
		i += w
	}
	return false
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
	if r, _, _ := ucd.Decode(s); len(ucd.Prototype(r)) > 0 && ucd.Prototype(r)[0] == '<' {
		return w
	}
	var buf [32]byte
	if f := fold(buf[:0], b, s[:w]); len(f) > 0 && f[0] == '<' {
		return w
	}
	return 0
}
