package scrub

import "github.com/pellucid-mcp/pellucid/internal/ucd"

// unifyLines makes one LF of every line break, and a space of the Ogham space,
// which has no ink in many fonts. spec: scrub/3.4
func unifyLines(p *pass) {
	s := p.text
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		i = at + w
		if prop&ucd.Hidden == 0 && s[at] >= 0x80 {
			continue // ill-formed: not here any more
		}
		r, _, _ := ucd.Decode(s[at:])
		switch sub := ucd.Substitute(r); {
		case sub == 0:
		case sub == ' ':
			p.r.ed.replace(at, i, " ", OddSpace)
		case r == '\r' && i < len(s) && s[i] == '\n':
			p.r.ed.drop(at, i, LineBreak)
		default:
			p.r.ed.replace(at, i, "\n", LineBreak)
		}
	}
}

// dropHidden removes every hidden character that is left. spec: scrub/3.5
func dropHidden(p *pass) {
	s := p.text
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		i = at + w
		if prop&ucd.Hidden == 0 && s[at] >= 0x80 {
			continue
		}
		r, _, _ := ucd.Decode(s[at:])
		p.r.ed.drop(at, i, classOf(r))
	}
}

// strip is RFC 4.4: what it names, and by default all that is hidden.
func strip(p *pass) {
	if !p.policy.DangerouslyRFCSetOnly {
		stripAll(p)
		return
	}
	s := p.text
	for i := 0; i < len(s); {
		at, _, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		i = at + w
		if r, _, _ := ucd.Decode(s[at:]); ucd.InRFCSet(r) {
			p.r.ed.drop(at, i, classOf(r))
		}
	}
}

// stripAll does what lines and hidden do, in one step.
func stripAll(p *pass) {
	s := p.text
	for i := 0; i < len(s); {
		at, _, w := ucd.Scan(s, i, ucd.Hidden)
		if at == len(s) {
			break
		}
		i = at + w
		r, _, ok := ucd.Decode(s[at:])
		switch sub := ucd.Substitute(r); {
		case !ok:
		case sub == ' ':
			p.r.ed.replace(at, i, " ", OddSpace)
		case sub == 0, r == '\r' && i < len(s) && s[i] == '\n':
			p.r.ed.drop(at, i, classOf(r))
		default:
			p.r.ed.replace(at, i, "\n", LineBreak)
		}
	}
}
