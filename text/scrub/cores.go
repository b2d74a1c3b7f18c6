// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// wideBar is the bar in the tokens of DeepSeek. It counts as "|".
const wideBar = "\uff5c"

// names holds names to the letter, but for wideBar. One that ends with "#" ends with any number.
type names map[string]bool

func (x names) add(name string) { x[strings.ReplaceAll(name, wideBar, "|")] = true }

func (x names) has(name []byte) bool {
	if x[string(name)] {
		return true
	}
	stem := bytes.TrimRight(name, "0123456789")
	return len(stem) < len(name) && x[string(stem)+"#"]
}

// The spelled names of a table are what stands between the delimiters of its tokens.
type spelled struct {
	angles, squares names
	prefixes        []string            // what stands behind "<"; the longest first
	marked          map[string][]string // of tokens without brackets, by their last character, what stands before it
	varied          map[string]bool     // names that count with a namespace, a suffix or attributes
	variedKeys      map[string]bool     // the same in the view
}

// coreAt returns the core of the token that begins before s[i], whatever delimiters stand
// there and behind it.
func (t *TokenTable) coreAt(s string, i int, p *pair) (c core, ok bool) {
	c = core{from: i, width: 1}
	if p == &anglePair {
		if n := t.prefixAt(s[i:]); n > 0 {
			c.to, c.open = i+n, true
			return c, true
		}
	}
	var buf [maxName * utf8.UTFMax]byte
	key, n := readName(buf[:0], s[i:], p == &squarePair)
	c.to = i + n
	if len(key) == 0 {
		return c, false
	}
	if p == &anglePair {
		if isVaried(key, t.spelled.varied, true) {
			name := strings.TrimRight(s[i:c.to], "\r\n")
			if c.open = opensAttribute(s[i+len(name):]); c.open {
				c.to = i + len(name)
				return c, true
			}
		}
		if !closesWith(s[c.to:], p) {
			return c, false
		}
		return c, t.spelled.angles.has(key) ||
			isShape(withUnderscores(key)) || isVaried(key, t.spelled.varied, false)
	}
	return c, closesWith(s[c.to:], p) && t.spelled.squares.has(key)
}

// withUnderscores returns name with "_" for the character that some tokenizers have for it.
func withUnderscores(name []byte) []byte {
	if !bytes.Contains(name, lowBlock) {
		return name
	}
	return bytes.ReplaceAll(name, lowBlock, []byte("_"))
}

var lowBlock = []byte("\u2581")

// doubleCore is coreAt for <<SYS>>.
func (t *TokenTable) doubleCore(s string, i int) (c core, ok bool) {
	for _, name := range [...]string{"SYS", "/SYS"} {
		to := skipBreaks(s, i+prefixLength(s[i:], name))
		if to > i && closesWith(s[to:], &anglePair) && t.spelled.angles["<"+name+">"] {
			return core{from: i, to: to, width: 2}, true
		}
	}
	return core{}, false
}

// closesWith reports whether s begins with a closing delimiter of p, or a look-alike of it.
func closesWith(s string, p *pair) bool {
	return s != "" && (s[0] == p.closes || strings.HasPrefix(s, p.shut) || strings.HasPrefix(s, p.shut2))
}

// readName appends to key what at most maxName characters of s spell, and returns how many
// bytes of s these are. Line breaks are no part of a name: a model reads across them.
func readName(key []byte, s string, blanks bool) ([]byte, int) {
	i := 0
	for n := 0; ; n++ {
		if i = skipBreaks(s, i); i == len(s) || n == maxName {
			return key, i
		}
		c := s[i]
		switch {
		case c < utf8.RuneSelf:
			if !nameChar(c) && strings.IndexByte(`|:"`, c) < 0 && !(blanks && c == ' ') {
				return key, i
			}
			key = append(key, c)
			i++
		case strings.HasPrefix(s[i:], wideBar):
			key = append(key, '|')
			i += len(wideBar)
		default:
			r, w := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || holdsForm(s[i:i+w]) {
				return key, i
			}
			key = append(key, s[i:i+w]...)
			i += w
		}
	}
}

func skipBreaks(s string, i int) int {
	for i < len(s) && (s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// prefixAt returns the length of the prefix with which s begins, 0 if it begins with none.
func (t *TokenTable) prefixAt(s string) int {
	for _, p := range t.spelled.prefixes {
		if n := prefixLength(s, p); n > 0 {
			return n
		}
	}
	return markupPrefix(s)
}

// prefixLength returns how many bytes of s spell p, in which a blank stands for any white
// space and any character may have line breaks before it; 0 if s does not begin with p.
func prefixLength(s, p string) int {
	i := 0
	for k := 0; k < len(p); k++ {
		if p[k] != ' ' {
			i = skipBreaks(s, i)
		}
		switch {
		case p[k] == '|' && strings.HasPrefix(s[i:], wideBar):
			i += len(wideBar)
		case p[k] == ' ':
			n := skipWhite(s, i)
			if n == i {
				return 0
			}
			i = n
		case i < len(s) && s[i] == p[k]:
			i++
		default:
			return 0
		}
	}
	return i
}

// markupPrefix returns the length of |NAME| or /|NAME| in capitals before a letter, as in
// the markup of DeepSeek and GigaChat.
func markupPrefix(s string) int {
	i := 0
	bar := func() bool {
		switch {
		case strings.HasPrefix(s[i:], wideBar):
			i += len(wideBar)
		case strings.HasPrefix(s[i:], "|"):
			i++
		default:
			return false
		}
		return true
	}
	if i = skipBreaks(s, 0); strings.HasPrefix(s[i:], "/") {
		i = skipBreaks(s, i+1)
	}
	if !bar() {
		return 0
	}
	n := 0
	for i = skipBreaks(s, i); i < len(s) && 'A' <= s[i] && s[i] <= 'Z'; n++ {
		i = skipBreaks(s, i+1)
	}
	if n < minBarred || n > maxMarkup || !bar() || i == len(s) || !letter(s[i]) {
		return 0
	}
	return i
}

// maxMarkup is the length of the longest name of such markup.
const maxMarkup = 16

// isShape reports whether <name> is a token whatever its name is. spec: scrub/4.2
func isShape(name []byte) bool {
	n := len(name)
	if n < minBarred {
		return false
	}
	opens, closes := name[0] == '|', name[n-1] == '|'
	if opens && closes {
		return isName(name[1:n-1], "-./:")
	}
	if n < minBarred+1 {
		return false
	}
	switch {
	case opens:
		// <|name>, or <|name|more>
		end := bytes.IndexByte(name[1:], '|')
		return end < 0 && isWord(name[1:]) || end > 0 && isWord(name[1:1+end]) && isName(name[2+end:], "-./:|")
	case closes:
		return isWord(name[:n-1])
	}
	return false
}

// isVaried reports whether name is one of names with a namespace before it or a suffix behind
// it; with bare, also the name itself.
func isVaried(name []byte, names map[string]bool, bare bool) bool {
	name = bytes.TrimPrefix(name, []byte("/"))
	if bare && names[string(name)] {
		return true
	}
	n := bytes.IndexAny(name, ":|")
	if n <= 0 {
		return false
	}
	space, rest := name[:n], name[n+1:]
	return names[string(rest)] && letter(space[0]) && isName(space, "-.") ||
		names[string(space)] && name[n] == ':' && isName(rest, "-.")
}

// opensAttribute reports whether white space, a name and "=" stand at the beginning of s.
func opensAttribute(s string) bool {
	i := skipWhite(s, 0)
	n := i
	for n < len(s) && n-i <= maxName && (nameChar(s[n]) || s[n] == ':') && s[n] != '/' {
		n++
	}
	return i > 0 && n > i && n < len(s) && s[n] == '='
}

// isName reports whether name is made of letters, digits, "_" and the others, and
// has a letter or digit.
func isName(name []byte, others string) bool {
	some := false
	for _, c := range name {
		word := letter(c) || '0' <= c && c <= '9'
		if !word && c != '_' && strings.IndexByte(others, c) < 0 {
			return false
		}
		some = some || word
	}
	return some
}

// isWord reports whether name is one that no formula and no table holds: with three letters
// or more, no other character but "_", "-" and digits.
func isWord(name []byte) bool {
	return len(name) >= minBarred && letter(name[0]) && letter(name[1]) && isName(name, "-")
}

// addSpelling adds what spells tok to the letter.
func (t *TokenTable) addSpelling(tok *Token) {
	text := tok.Text
	x := &t.spelled
	set := x.angles
	switch tok.kind {
	case inAngles:
	case asPrefix:
		x.prefixes = append(x.prefixes, strings.ReplaceAll(text[1:], wideBar, "|"))
		return
	case asLiteral, inBrackets:
		if !inSquares(text) {
			x.mark(text)
			return
		}
		set = x.squares
	default:
		x.mark(text)
		return
	}
	set.add(text[1 : len(text)-1])
	if tok.stem > 0 {
		set.add(text[1:tok.stem] + "#")
	}
}

// inSquares reports whether text is a name between square brackets.
func inSquares(text string) bool {
	if text[0] != '[' {
		return false
	}
	name, n := readName(nil, text[1:], true)
	return len(name) > 0 && text[1+n:] == "]"
}

// mark adds a text without brackets that the marks of defusing stand in.
func (x *spelled) mark(text string) {
	text = narrowColon(text)
	_, w := utf8.DecodeLastRuneInString(text)
	before, last := text[:len(text)-w], text[len(text)-w:]
	if !slices.Contains(x.marked[last], before) {
		x.marked[last] = append(x.marked[last], before)
	}
}
