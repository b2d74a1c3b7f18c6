// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"
)

// A tokenRow is a sequence of tokens and words of a template. spec: scrub/4.5
type tokenRow []element

// An element is a token, or a word that stands in the view of the text.
type element struct {
	tok  *Token // unless the element is a word
	word spelling
	far  bool // it may stand up to maxGap bytes further on; else only blanks lie between
	said bool // and what lies between are words: see talks
	mute bool // and what lies between is one word or nothing
	fold byte // of its first character, if that stands next and is ASCII
	ends bool // the line ends behind it
	head bool // the line begins before it
	told bool // words follow it: see talks
}

// claimsRole reports whether the element is a word that says who speaks, as "\u7cfb\u7edf\uff1a".
func (e *element) claimsRole() bool {
	return e.tok == nil && e.word.syms[len(e.word.syms)-1].char == ':'
}

// notHit stands for a word among the hits of a sequence.
const notHit = -1

// maxGap is how far two tokens of one sequence can be apart, in bytes.
const maxGap = 4096

const (
	gap     = "\u2026" // of a sequence in a file: what lies between is anything
	wordGap = "\u2025" // … that holds a blank, and words before its first tag
	dataGap = "\u2024" // … that holds none
	newline = "\u21b5" // of a sequence in a file: the line ends
)

// parseSequence reads a sequence of the token t.
func (tt *TokenTable) parseSequence(t *Token, text string) (seq tokenRow, fault string) {
	held := false
	rest, first := strings.CutPrefix(text, newline)
	for rest != "" {
		e := element{head: first}
		first = false
		if after, ok := strings.CutPrefix(rest, gap); ok {
			e.far, rest = true, after
		} else if after, ok := strings.CutPrefix(rest, wordGap); ok {
			e.far, e.said, rest = true, true, after
		} else if after, ok := strings.CutPrefix(rest, dataGap); ok {
			e.far, e.mute, rest = true, true, after
		}
		// A blank says that what follows is a word within the line, spelled so.
		within := e.far && strings.HasPrefix(rest, " ")
		if e.tok = tt.spelledAt(rest); e.tok != nil && (len(seq) == 0 || e.tok.kind != asLine) {
			rest = rest[len(e.tok.Text):]
			held = held || e.tok == t
		} else {
			// A role is a token where a line begins, and a word within a sequence.
			n := 0
			if e.tok != nil {
				held = held || e.tok == t
				n, e.tok = len(e.tok.Text), nil
			}
			for n < len(rest) && (n == 0 || within || tt.spelledAt(rest[n:]) == nil) &&
				!startsGap(rest[n:]) && !strings.HasPrefix(rest[n:], newline) {
				_, w := utf8.DecodeRuneInString(rest[n:])
				n += w
			}
			if n == 0 {
				return nil, "holds an empty part"
			}
			e.word, rest = newSpelling(rest[:n]), rest[n:]
		}
		switch {
		case e.far:
		case e.tok == nil:
			e.fold = firstFold(e.word.syms)
		default:
			e.fold = firstFold(viewOf(e.tok.Text))
		}
		if after, ok := strings.CutPrefix(rest, newline); ok {
			e.ends, rest = true, after
			if rest == wordGap {
				e.told, rest = true, ""
			}
		}
		seq = append(seq, e)
	}
	switch {
	case len(seq) > maxElements:
		return nil, "has too many parts"
	case !held:
		return nil, "does not hold the token"
	case seq[0].tok == nil || seq[0].far:
		return nil, "does not begin with a token"
	case len(seq) == 1 && !seq[0].ends && t.Treatment != Remove:
		return nil, "is the token alone"
	}
	for _, e := range seq[:len(seq)-1] {
		if e.far {
			return nil, "has a gap before another part than the last"
		}
	}
	return seq, ""
}

func firstFold(syms []symbol) byte {
	if len(syms) == 0 {
		return 0
	}
	return syms[0].fold
}

func startsGap(s string) bool {
	return strings.HasPrefix(s, gap) || strings.HasPrefix(s, wordGap) || strings.HasPrefix(s, dataGap)
}

// spelledAt returns the longest token that text begins with, nil if not found.
func (tt *TokenTable) spelledAt(text string) (best *Token) {
	if strings.HasPrefix(text, anyShape.Text) {
		return anyShape
	}
	for _, t := range tt.tokens {
		if strings.HasPrefix(text, t.Text) && (best == nil || len(t.Text) > len(best.Text)) {
			best = t
		}
	}
	return best
}

// resolve cuts the ambiguous tokens that stand in a sequence, and notes the others.
// A token that has sequences in which it stays waits until it is known what stays
// before it.
func (m *matcher) resolve(s string) {
	m.each(func(i int) {
		h := &m.hits[i]
		if !h.tok.Unless {
			m.runAll(s, i, m.table.seqs[h.tok], false)
		}
		if h.is(anyShape) {
			m.runAll(s, i, m.table.ofShape, false)
		}
	})
	m.each(func(i int) {
		m.runAll(s, i, m.table.spares[m.hits[i].tok], true)
	})
	m.each(func(i int) {
		if h := &m.hits[i]; h.tok.Unless && !h.spared {
			m.runAll(s, i, m.table.seqs[h.tok], false)
		}
	})
	for i := range m.hits {
		if h := &m.hits[i]; !h.inCode && h.tok.Unless && !h.spared && (len(m.seams) == 0 || m.crosses(int(h.start), int(h.end))) {
			m.actOnLeft(h)
		}
	}
	m.each(m.pair)
	for _, h := range m.hits {
		if h.left {
			m.left(AmbiguousToken, h.start, h.end)
		}
	}
}

// actOnLeft acts on h if it was left for the moment.
func (m *matcher) actOnLeft(h *hit) {
	if !h.left || h.stays {
		return
	}
	h.left = false
	class := ControlToken
	if h.tok.kind == asHeading || h.tok.kind == asLine {
		class = RoleMarker
	}
	m.actLate(class, int(h.start), int(h.end), h.plain)
}

// pair acts on both of m.hits[i], a token that opens, and the next that closes it, if it acts on one.
func (m *matcher) pair(i int) {
	h := &m.hits[i]
	if h.tok.closer == nil || m.next[h.tok.closer.index] == 0 {
		return
	}
	c := &m.hits[m.next[h.tok.closer.index]]
	if h.left == c.left || h.stays || c.stays || len(m.seams) > 0 && !m.crosses(int(h.start), int(c.end)) {
		return
	}
	m.actOnLeft(h)
	m.actOnLeft(c)
}

// each calls do for every hit from right to left, so that the next hit of each token
// is known.
func (m *matcher) each(do func(i int)) {
	m.words = m.words[:0]
	m.next = append(m.next[:0], make([]int32, len(m.table.tokens))...)
	for i := len(m.hits) - 1; i >= 0; i-- {
		do(i)
		if h := &m.hits[i]; h.tok.kind != ofShapes {
			m.next[h.tok.index] = int32(i)
		}
	}
}

// runAll runs the sequences that may begin with m.hits[i]. It rules out those whose
// second part begins with another character than what stands there.
func (m *matcher) runAll(s string, i int, seqs []tokenRow, spare bool) {
	if len(seqs) == 0 {
		return
	}
	behind := byte(0)
	if at := skipWhite(s, int(m.hits[i].end)); at < len(s) && s[at] < utf8.RuneSelf && s[at] != '&' {
		behind = fold[s[at]]
	}
	for _, seq := range seqs {
		if len(seq) == 1 || seq[1].fold == 0 || behind == 0 || seq[1].fold == behind {
			m.run(s, i, seq, spare)
		}
	}
}

// run cuts, or spares, the ambiguous tokens of seq where it begins with m.hits[i].
func (m *matcher) run(s string, i int, seq tokenRow, spare bool) {
	var members [maxElements]int // in m.hits, or notHit for a word
	var words [maxElements][2]int
	k, pos := i, int(m.hits[i].end)
	for n, e := range seq {
		switch {
		case n == 0:
			members[n] = i
		case e.tok == nil:
			start, end := m.wordAt(s, pos, e)
			if end < 0 {
				return
			}
			members[n], words[n], pos = notHit, [2]int{start, end}, end
		default:
			if k = m.hitAt(s, k, pos, e, spare); k < 0 {
				return
			}
			members[n], pos = k, int(m.hits[k].end)
		}
		if spare && members[n] >= 0 && !m.hits[members[n]].left {
			return
		}
		if e.ends && !endsLine(s, pos) || e.told && !talks(s[pos:]) || e.head && !beginsLine(s, int(m.hits[i].start)) {
			return
		}
	}
	split := len(m.seams) > 0
	if split && !m.crosses(int(m.hits[i].start), pos) {
		return // it stands in one of the texts
	}
	for n, e := range seq {
		if w := words[n]; members[n] == notHit {
			if got := s[w[0]:w[1]]; !spare && e.claimsRole() && !m.isEncoded(got, e.word.text) {
				plain := narrowColon(withoutBreaks(got)) == narrowColon(e.word.text)
				if plain || !m.showsWhole(got, w[0], w[1]) {
					m.actLate(RoleMarker, w[0], w[1], plain)
				}
			}
			continue
		}
		h := &m.hits[members[n]]
		if h.spared = h.spared || spare && h.tok.Unless; spare {
			continue
		}
		m.actOnLeft(h)
	}
}

// hitAt returns the hit of e behind m.hits[k], which ends at pos, -1 if there is
// none. Of a sequence in which a token stays, a gap holds elements of XML.
func (m *matcher) hitAt(s string, k, pos int, e element, spare bool) int {
	if e.far {
		if e.tok.kind == ofShapes {
			return -1
		}
		n := int(m.next[e.tok.index])
		if n <= k {
			return -1
		}
		between := s[pos:max(pos, int(m.hits[n].start))]
		if spare && e.mute && !isOneWord(between) {
			return -1
		}
		if spare && !e.mute {
			if hasBlank(firstText(between)) && talks(between) {
				return -1
			}
			return n
		}
		if len(between) > maxGap {
			return -1
		}
		if e.said && !(hasBlank(between) && talks(between)) || e.mute && hasBlank(between) {
			return -1
		}
		return n
	}
	if k+1 < len(m.hits) && m.hits[k+1].is(e.tok) && int(m.hits[k+1].start) == skipWhite(s, pos) {
		return k + 1
	}
	return -1
}

// wordAt returns where the word of e stands behind pos, an end below 0 if it does
// not.
func (m *matcher) wordAt(s string, pos int, e element) (start, end int) {
	if e.far {
		// Hits come from right to left: what is behind the last one is known.
		for i := range m.words {
			w := &m.words[i]
			if w.text == e.word.text {
				if n := strings.Index(s[pos:min(len(s), w.from+len(w.text))], w.text); n >= 0 {
					w.at = pos + n
				}
				w.from = pos
				return inReach(pos, w.at, len(w.text))
			}
		}
		w := farWord{e.word.text, pos, -1}
		if n := strings.Index(s[pos:], w.text); n >= 0 {
			w.at = pos + n
		}
		m.words = append(m.words, w)
		return inReach(pos, w.at, len(w.text))
	}
	start = skipWhite(s, pos)
	n := m.spelled(s, start, e.word)
	if n == 0 {
		return 0, -1
	}
	end = start + n
	if last := e.word.text[len(e.word.text)-1]; letter(last) && end < len(s) && letter(s[end]) {
		return 0, -1
	}
	// The name of a role in capitals is a word of records in other letters.
	if got, want := s[start:end], e.word.text; got != want && want == strings.ToUpper(want) && strings.EqualFold(got, want) && !oddCase(got) {
		return 0, -1
	}
	return start, end
}

// isOneWord reports whether s is what an element of XML around one word holds.
func isOneWord(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !nameChar(byte(r)) }) < 0
}

func hasBlank(s string) bool { return strings.ContainsAny(s, " \t\n") }

// firstText returns s up to its first tag.
func firstText(s string) string {
	if n := strings.IndexByte(s, '<'); n >= 0 {
		return s[:n]
	}
	return s
}

// talks reports whether s begins with words. An element of XML that holds other elements
// begins with a tag.
func talks(s string) bool {
	return strings.ContainsFunc(firstText(s), func(r rune) bool {
		return r >= utf8.RuneSelf || letter(byte(r)) || '0' <= r && r <= '9'
	})
}

func inReach(pos, at, n int) (start, end int) {
	if at < 0 || at-pos > maxGap {
		return 0, -1
	}
	return at, at + n
}

// A farWord is where a word stands first behind from.
type farWord struct {
	text     string
	from, at int
}

func skipWhite(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

func endsLine(s string, i int) bool {
	i = skipBlanks(s, i)
	return i < len(s) && (s[i] == '\n' || s[i] == '\r')
}

func beginsLine(s string, i int) bool {
	for i > 0 && (s[i-1] == ' ' || s[i-1] == '\t') {
		i--
	}
	return i == 0 || s[i-1] == '\n' || s[i-1] == '\r'
}
