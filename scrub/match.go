package scrub

import "github.com/pellucid-mcp/pellucid/internal/ucd"

// maxName is the length of the longest token, in symbols, without what delimits
// it. A longer one is no token.
const maxName = 64

// A matcher finds control tokens, and those that appear once others are removed,
// in one pass. It reads the view around what can begin a token and keeps a stack
// of what did: a token that ends is taken off the stack, and what began before it
// goes on with what follows it. spec: scrub/4.4
type matcher struct {
	buf        *ucd.Buffer
	references bool // character references count as what they stand for
	opener     bool // the text holds openers that are not ASCII
	narrow     bool // faithful: only what no honest file holds

	syms      []symbol // what was kept since the first opener
	open      []opener
	view      []symbol // of one character
	lineStart bool     // only blanks since the line began
	kept      int      // end of the last zone: lineStart is known there

	cuts  []Event // what to remove: Class, Start, End
	count int     // tokens in cuts
	notes []Event // what was found and is left
}

// An opener is the beginning of what may become a token.
type opener struct {
	kind      TokenKind
	at        int  // in syms
	hashes    int  // of a heading
	gap       bool // a blank stands between the hashes and the word
	lineStart bool // what lineStart was before it
}

// find looks through s.
func (m *matcher) find(s string) {
	m.cuts, m.notes, m.count = m.cuts[:0], m.notes[:0], 0
	m.lineStart, m.kept = true, 0
	c := newCandidates(s, m)
	for i := 0; ; {
		if m.lineStart && i == m.kept {
			if j := skipBlanks(s, i); mayBeRole(s, j) {
				i = m.zone(s, j, true)
				continue
			}
		}
		at := c.next(i)
		if at == len(s) {
			return
		}
		if s[at] == '\n' {
			m.lineStart, m.kept = true, at+1
			i = at + 1
			continue
		}
		i = m.zone(s, at, m.startsLine(s, at))
	}
}

// startsLine reports whether only blanks stand between at and the beginning of
// its line, as far as the line is kept.
func (m *matcher) startsLine(s string, at int) bool {
	for at > m.kept && (s[at-1] == ' ' || s[at-1] == '\t') {
		at--
	}
	if at == m.kept {
		return m.lineStart
	}
	return s[at-1] == '\n'
}

// zone reads from i, where something may begin, for as long as something is open.
func (m *matcher) zone(s string, i int, lineStart bool) int {
	m.syms, m.open, m.lineStart = m.syms[:0], m.open[:0], lineStart
	for i < len(s) {
		if c := s[i]; c < 0x80 && (c != '&' || !m.references) {
			m.step(symbol{uint32(i), uint32(i + 1), c, fold[c], true})
			i++
		} else {
			n := m.read(s, i)
			for _, x := range m.view {
				m.step(x)
			}
			i += n
		}
		if len(m.open) == 0 {
			break
		}
	}
	m.kept = i
	return i
}

// read leaves in view what stands at s[i] and returns its length.
func (m *matcher) read(s string, i int) int {
	m.view = m.view[:0]
	if s[i] != '&' {
		_, w, ok := ucd.Decode(s[i:])
		if !ok {
			m.view = append(m.view, symbol{start: uint32(i), end: uint32(i + w)})
		} else {
			m.view = appendView(m.view, m.buf, s, i, i+w)
		}
		return w
	}
	r, w := reference(s[i:])
	if w == 0 || hiddenReference(r) {
		w = max(w, 1)
		if w == 1 {
			m.view = append(m.view, symbol{uint32(i), uint32(i + 1), '&', '&', true})
		}
		return w
	}
	m.view = appendView(m.view, m.buf, string(r), 0, len(string(r)))
	for k := range m.view {
		m.view[k].start, m.view[k].end = uint32(i), uint32(i+w)
	}
	return w
}

// step takes one symbol.
func (m *matcher) step(x symbol) {
	switch c := x.char; {
	case c == '\n' || c == '\r':
		m.lineBreak()
		m.lineStart = m.lineStart || c == '\n'
	case c == ' ' || c == '\t':
		m.blank()
	case c == '<':
		m.push(Angle, x)
	case c == '[':
		m.push(Bracket, x)
	case c == '#':
		m.hash(x)
	case c == '>':
		m.closeAngle(x)
	case c == ']':
		m.closeBracket(x)
	case c == ':':
		m.closeColon(x)
	case nameChar(c) || c == '|':
		m.name(x)
	default:
		m.kill()
	}
}

func letter(c byte) bool { return c|0x20-'a' < 26 }

func nameChar(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.' || c == '/'
}

func (m *matcher) top() *opener {
	if len(m.open) == 0 {
		return nil
	}
	return &m.open[len(m.open)-1]
}

// kill gives up everything that is open.
func (m *matcher) kill() { m.open, m.lineStart = m.open[:0], false }

// dropLine gives up the beginning of a role marker, which no delimiter marks.
func (m *matcher) dropLine() {
	if t := m.top(); t != nil && t.kind == Line {
		m.open = m.open[:len(m.open)-1]
	}
}

func (m *matcher) push(k TokenKind, x symbol) {
	m.dropLine()
	m.open = append(m.open, opener{kind: k, at: len(m.syms), hashes: 1, lineStart: m.lineStart})
	m.syms = append(m.syms, x)
	m.lineStart = false
}

func (m *matcher) hash(x symbol) {
	t := m.top()
	if t == nil || t.kind != Heading || t.gap || len(m.syms)-t.at != t.hashes {
		m.push(Heading, x)
		return
	}
	t.hashes++
	m.syms = append(m.syms, x)
}

// name takes a character of a token's name.
func (m *matcher) name(x symbol) {
	switch {
	case !letter(x.char):
		m.dropLine()
	case m.lineStart:
		m.open = append(m.open, opener{kind: Line, at: len(m.syms), lineStart: true})
	}
	t := m.top()
	if t == nil {
		m.lineStart = false
		return
	}
	if t.kind == Heading && t.hashes < 3 || len(m.syms)-t.at > maxName+t.hashes {
		m.kill()
		return
	}
	m.syms = append(m.syms, x)
	m.lineStart = false
}

// lineBreak: a line break within a token is no obstacle to a model. But a row of
// hashes above a word is a banner, and a lone one the line of a comment.
func (m *matcher) lineBreak() {
	m.dropLine()
	if t := m.top(); t != nil && t.kind == Heading && len(m.syms)-t.at == t.hashes {
		if t.hashes != 3 {
			m.kill()
			return
		}
		t.gap = true
	}
}

func (m *matcher) blank() {
	m.dropLine()
	t := m.top()
	if t == nil {
		return
	}
	if t.kind != Heading || t.hashes < 3 || len(m.syms)-t.at != t.hashes {
		m.kill()
		return
	}
	t.gap = true
}

// closeAngle takes ">".
func (m *matcher) closeAngle(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil || t.kind != Angle {
		m.kill()
		return
	}
	content := m.syms[t.at+1:]
	if tok := lookupAngle(content); tok != nil {
		m.take(len(m.open)-1, x, tok)
		return
	}
	// <<SYS>> is the one token with two of each.
	if below := len(m.open) - 2; below >= 0 && m.open[below].kind == Angle && m.open[below].at == t.at-1 {
		switch foldedName(content) {
		case "sys", "/sys":
			m.syms = append(m.syms, x)
			return
		case "sys>", "/sys>":
			m.take(below, x, &tokens[0])
			return
		}
	}
	m.kill()
}

func (m *matcher) closeBracket(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil || t.kind != Bracket {
		m.kill()
		return
	}
	if tok := lookup(Bracket, m.syms[t.at+1:]); tok != nil {
		m.take(len(m.open)-1, x, tok)
		return
	}
	m.kill()
}

// closeColon takes ":". A heading's word may also be the beginning of a line;
// the longer token goes first.
func (m *matcher) closeColon(x symbol) {
	for k := len(m.open) - 1; k >= 0 && k >= len(m.open)-2; k-- {
		t := &m.open[k]
		if t.kind == Heading && t.hashes >= 3 {
			if tok := lookup(Heading, m.syms[t.at+t.hashes:]); tok != nil {
				m.take(k, x, tok)
				return
			}
		}
		if t.kind != Line {
			break
		}
	}
	if t := m.top(); t != nil && t.kind == Line {
		if m.closeLine(t, x) {
			return
		}
	}
	m.kill()
}

// closeLine takes a role marker, or one that stands in the beginning of another:
// SYSSYSTEM:TEM: leaves SYS, which goes on as the beginning of SYSTEM:.
func (m *matcher) closeLine(t *opener, x symbol) bool {
	word := m.syms[t.at:]
	tok, from := lookupLine(word)
	if tok == nil {
		return false
	}
	if m.narrow && tok.Action == RemoveMCP || !claimsRole(tok, word[from:]) {
		m.left(RoleMarker, word[from].start, x.end)
		return false
	}
	m.cut(RoleMarker, word[from].start, x.end)
	m.syms = m.syms[:t.at+from]
	if from == 0 {
		m.lineStart = t.lineStart
		m.open = m.open[:len(m.open)-1]
	}
	return true
}

// take removes the token that began at open[k] and ends with x.
func (m *matcher) take(k int, x symbol, tok *Token) {
	t := m.open[k]
	start := m.syms[t.at].start
	class := ControlToken
	if tok.Kind == Heading {
		class = RoleMarker
	}
	if m.narrow && tok.Action == RemoveMCP {
		m.left(class, start, x.end)
		m.kill()
		return
	}
	m.cut(class, start, x.end)
	m.syms, m.open, m.lineStart = m.syms[:t.at], m.open[:k], t.lineStart
}

func (m *matcher) left(c Class, start, end uint32) {
	m.notes = append(m.notes, Event{Class: c, Start: int(start), End: int(end)})
}

// cut removes [start, end), and with it what was cut within.
func (m *matcher) cut(c Class, start, end uint32) {
	e := Event{Class: c, Start: int(start), End: int(end)}
	for len(m.cuts) > 0 {
		l := &m.cuts[len(m.cuts)-1]
		if l.Start < e.Start {
			e.Start = max(e.Start, l.End) // one character may end a token and begin the next
			break
		}
		m.cuts = m.cuts[:len(m.cuts)-1]
	}
	m.cuts = append(m.cuts, e)
	m.count++
}
