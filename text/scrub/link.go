// SPDX-License-Identifier: Apache-2.0

package scrub

import "strings"

// A bracket is a "[" that may begin a link.
type bracket struct {
	at        int
	image     bool // "!" stands before it
	lineStart bool // at most three spaces before it on its line
}

// links finds links, images and reference definitions, the innermost first. The
// destination is read on like any text, so a link within it is found as well.
func (m *markup) links(s string) {
	m.brackets, m.ahead = m.brackets[:0], [3]int{}
	for i := strings.IndexByte(s, '['); i >= 0 && i < len(s); {
		n := strings.IndexAny(s[i:], "[]")
		if n < 0 {
			return
		}
		if i += n; s[i] == '[' {
			m.brackets = append(m.brackets, bracket{i, i > 0 && s[i-1] == '!', definitionStart(s, i)})
			i++
			continue
		}
		i++
		if len(m.brackets) == 0 {
			continue
		}
		b := m.brackets[len(m.brackets)-1]
		m.brackets = m.brackets[:len(m.brackets)-1]
		switch {
		case i < len(s) && s[i] == '(':
			m.link(s, b, i)
		case i < len(s) && s[i] == ':' && b.lineStart && i-b.at > 2:
			m.definition(s, b, i)
		}
	}
}

// definitionStart reports whether s[at] can begin a reference definition.
func definitionStart(s string, at int) bool {
	from := at
	for from > 0 && at-from < 4 && s[from-1] == ' ' {
		from--
	}
	return at-from < 4 && (from == 0 || s[from-1] == '\n')
}

// link takes [text](destination "title"), whose "(" is s[i].
func (m *markup) link(s string, b bracket, i int) {
	dest, end := destination(s, skipSpace(s, i+1))
	if end < 0 {
		return
	}
	closing := m.titleEnd(s, end)
	if closing < 0 {
		return
	}
	m.opening(b)
	joint := linkJoint
	if dest == end {
		joint = ""
	}
	m.cut(i-1, dest, joint, MarkupLink)
	m.cut(end, closing, "", MarkupLink)
}

// definition takes [label]: destination, whose ":" is s[i].
func (m *markup) definition(s string, b bracket, i int) {
	dest := skipSpace(s, i+1)
	if dest == len(s) || s[dest] == '\n' {
		return
	}
	m.opening(b)
	m.cut(i-1, dest, linkJoint, MarkupLink)
}

func (m *markup) opening(b bracket) {
	if b.image {
		m.cut(b.at-1, b.at+1, "", MarkupLink)
	} else {
		m.cut(b.at, b.at+1, "", MarkupLink)
	}
}

// skipSpace skips blanks and one line break.
func skipSpace(s string, i int) int {
	lines := 0
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' && lines == 0) {
		if s[i] == '\n' {
			lines++
		}
		i++
	}
	return i
}

// maxParens is how deep parentheses nest in a destination. It bounds what the
// failing links of "[a](" x n cost together.
const maxParens = 8

// destination returns the bytes of the destination that begins at s[i]; end is
// -1 if not found.
func destination(s string, i int) (start, end int) {
	depth := 0
	for n := i; n < len(s); n++ {
		switch c := s[n]; {
		case c == '(':
			if depth++; depth > maxParens {
				return 0, -1
			}
		case c == ')':
			if depth == 0 {
				return i, n
			}
			depth--
		case c <= ' ':
			if depth == 0 {
				return i, n
			}
			return 0, -1
		}
	}
	return 0, -1
}

// titleEnd returns the end of the link whose destination ends at s[i]: behind the
// ")", and before it behind a title; -1 if not found.
func (m *markup) titleEnd(s string, i int) int {
	n := skipSpace(s, i)
	if n > i && n < len(s) && s[n] != ')' {
		kind := strings.IndexByte("\"'(", s[n])
		if kind < 0 {
			return -1
		}
		closing := m.next(s, n+1, kind)
		if closing == len(s) {
			return -1
		}
		n = skipSpace(s, closing+1)
	}
	if n < len(s) && s[n] == ')' {
		return n + 1
	}
	return -1
}

// next returns the index of the first quote of that kind in s[i:], len(s) if
// not found. It keeps the result, since many links may look for the same quote far ahead.
func (m *markup) next(s string, i, kind int) int {
	if m.ahead[kind] < i {
		n := strings.IndexByte(s[i:], "\"')"[kind])
		if n < 0 {
			n = len(s) - i
		}
		m.ahead[kind] = i + n
	}
	return m.ahead[kind]
}
