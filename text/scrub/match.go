// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// maxName is the length of the longest token, in symbols, without what delimits
// it. A longer one is no token.
const maxName = 64

// A matcher finds control tokens, and those that appear once others are removed,
// in one pass. It reads the view around what can begin a token and keeps a stack
// of what did: a token that ends is taken off the stack, and what began before it
// goes on with what follows it. spec: scrub/4.4
type matcher struct {
	src     string
	table   *TokenTable
	buf     *ucd.Buffer
	seen    ucd.Prop // what the survey has seen in the text
	narrow  bool     // faithful: only what no honest file holds
	all     bool     // ambiguous tokens are cut like others
	defuses bool     // what is spelled plainly is defused, and not removed
	changed []Edit   // what led to the text: a token that it touches was disguised
	seams   []int    // where texts meet, of which none holds the whole token

	syms      []symbol // what was kept since the first opener
	open      []opener
	view      []symbol // of one character
	lineStart bool     // only blanks since the line began
	kept      int      // end of the last zone: lineStart is known there

	cuts  []Edit  // what to remove: Class, Start, End
	plain []Edit  // what to defuse: Class, Start, End
	count int     // tokens in cuts and plain
	notes []Edit  // what was found and is left
	hits  []hit   // every token of the table, in order
	late  []Edit  // cuts that were found once the text had been read
	next  []int32 // of each token: the next hit
	words []farWord
	heads []head // of literals
}

// An opener is the beginning of what may become a token.
type opener struct {
	at        int // in syms
	hashes    int // of a heading
	kind      tokenKind
	gap       bool // a blank stands between the hashes and the word
	lineStart bool // what lineStart was before it
}

// manyOpen is how many symbols of names that are not yet closed only a hostile text has.
const manyOpen = 4096

// find looks through s.
func (m *matcher) find(s string) {
	m.src = s
	m.cuts, m.plain, m.notes, m.count = m.cuts[:0], m.plain[:0], m.notes[:0], 0
	m.hits, m.late = m.hits[:0], m.late[:0]
	m.scan(s)
	m.findLiterals(s)
	if slices.ContainsFunc(m.hits, func(h hit) bool { return h.left || h.tok.Treatment == RemoveMCP }) {
		slices.SortStableFunc(m.hits, func(a, b hit) int { return int(a.start) - int(b.start) })
		m.resolve(s)
	}
	m.mergeLate()
}

// scan finds the tokens that brackets or the beginning of a line delimit.
func (m *matcher) scan(s string) {
	m.lineStart, m.kept = true, 0
	c := newCandidates(s, m)
	for i := 0; ; {
		if m.lineStart && i == m.kept {
			if j := skipBlanks(s, i); m.table.mayBeRole(s, j) {
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
		if c := s[i]; c < 0x80 && c != '&' {
			m.step(symbol{uint32(i), uint32(i + 1), rune(c), c, fold[c], true})
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

// step takes one symbol.
func (m *matcher) step(x symbol) {
	switch c := x.char; {
	case c == '\n' || c == '\r':
		m.lineBreak(x)
		m.lineStart = m.lineStart || c == '\n'
	case c == ' ' || c == '\t':
		m.blank(x)
	case c == '<':
		m.push(inAngles, x)
	case c == '[':
		m.push(inBrackets, x)
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
		m.rare(x)
	}
}

// rare takes a character that stands in few names: "=" ends a prefix, a quotation
// mark stands between bars, and what is not ASCII in names of one language.
func (m *matcher) rare(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil || t.kind != inAngles || len(m.syms)-t.at > maxName {
		m.kill()
		return
	}
	content := m.syms[t.at+1:]
	switch {
	case x.char == '=':
		m.syms = append(m.syms, x)
		if !m.closePrefix() {
			m.kill()
		}
	case x.char == '"' && len(content) == 1 && content[0].char == '|',
		x.char == other && x.r != 0 && m.table.wide:
		m.syms = append(m.syms, x)
	default:
		m.kill()
	}
}

// closePrefix takes the token that ends with the last symbol, whatever follows.
func (m *matcher) closePrefix() bool {
	content := m.syms[m.top().at+1:]
	last := content[len(content)-1]
	behind := byte(0)
	if int(last.end) < len(m.src) {
		behind = m.src[last.end]
	}
	tok := m.table.lookupPrefix(content, behind)
	if tok == nil {
		return false
	}
	m.syms = m.syms[:len(m.syms)-1]
	m.take(len(m.open)-1, last, tok)
	return true
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
	if t := m.top(); t != nil && t.kind == asLine {
		m.open = m.open[:len(m.open)-1]
	}
}

func (m *matcher) push(k tokenKind, x symbol) {
	m.dropLine()
	m.open = append(m.open, opener{kind: k, at: len(m.syms), hashes: 1, lineStart: m.lineStart})
	m.syms = append(m.syms, x)
	m.lineStart = false
}

func (m *matcher) hash(x symbol) {
	t := m.top()
	if t == nil || t.kind != asHeading || t.gap || len(m.syms)-t.at != t.hashes {
		m.push(asHeading, x)
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
		m.open = append(m.open, opener{kind: asLine, at: len(m.syms), lineStart: true})
	}
	t := m.top()
	if t == nil {
		m.lineStart = false
		return
	}
	if t.kind == asHeading && t.hashes < 3 || len(m.syms)-t.at > maxName+t.hashes {
		m.kill()
		return
	}
	if n := len(m.syms); n == cap(m.syms) && n >= manyOpen {
		m.syms = slices.Grow(m.syms, len(m.src)-n) // at once: there cannot be more
	}
	m.syms = append(m.syms, x)
	m.lineStart = false
	if x.char == '|' && t.kind == inAngles {
		m.closePrefix()
	}
}

// lineBreak: a line break within a token is no obstacle to a model. But a row of
// hashes above a word is a banner, and a lone one the line of a comment.
func (m *matcher) lineBreak(x symbol) {
	m.dropLine()
	t := m.top()
	if t != nil && t.kind == inAngles {
		m.inPrefix(t, x)
	} else if t != nil && t.kind == asHeading && len(m.syms)-t.at == t.hashes {
		if t.hashes != 3 {
			m.kill()
			return
		}
		t.gap = true
	}
}

func (m *matcher) blank(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil {
		return
	}
	if t.kind == inAngles && m.inPrefix(t, x) {
		return
	}
	if t.kind != asHeading || t.hashes < 3 || len(m.syms)-t.at != t.hashes {
		m.kill()
		return
	}
	t.gap = true
}

// inPrefix takes a blank where a prefix has one or more.
func (m *matcher) inPrefix(t *opener, x symbol) bool {
	content := m.syms[t.at+1:]
	if n := len(content); n > 0 && content[n-1].char == ' ' {
		return true
	}
	var k nameKey
	if !k.set(content) || !m.table.partial[string(k.b[:k.n])] && !isVaried(k.b[:k.n], m.table.spelled.variedKeys, true) {
		return false
	}
	x.char, x.fold = ' ', ' '
	m.syms = append(m.syms, x)
	return true
}

// closeAngle takes ">".
func (m *matcher) closeAngle(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil || t.kind != inAngles {
		m.kill()
		return
	}
	content := m.syms[t.at+1:]
	if tok := m.table.lookupAngle(content); tok != nil {
		m.take(len(m.open)-1, x, tok)
		return
	}
	// <<SYS>> is the one token with two of each.
	if below := len(m.open) - 2; below >= 0 && m.open[below].kind == inAngles && m.open[below].at == t.at-1 {
		last := content
		if n := len(content); n > 0 && content[n-1].char == '>' {
			last = content[:n-1]
		}
		tok := m.table.double(last)
		switch {
		case tok == nil:
		case len(last) == len(content):
			m.syms = append(m.syms, x)
			return
		default:
			m.take(below, x, tok)
			return
		}
	}
	m.kill()
}

func (m *matcher) closeBracket(x symbol) {
	m.dropLine()
	t := m.top()
	if t == nil || t.kind != inBrackets {
		m.kill()
		return
	}
	tok, doubtful := m.table.lookupBracket(m.syms[t.at+1:])
	if tok != nil {
		m.take(len(m.open)-1, x, tok)
		return
	}
	if doubtful {
		m.left(AmbiguousToken, m.syms[t.at].start, x.end)
	}
	m.kill()
}

// closeColon takes ":". A heading's word may also be the beginning of a line;
// the longer token goes first. In the name of a tag it is a character.
func (m *matcher) closeColon(x symbol) {
	if t := m.top(); t != nil && t.kind == inAngles && len(m.syms)-t.at <= maxName {
		m.syms = append(m.syms, x)
		return
	}
	for k := len(m.open) - 1; k >= 0 && k >= len(m.open)-2; k-- {
		t := &m.open[k]
		if t.kind == asHeading && t.hashes >= 3 {
			if tok := m.table.lookup(asHeading, m.syms[t.at+t.hashes:]); tok != nil {
				m.take(k, x, tok)
				return
			}
		}
		if t.kind != asLine {
			break
		}
	}
	if t := m.top(); t != nil && t.kind == asLine {
		if m.closeLine(t, x) {
			return
		}
	}
	m.kill()
}
