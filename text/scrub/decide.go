// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A hit is a token that was found: cut from the text, or left for the moment.
type hit struct {
	tok        *Token
	start, end uint32
	left       bool
	plain      bool // the text spells it to the letter
	stays      bool // the text spells it with character references, or in visible look-alikes
	inCode     bool // it stands where source code has a name
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
	if !claimsRole(tok, word[from:]) {
		return false
	}
	h := hit{tok: tok, start: word[from].start, end: x.end}
	how := m.spelledHow(&h, word[from:], 1)
	if !m.decide(RoleMarker, h, how == toTheLetter || how == withReferences) {
		return false
	}
	m.syms = m.syms[:t.at+from]
	if from == 0 {
		m.lineStart = t.lineStart
		m.open = m.open[:len(m.open)-1]
	}
	return true
}

// take acts on the token that began at open[k] and ends with x, or leaves it.
func (m *matcher) take(k int, x symbol, tok *Token) {
	t := m.open[k]
	h := hit{tok: tok, start: m.syms[t.at].start, end: x.end}
	class := ControlToken
	if tok.kind == asHeading {
		class = RoleMarker
	}
	how := m.spelledHow(&h, m.syms[t.at:], 1)
	h.inCode = h.plain && k == 0 && m.inCode(h)
	if how == otherwise || !m.decide(class, h, how == toTheLetter || how == withReferences) {
		m.kill()
		return
	}
	m.syms, m.open, m.lineStart = m.syms[:t.at], m.open[:k], t.lineStart
}

// How a text spells a token that it shows.
const (
	disguised      = iota
	toTheLetter    // as a tokenizer reads it
	acrossLines    // … but for line breaks, which are no obstacle to a model
	withReferences // as HTML needs it: no tokenizer reads it until a program has decoded it
	otherwise      // in plain ASCII, but in another case, or in quotation marks: no tokenizer knows it
)

// spelledHow says how the text spells h, which has these symbols and so many more, and notes that in h.
func (m *matcher) spelledHow(h *hit, syms []symbol, more int) int {
	got := m.src[h.start:h.end]
	if h.plain = m.isPlain(h.tok, got, m.src[h.start:]); h.plain {
		if withoutBreaks(got) != got && h.tok.kind != asHeading && h.tok.kind != asPrefix && got[len(got)-1] != '=' {
			return acrossLines
		}
		return toTheLetter
	}
	if strings.IndexByte(got, '&') >= 0 {
		d := dereferenced(got)
		got = d.s
		behind := m.src[h.end:min(len(m.src), int(h.end)+1)]
		if m.isPlain(h.tok, got, got+behind) || h.tok.kind == asLine && strings.EqualFold(got, h.tok.Text) {
			if h.stays = m.defuses; !h.stays && d.decodesLetter() {
				return disguised // HTML has no need of that
			}
			return withReferences
		}
	}
	got = withoutBreaks(got)
	if h.tok.kind == asHeading {
		got = strings.Join(strings.Fields(got), "")
	}
	if isASCII(got) && len(got) == len(syms)+more && !oddCase(got) {
		return otherwise
	}
	if !slices.ContainsFunc(syms, func(x symbol) bool { return x.char == '|' }) { // no text uses a name with bars
		if strings.HasPrefix(got, "\u2039") && !strings.HasPrefix(got, "\u2039\u2039") {
			return otherwise // a quotation mark, around a word
		}
		h.stays = m.showsWhole(got, int(h.start), int(h.end))
	}
	return disguised
}

// showsWhole reports whether a reader sees all of got, which stands in [start, end) of the text and
// imitates a token: it is honest text of another typography, and stays where nothing visible may be lost.
func (m *matcher) showsWhole(got string, start, end int) bool {
	hidden := func(r rune) bool { return ucd.Of(r)&ucd.Hidden != 0 }
	return m.defuses && !strings.ContainsFunc(got, hidden) && !touched(m.changed, start, end) && !m.crosses(start, end)
}

// decodesLetter reports whether a letter of d stands in the text as something longer.
func (d *reading) decodesLetter() bool {
	for i := range len(d.s) {
		if letter(d.s[i]) && d.from[i+1] > d.from[i]+1 {
			return true
		}
	}
	return false
}

// isEncoded reports whether got stays because it spells text with character references.
func (m *matcher) isEncoded(got, text string) bool {
	return m.defuses && strings.IndexByte(got, '&') >= 0 && dereferenced(got).s == text
}

// isPlain reports whether got, with which s begins, is tok to the letter.
func (m *matcher) isPlain(tok *Token, got, s string) bool {
	switch tok.kind {
	case asLiteral:
		return withoutBreaks(got) == tok.Text
	case asLine:
		return narrowColon(got) == tok.Text
	case asHeading:
		got = narrowColon(got)
		hashes, spells := strings.CutSuffix(got, strings.TrimPrefix(tok.Text, "### "))
		return spells && strings.Trim(hashes, "# \t\r\n") == ""
	}
	if got == tok.Text {
		return true
	}
	_, ok := m.table.plainForm(s, 0)
	return ok
}

// oddCase reports whether the letters of s go up and down, as no honest text spells a word.
func oddCase(s string) bool {
	rises := 0
	for i := 1; i < len(s); i++ {
		if 'a' <= s[i-1] && s[i-1] <= 'z' && 'A' <= s[i] && s[i] <= 'Z' {
			rises++
		}
	}
	return rises > 1
}

// narrowColon returns s with ":" for the colon that Chinese and Japanese text has, if s ends with it.
func narrowColon(s string) string {
	if before, wide := strings.CutSuffix(s, "\uff1a"); wide {
		return before + ":"
	}
	return s
}

func withoutBreaks(s string) string {
	if strings.IndexByte(s, '\n') < 0 && strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.NewReplacer("\r", "", "\n", "").Replace(s)
}

// decide keeps h for the moment, defuses it, or cuts it. It reports whether it cut it.
func (m *matcher) decide(c Class, h hit, exact bool) bool {
	changed := touched(m.changed, int(h.start), int(h.end))
	switch {
	case h.stays || m.keeps(h, exact):
		h.left = true
		m.hits = append(m.hits, h)
	case m.defuses && h.plain && !changed && !m.crosses(int(h.start), int(h.end)):
		m.hits = append(m.hits, h)
		m.plain = append(m.plain, Edit{Class: c, Start: int(h.start), End: int(h.end)})
		m.count++
	default:
		m.cut(c, h)
		return true
	}
	return false
}

// keeps reports whether a token stays for the moment that honest text spells too: it does
// where the text spells it plainly, as honest text does. spec: scrub/4.5
func (m *matcher) keeps(h hit, exact bool) bool {
	midLine := h.tok.kind == asHeading && !beginsLine(m.src, int(h.start)) && !beginsInString(m.src[:h.start]) // where no heading stands
	honest := h.inCode || h.tok.Treatment == Ambiguous || m.narrow && h.tok.Treatment == RemoveMCP && !midLine
	return honest && exact && !m.all && !touched(m.changed, int(h.start), int(h.end))
}

// beginsInString reports whether what stands behind before begins a string of JSON, or a line of one.
func beginsInString(before string) bool {
	return strings.HasSuffix(before, `"`) || strings.HasSuffix(before, `\n`)
}

// inCode reports whether h stands where source code has an index, as in calls[CALL_ID], or a
// type argument, as in Promise<tool_result>. spec: scrub/4.3
func (m *matcher) inCode(h hit) bool {
	if h.start == 0 || m.src[h.start+1] == '/' || m.src[h.start+1] == '|' || m.crosses(int(h.start)-1, int(h.end)) {
		return false // what stands in several texts is no code of one
	}
	before, behind := m.src[:h.start], m.src[h.end:]
	last := before[len(before)-1]
	switch name := m.src[h.start+1 : h.end-1]; {
	case h.tok.kind == inBrackets && (last == ']' || last == ')' || identifier(last)):
		return behindIndex(behind) && (len(m.hits) == 0 || m.hits[len(m.hits)-1].end != h.start)
	case h.tok.kind == inAngles && (identifier(last) || strings.HasSuffix(before, "::")):
		return strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 || !identifier(byte(r)) }) < 0 && behindArguments(behind)
	}
	return false
}

func identifier(c byte) bool { return letter(c) || '0' <= c && c <= '9' || c == '_' }

// behindIndex reports whether s stands behind an index of source code: it begins neither with
// a word, nor with "{" or JSON. What stands for a delimiter that was defused counts as that.
func behindIndex(s string) bool {
	if s == "" || holdsForm(s[:min(lookalikeLen, len(s))]) {
		return true
	}
	return s[0] < utf8.RuneSelf && s[0] != '{' && !identifier(s[0]) && !opensJSON(s)
}

// opensJSON reports whether s begins with an object of JSON that has a member, or a list of such.
func opensJSON(s string) bool {
	s = s[skipWhite(s, 0):]
	if list, is := strings.CutPrefix(s, "["); is {
		s = list[skipWhite(list, 0):]
	}
	object, is := strings.CutPrefix(s, "{")
	return is && strings.HasPrefix(object[skipWhite(object, 0):], `"`)
}

// behindArguments reports whether s stands behind the type arguments of source code: it
// begins with an operator, or with a name that one follows.
func behindArguments(s string) bool {
	switch {
	case s == "" || identifier(s[0]) || opensJSON(s):
		return false
	case strings.IndexByte("(),;>{}]&*?:=.", s[0]) >= 0 || strings.HasPrefix(s, "[]"):
		return true
	}
	n := skipBlanks(s, 0)
	name := n
	for n < len(s) && identifier(s[n]) {
		n++
	}
	n = skipBlanks(s, n)
	return name > 0 && n < len(s) && strings.IndexByte("(),;{=&*?|", s[n]) >= 0
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

// actLate defuses [start, end), which was found once the text had been read, or removes it
// where it is not spelled plainly.
func (m *matcher) actLate(c Class, start, end int, plain bool) {
	if len(m.seams) > 0 {
		c = SplitToken
	}
	if plain && m.defuses && !m.crosses(start, end) {
		m.plain = append(m.plain, Edit{Class: c, Start: start, End: end})
		m.count++
		return
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
