// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A spelling is a text as the view has it.
type spelling struct {
	text string
	syms []symbol
	tok  *Token
}

func newSpelling(text string) spelling {
	return spelling{text: text, syms: viewOf(text)}
}

// viewOf returns the symbols of a text.
func viewOf(text string) []symbol {
	m := matcher{buf: new(ucd.Buffer)}
	var out []symbol
	for i := 0; i < len(text); {
		if c := text[i]; c < 0x80 {
			out = append(out, symbol{uint32(i), uint32(i + 1), rune(c), c, fold[c], true})
			i++
			continue
		}
		n := m.read(text, i)
		out = append(out, m.view...)
		i += n
	}
	return out
}

// spelled returns the length of x where it stands at s[i], 0 if it does not.
func (m *matcher) spelled(s string, i int, x spelling) int {
	n, at := 0, i
	for at < len(s) && n < len(x.syms) {
		w := 1
		if c := s[at]; c < 0x80 && c != '&' {
			if c == '\r' || c == '\n' {
				if n == 0 {
					return 0
				}
				at++ // a line break within a token is no obstacle to a model
				continue
			}
			if !x.syms[n].same(symbol{r: rune(c), char: c, fold: fold[c]}) {
				return 0
			}
			n++
		} else {
			w = m.read(s, at)
			for _, y := range m.view {
				if n == len(x.syms) || !x.syms[n].same(y) {
					return 0
				}
				n++
			}
		}
		at += w
	}
	if n < len(x.syms) {
		return 0
	}
	return at - i
}

// same reports whether two symbols are taken for each other.
func (x symbol) same(y symbol) bool {
	return x.fold == y.fold && (x.char != other || x.r == y.r)
}

// findLiterals finds the tokens that no pair of brackets delimits.
func (m *matcher) findLiterals(s string) {
	if len(m.table.literals) == 0 {
		return
	}
	m.heads = m.heads[:0]
	for _, text := range m.table.heads {
		m.heads = append(m.heads, head{text, m.table.nextHead(s, text, 0)})
	}
	for _, x := range m.table.wideHeads {
		if x.props&^m.seen == 0 {
			m.heads = append(m.heads, head{x.text, m.table.nextHead(s, x.text, 0)})
		}
	}
	for i := 0; ; {
		at := m.nextLiteral(s, i)
		if at == len(s) {
			return
		}
		i = at + 1
		first, second := fold[s[at]&0x7f], byte(other)
		w := 1
		if s[at] >= 0x80 || s[at] == '&' {
			if w = m.read(s, at); len(m.view) == 0 || m.view[0].char == other || !m.table.starts[m.view[0].fold] {
				continue
			}
			first = m.view[0].fold
		}
		if behind := at + w; len(m.view) <= 1 && behind < len(s) && s[behind] >= 0x80 {
			if m.read(s, behind); len(m.view) > 0 {
				second = m.view[0].fold
			}
		}
		for _, x := range m.table.literals {
			if x.syms[0].fold != first || second != other && x.syms[1].fold != second {
				continue
			}
			if n := m.spelled(s, at, x); n > 0 {
				if m.takeLiteral(s, at, n, x) {
					i = at + n
				}
				break
			}
		}
	}
}

// takeLiteral acts on x, which stands at s[at], and reports whether nothing else can begin
// within it. What is defused stays, and may be the beginning of another.
func (m *matcher) takeLiteral(s string, at, n int, x spelling) bool {
	h := hit{tok: x.tok, start: uint32(at), end: uint32(at + n)}
	how := m.spelledHow(&h, x.syms, 0)
	if how == otherwise {
		return true
	}
	if h.left = h.stays || m.keeps(h, how == toTheLetter); !h.left {
		m.actLate(ControlToken, at, at+n, h.plain && !touched(m.changed, at, at+n))
	}
	m.hits = append(m.hits, h)
	return !m.defuses || !h.plain && !h.stays
}

// doubles are the characters that stand for what literals of this version begin with in the
// view, and are not ASCII.
var doubles = map[byte]string{
	'<': "\u02c2\u1438\u16b2\u2039\u226e\u276e\ufe64\uff1c\U0001d236",
	'[': "\ufe47\uff3b",
	']': "\ufe48\uff3d",
}

// allDoubles is the same for every character: an operator's literal may begin with any.
var allDoubles = sync.OnceValue(func() map[byte]string {
	all := map[byte]string{}
	for r := rune(utf8.RuneSelf); r < 0x30000; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if x := viewOf(string(r)); len(x) > 0 && x[0].char != other {
			all[x[0].char] += string(r)
		}
	}
	return all
})

// prepareLiterals fills in where literals are looked for.
func (t *TokenTable) prepareLiterals() {
	t.plainEnd = 0x7f
	for _, x := range t.literals {
		unseen := !strings.ContainsAny(x.text, "<[#&")
		if unseen && strings.IndexByte(x.text, '~') >= 0 {
			t.plainEnd, unseen = '~', false
		}
		for c := range 128 {
			if fold[c] != x.syms[0].fold {
				continue
			}
			if unseen {
				t.unseen = append(t.unseen, byte(c))
			}
			t.starts[c] = true
			for d := range 256 {
				spells := d >= utf8.RuneSelf || d == '&' || d == '\r' || d == '\n' || fold[d] == x.syms[1].fold
				t.pairs[c][d] = t.pairs[c][d] || spells
			}
		}
	}
	for c := range 128 {
		if t.starts[c] {
			t.heads = append(t.heads, string(rune(c)))
		}
	}
	for c := range byte(utf8.RuneSelf) {
		if !t.starts[c] {
			continue
		}
		spelled, known := doubles[c]
		if !known {
			spelled = allDoubles()[c]
		}
		for _, r := range spelled {
			t.wideHeads = append(t.wideHeads, wideHead{string(r), ucd.Of(r) & surveyed})
		}
	}
	if len(t.literals) > 0 && !t.starts['&'] {
		t.heads = append(t.heads, "&")
	}
}

// A wideHead is a head that is not ASCII. The survey has seen its properties in a text that holds it.
type wideHead struct {
	text  string
	props ucd.Prop
}

// A head is what a literal begins with, and where it stands next.
type head struct {
	text string
	at   int
}

// nextHead returns where head stands next and may begin a literal, len(s) if nowhere.
// It rules out most of what begins none by what stands behind it.
func (t *TokenTable) nextHead(s, head string, from int) int {
	b := head[0]
	switch {
	case b == '&':
		return t.nextReference(s, from)
	case b >= utf8.RuneSelf:
		if n := strings.Index(s[from:], head); n >= 0 {
			return from + n
		}
		return len(s)
	}
	for row := &t.pairs[b]; ; {
		n := strings.IndexByte(s[from:], b)
		if n < 0 || from+n+1 == len(s) {
			return len(s)
		}
		if from += n + 1; row[s[from]] {
			return from - 1
		}
	}
}

// nextReference is nextHead for "&".
func (t *TokenTable) nextReference(s string, from int) int {
	for ; ; from++ {
		n := strings.IndexByte(s[from:], '&')
		if n < 0 {
			return len(s)
		}
		from += n
		if r, w := reference(s[from:]); t.starts['&'] || w > 0 && r != '&' {
			return from
		}
	}
}

// nextLiteral returns where the next literal may begin, len(s) if nowhere.
func (m *matcher) nextLiteral(s string, i int) int {
	first := len(s)
	for k := range m.heads {
		h := &m.heads[k]
		if h.at < i {
			h.at = m.table.nextHead(s, h.text, i)
		}
		first = min(first, h.at)
	}
	return first
}
