package scrub

import (
	"strings"

	"github.com/pellucid-mcp/pellucid/internal/ucd"
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
		if c := s[at]; c < 0x80 && (c != '&' || !m.references) {
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
		if text != "&" || m.references {
			m.heads = append(m.heads, head{text, nextHead(s, text, 0)})
		}
	}
	for i := 0; ; {
		at := m.nextLiteral(s, i)
		if at == len(s) {
			return
		}
		i = at + 1
		if s[at] >= 0x80 || s[at] == '&' {
			if m.read(s, at); len(m.view) == 0 || m.view[0].char == other || !m.table.starts[m.view[0].fold] {
				continue
			}
		}
		for _, x := range m.table.literals {
			if n := m.spelled(s, at, x); n > 0 {
				m.takeLiteral(s, at, n, x)
				i = at + n
				break
			}
		}
	}
}

func (m *matcher) takeLiteral(s string, at, n int, x spelling) {
	h := hit{tok: x.tok, start: uint32(at), end: uint32(at + n)}
	if h.left = m.keeps(x.tok, s[at:at+n] == x.text, h); !h.left {
		m.late = append(m.late, Event{Class: ControlToken, Start: at, End: at + n})
	}
	m.hits = append(m.hits, h)
}

// closers are the characters that stand for "]" in the view and are not ASCII.
// No other literal of this version begins with what is no opener.
const closers = "\ufe48\uff3d"

// headsOf returns what the literals begin with.
func headsOf(first []byte) (heads []string) {
	for _, b := range first {
		heads = append(heads, string(rune(b)))
		if b == ']' {
			for _, r := range closers {
				heads = append(heads, string(r))
			}
		}
	}
	if len(first) > 0 {
		heads = append(heads, "&")
	}
	return heads
}

// A head is what a literal begins with, and where it stands next.
type head struct {
	text string
	at   int
}

func nextHead(s, head string, from int) int {
	if n := strings.Index(s[from:], head); n >= 0 {
		return from + n
	}
	return len(s)
}

// nextLiteral returns where the next literal may begin, len(s) if nowhere.
func (m *matcher) nextLiteral(s string, i int) int {
	first := len(s)
	for k := range m.heads {
		h := &m.heads[k]
		if h.at < i {
			h.at = nextHead(s, h.text, i)
		}
		first = min(first, h.at)
	}
	return first
}
