package scrub

// dropTokens removes control tokens. spec: scrub/3.10
func dropTokens(p *pass) {
	m := p.match()
	for _, e := range m.cuts {
		p.r.ed.drop(e.Start, e.End, e.Class)
	}
	p.r.Tokens += m.count
	if p.first {
		for _, e := range m.notes {
			from, to := sourceOf(p.r.Events, e.Start, e.End)
			p.r.note(e.Class, from, to)
		}
	}
}

// countTokens counts them: a text that discusses <|im_start|> must survive the
// grounding adapter. spec: scrub/3.10
func countTokens(p *pass) {
	m := p.match()
	p.r.Tokens = m.count
}

func (p *pass) match() *matcher {
	m := &p.r.match
	m.buf = &p.r.buf
	m.narrow = p.policy.Profile == Faithful
	m.references = true
	m.opener = p.facts.opener
	m.find(p.text)
	return m
}
