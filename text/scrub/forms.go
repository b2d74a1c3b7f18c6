// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"
)

// Defusing puts look-alikes that no tokenizer reads in the place of what delimits a token,
// and Restore takes them back. Both read the same forms, of which each has a level, whatever
// stands around them: docs/spec/scrub.md, 4.8, has the algebra.

// A pair is a pair of delimiters, and the two pairs of look-alikes that stand for it.
type pair struct {
	opens, closes byte
	open, shut    string // of a token spelled plainly
	open2, shut2  string // … that stands within such look-alikes already
}

var (
	anglePair  = pair{'<', '>', "\u27e8", "\u27e9", "\u27ea", "\u27eb"}
	squarePair = pair{'[', ']', "\u27e6", "\u27e7", "\u27ec", "\u27ed"}
)

const (
	lookalikeLen  = 3          // bytes of each of them
	lookalikeHead = "\xe2\x9f" // the bytes with which each of them begins
	defuseMark    = "\u2982"   // stands before the last character of a token without brackets
)

// holdsForm reports whether s holds a character that defusing uses.
func holdsForm(s string) bool {
	for i := strings.IndexByte(s, lookalikeHead[0]); i >= 0 && i+2 < len(s); i = next(s, lookalikeHead[0], i, i+1) {
		if s[i+1] == lookalikeHead[1] && 0xa6 <= s[i+2] && s[i+2] <= 0xad || s[i:i+3] == defuseMark {
			return true
		}
	}
	return false
}

// A core is the part of a token between its delimiters.
type core struct {
	from, to int
	open     bool // only what opens it delimits it: <function=
	width    int  // how many delimiters stand on either side: 2 of <<SYS>>
}

// A form is a core and the look-alikes around it.
type form struct {
	core
	pair          *pair
	outer, outer2 int // look-alikes of the first pair on the left and on the right
	inner, inner2 int // … of the second, next to the core
	plain         bool
}

// levels returns the number of pairs of a run of look-alikes on the left and one on the right.
func (c *core) levels(left, right int) int {
	if c.open {
		return left
	}
	return min(left, right)
}

// left and right return where the form's delimiters next to the core begin and end, of which
// there are n.
func (f *form) left(n int) int { return f.from - n }
func (f *form) right(n int) int {
	if f.open {
		return f.to
	}
	return f.to + n
}

// plainForm returns the form of a token that begins at s[at] and is spelled with its very
// delimiters.
func (t *TokenTable) plainForm(s string, at int) (f form, ok bool) {
	f.plain = true
	switch s[at] {
	case '<':
		f.pair = &anglePair
	case '[':
		f.pair = &squarePair
	default:
		return f, false
	}
	if f.core, ok = t.coreAt(s, at+1, f.pair); !ok && strings.HasPrefix(s[at:], "<<") {
		if f.core, ok = t.doubleCore(s, at+2); ok && !strings.HasPrefix(s[f.to:], ">>") {
			return f, false
		}
	}
	if !ok || !f.open && (f.to >= len(s) || s[f.to] != f.pair.closes) {
		return f, false
	}
	for k := at; strings.HasSuffix(s[:k], f.pair.open); k -= lookalikeLen {
		f.outer++
	}
	f.outer2 = countRun(s, f.right(f.width), f.pair.shut)
	return f, true
}

// lookalikeForm returns the form that begins with the run of look-alikes at s[at], and where
// that run ends.
func (t *TokenTable) lookalikeForm(s string, at int) (f form, end int, ok bool) {
	switch s[at : at+lookalikeLen] {
	case anglePair.open, anglePair.open2:
		f.pair = &anglePair
	case squarePair.open, squarePair.open2:
		f.pair = &squarePair
	default:
		return f, at + len(lookalikeHead), false
	}
	f.outer = countRun(s, at, f.pair.open)
	end = at + f.outer*lookalikeLen
	f.inner = countRun(s, end, f.pair.open2)
	end += f.inner * lookalikeLen
	if f.core, ok = t.coreAt(s, end, f.pair); !ok && f.pair == &anglePair {
		f.core, ok = t.doubleCore(s, end)
	}
	if !ok || f.outer == 0 {
		return f, end, false
	}
	if !f.open {
		right := f.to
		if f.inner > 0 {
			f.inner2 = countRun(s, right, f.pair.shut2)
			right += f.inner2 * lookalikeLen
		}
		f.outer2 = countRun(s, right, f.pair.shut)
	}
	if f.inner > 0 {
		return f, end, f.levels(f.inner, f.inner2) >= f.width && f.levels(f.outer, f.outer2) > 0
	}
	return f, end, f.levels(f.outer, f.outer2) >= f.width
}

// countRun returns how often x stands at s[at:].
func countRun(s string, at int, x string) (n int) {
	for at < len(s) && strings.HasPrefix(s[at:], x) {
		at += len(x)
		n++
	}
	return n
}

// raise returns what the part of the text from start to end becomes one level up.
func (f *form) raise(s string) (start, end int, with string) {
	open, shut := f.pair.open, f.pair.shut
	switch {
	case f.plain:
		if f.levels(f.outer, f.outer2) > 0 {
			open, shut = f.pair.open2, f.pair.shut2
		}
		return f.around(s, f.width, open, shut, f.width)
	case f.inner > 0:
		open, shut = f.pair.open2, f.pair.shut2
	}
	return f.around(s, lookalikeLen, open, shut, 2)
}

// lower is the reverse. It reports false for a form that raise makes of no text.
func (f *form) lower(s string) (start, end int, with string, ok bool) {
	left, right := f.outer, f.outer2
	if f.inner > 0 {
		left, right = f.inner, f.inner2
	}
	switch n := f.levels(left, right); {
	case n > f.width:
		start, end, with = f.around(s, lookalikeLen, "", "", 0)
	case f.inner > 0 && !f.open && left != right:
		return 0, 0, "", false
	default:
		start, end, with = f.around(s, f.width*lookalikeLen, string(f.pair.opens), string(f.pair.closes), f.width)
	}
	return start, end, with, true
}

// around returns the core with n times open and shut in the place of the bytes next to it.
func (f *form) around(s string, bytes int, open, shut string, n int) (start, end int, with string) {
	start, end = f.left(bytes), f.right(bytes)
	with = strings.Repeat(open, n)
	if f.open {
		return start, f.from, with
	}
	return start, end, with + s[f.from:f.to] + strings.Repeat(shut, n)
}

// eachForm calls do with every form of look-alikes, from left to right.
func (t *TokenTable) eachForm(s string, do func(f form)) {
	for i := 0; ; {
		n := strings.Index(s[i:], lookalikeHead)
		if n < 0 || i+n+lookalikeLen > len(s) {
			return
		}
		f, end, ok := t.lookalikeForm(s, i+n)
		if ok {
			do(f)
		}
		i = end
	}
}

// eachMark calls do with every run of marks s[start:end] within the spelling of a token that
// no brackets delimit.
func (t *TokenTable) eachMark(s string, do func(start, end int)) {
	for i := 0; ; {
		n := strings.Index(s[i:], defuseMark)
		if n < 0 {
			return
		}
		start := i + n
		i = start + countRun(s, start, defuseMark)*len(defuseMark)
		if t.marksToken(s, start, i) {
			do(start, i)
		}
	}
}

// marksToken reports whether, without the marks, the last character of such a token stands
// at s[end:] and the others before start.
func (t *TokenTable) marksToken(s string, start, end int) bool {
	_, w := utf8.DecodeRuneInString(s[end:])
	for _, before := range t.spelled.marked[narrowColon(s[end:end+w])] {
		if endsWithMarked(s[:start], before) {
			return true
		}
	}
	return false
}

// endsWithMarked reports whether s ends with text, in which marks and line breaks may stand
// anywhere, and any white space or nothing in the place of a blank.
func endsWithMarked(s, text string) bool {
	for text != "" {
		last := text[len(text)-1]
		switch n := len(s) - 1; {
		case last == ' ' && (n < 0 || s[n] != ' ' && s[n] != '\t' && s[n] != '\n' && s[n] != '\r'):
			text = text[:len(text)-1]
		case n < 0:
			return false
		case s[n] == last && last != ' ':
			s, text = s[:n], text[:len(text)-1]
		case s[n] == '\n' || s[n] == '\r' || last == ' ':
			s = s[:n]
		case strings.HasSuffix(s, defuseMark):
			s = s[:len(s)-len(defuseMark)]
		default:
			return false
		}
	}
	return true
}

// Restore takes one level of defusing from every control token of s, and returns how many
// there were. It is the inverse of defusing, which needs no memory, and takes linear time. It
// returns s itself, and allocates nothing, where nothing is defused. spec: scrub/4.8
func (t *TokenTable) Restore(s string) (restored string, n int) {
	var b []byte
	done := 0
	replace := func(start, end int, with string) {
		b = append(append(b, s[done:start]...), with...)
		done = end
		n++
	}
	t.eachForm(s, func(f form) {
		if start, end, with, ok := f.lower(s); ok {
			replace(start, end, with)
		}
	})
	if done > 0 {
		s = string(append(b, s[done:]...))
	}
	b, done = b[:0], 0
	t.eachMark(s, func(start, _ int) { replace(start, start+len(defuseMark), "") })
	if done > 0 {
		s = string(append(b, s[done:]...))
	}
	return s, n
}
