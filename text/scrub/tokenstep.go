// SPDX-License-Identifier: Apache-2.0

package scrub

import "sort"

// actOnTokens removes control tokens, defuses them, or notes them. spec: scrub/3.10
func actOnTokens(p *pass) {
	m := p.match()
	if p.action == KeepTokens {
		p.keepTokens(m)
		return
	}
	if p.blunt && len(m.cuts) > 0 && dropOpeners(p, m) {
		p.again = true
		return
	}
	p.again = p.again || len(m.cuts) > 0
	if p.first {
		for _, e := range m.notes {
			from, to := sourceOf(p.r.Edits, e.Start, e.End)
			p.r.addNote(e.Class, from, to)
		}
		p.r.TokensLeft = len(m.notes)
	}
	if p.action == DefuseTokens {
		p.r.Tokens += p.defuse(m, p.raises)
		p.raises = false
		return
	}
	p.r.Tokens += m.count
	for _, e := range m.cuts {
		p.r.ed.drop(e.Start, e.End, e.Class)
	}
}

// keepTokens notes every token, ambiguous or not.
func (p *pass) keepTokens(m *matcher) {
	if !p.first {
		return
	}
	for _, found := range [...][]Edit{m.cuts, m.notes} {
		for _, e := range found {
			from, to := sourceOf(p.r.Edits, e.Start, e.End)
			p.r.addNote(e.Class, from, to)
		}
	}
	p.r.TokensLeft = m.count + len(m.notes)
}

// dropOpeners removes every character that can begin a token, and reports whether
// there was one. It ends a text that gives up one layer of tokens in each pass,
// which only an attack does.
func dropOpeners(p *pass, m *matcher) bool {
	some := false
	for i, s := 0, p.text; i < len(s); {
		first, w := fold[s[i]&0x7f], 1
		if s[i] >= 0x80 {
			first, w = other, m.read(s, i)
			if len(m.view) > 0 {
				first = m.view[0].fold
			}
		}
		if first == '<' || first == '[' || first == '#' || first == '&' || first != other && m.table.starts[first] {
			p.r.ed.drop(i, i+w, ControlToken)
			some = true
		}
		i += w
	}
	return some
}

// countTokens counts them: a text that discusses <|im_start|> must survive the
// grounding adapter. spec: scrub/3.10
func countTokens(p *pass) {
	m := p.match()
	p.r.Tokens = m.count
}

func (p *pass) match() *matcher {
	m := &p.r.match
	m.table = p.policy.Tokens
	m.buf = &p.r.buf
	m.changed = p.r.Edits
	m.seams = p.seams()
	m.narrow = p.policy.Profile == Faithful
	m.seen = p.facts.seen
	m.defuses = p.action == DefuseTokens
	m.find(p.text)
	return m
}

// seams returns where in the text, as it is now, the parts of a joined one meet.
func (p *pass) seams() []int {
	if len(p.ends) < 2 {
		return nil
	}
	seams := make([]int, 0, len(p.ends)-1)
	for _, end := range p.ends[:len(p.ends)-1] {
		n := sort.Search(len(p.r.Edits), func(i int) bool { return p.r.Edits[i].End > end })
		at := end
		if n > 0 {
			at += p.r.Edits[n-1].OutEnd - p.r.Edits[n-1].End
		}
		if n < len(p.r.Edits) && p.r.Edits[n].Start < end {
			at = p.r.Edits[n].Out
		}
		seams = append(seams, at)
	}
	return seams
}
