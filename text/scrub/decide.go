// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"sort"
	"strings"
)

// A hit is a token that was found: cut from the text, or left for the moment.
type hit struct {
	tok        *Token
	start, end uint32
	left       bool
	spared     bool // it stands in a sequence in which it stays
}

// is reports whether the hit is the token t.
func (h *hit) is(t *Token) bool {
	return h.tok == t || t == anyShape && h.tok.barred
}

// closeLine takes a role marker, or one that stands in the beginning of another:
// SYSSYSTEM:TEM: leaves SYS, which goes on as the beginning of SYSTEM:.
func (m *matcher) closeLine(t *opener, x symbol) bool {
	word := m.syms[t.at:]
	tok, from := m.table.lookupLine(word)
	if tok == nil {
		return false
	}
	h := hit{tok: tok, start: word[from].start, end: x.end}
	honest := m.honest(h, x.start) || !claimsRole(tok, word[from:])
	if !m.decide(RoleMarker, h, honest, tok.spells(m.src[h.start:h.end])) {
		return false
	}
	m.syms = m.syms[:t.at+from]
	if from == 0 {
		m.lineStart = t.lineStart
		m.open = m.open[:len(m.open)-1]
	}
	return true
}

// take removes the token that began at open[k] and ends with x, or leaves it.
func (m *matcher) take(k int, x symbol, tok *Token) {
	t := m.open[k]
	h := hit{tok: tok, start: m.syms[t.at].start, end: x.end}
	class := ControlToken
	if tok.kind == asHeading {
		class = RoleMarker
	}
	got := m.src[h.start:h.end]
	if strings.IndexByte(got, '&') >= 0 {
		got = angles.Replace(got)
	}
	exact := tok.spells(got)
	honest := m.honest(h, x.start)
	if !honest && tok.Exact && !exact && isASCII(got) && len(got) == len(m.syms)-t.at+1 && !(tok.Treatment == Ambiguous && oddCase(got, tok.Text)) {
		m.kill() // plain letters of another case, or others: no tokenizer knows it
		return
	}
	if !m.decide(class, h, honest, exact) {
		m.kill()
		return
	}
	m.syms, m.open, m.lineStart = m.syms[:t.at], m.open[:k], t.lineStart
}

// honest reports whether the faithful profile leaves h, whose word ends at end: it leaves
// a token that only the mcp profile removes where its word is spelled in ASCII alone. The
// colon behind the word may be a wide one, which Chinese and Japanese are written with.
func (m *matcher) honest(h hit, end uint32) bool {
	word := m.src[h.start:end]
	return m.narrow && h.tok.Treatment == RemoveMCP && isASCII(word) && strings.IndexByte(word, '&') < 0
}

// decide notes h if it is honest, keeps it for the moment, or cuts it. It reports whether
// it cut it.
func (m *matcher) decide(c Class, h hit, honest, exact bool) bool {
	switch {
	case honest:
		m.left(c, h.start, h.end)
	case m.keeps(h, exact):
		h.left = true
		m.hits = append(m.hits, h)
	default:
		m.cut(c, h)
		return true
	}
	return false
}

// keeps reports whether an ambiguous token stays for the moment: it does where
// the text spells it plainly, as honest text does. spec: scrub/4.5
func (m *matcher) keeps(h hit, exact bool) bool {
	return h.tok.Treatment == Ambiguous && exact && !m.all && !touched(m.changed, int(h.start), int(h.end))
}

// crosses reports whether [start, end) holds a part of two texts.
func (m *matcher) crosses(start, end int) bool {
	n, _ := slices.BinarySearch(m.seams, start+1)
	return n < len(m.seams) && m.seams[n] < end
}

// touched reports whether an event made a part of [start, end) or removed
// something within it.
func touched(events []Edit, start, end int) bool {
	n := sort.Search(len(events), func(i int) bool { return events[i].OutEnd > start })
	return n < len(events) && events[n].Out < end
}

// angles are how HTML writes the angles of honest text.
var angles = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;lt;", "<", "&amp;gt;", ">", "&#60;", "<", "&#62;", ">", "&lt", "<", "&gt", ">")

// spells reports whether got is the token's text to the letter. Of a token that
// stands for any number, the digits may be others; the blank in a prefix may be any white
// space, as between the attributes of XML.
func (t *Token) spells(got string) bool {
	if got == t.Text || t.kind == asPrefix && strings.Join(strings.Fields(got), " ") == t.Text {
		return true
	}
	if t.stem == 0 || len(got) <= t.stem || got[:t.stem] != t.Text[:t.stem] {
		return false
	}
	return strings.TrimLeft(got[t.stem:], "0123456789") == t.Text[len(t.Text)-1:]
}

// oddCase reports whether got is text in letters that go up and down, as no honest
// text spells a word.
func oddCase(got, text string) bool {
	if !strings.EqualFold(got, text) {
		return false
	}
	rises := 0
	for i := 1; i < len(got); i++ {
		if 'a' <= got[i-1] && got[i-1] <= 'z' && 'A' <= got[i] && got[i] <= 'Z' {
			rises++
		}
	}
	return rises > 1
}

func (m *matcher) left(c Class, start, end uint32) {
	m.notes = append(m.notes, Edit{Class: c, Start: int(start), End: int(end)})
}

// cut removes [start, end), and with it what was cut within.
func (m *matcher) cut(c Class, h hit) {
	for len(m.hits) > 0 && m.hits[len(m.hits)-1].start >= h.start {
		m.hits = m.hits[:len(m.hits)-1]
	}
	m.hits = append(m.hits, h)
	e := Edit{Class: c, Start: int(h.start), End: int(h.end)}
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

// cutLate removes [start, end), which was found once the text had been read.
func (m *matcher) cutLate(c Class, start, end int, split bool) {
	if split {
		c = SplitToken
	}
	m.late = append(m.late, Edit{Class: c, Start: start, End: end})
}

// mergeLate puts the late cuts among the others.
func (m *matcher) mergeLate() {
	if len(m.late) == 0 {
		return
	}
	m.cuts = append(m.cuts, m.late...)
	m.count += len(m.late)
	slices.SortStableFunc(m.cuts, func(a, b Edit) int { return a.Start - b.Start })
	merged := m.cuts[:1]
	for _, e := range m.cuts[1:] {
		if l := &merged[len(merged)-1]; e.Start < l.End {
			l.End = max(l.End, e.End)
			continue
		}
		merged = append(merged, e)
	}
	m.cuts = merged
}
