// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"iter"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// A span of bytes [at, end) of a text.
type span struct{ at, end int }

// hiddenIn yields the hidden characters of s and where they stand. Ill-formed
// bytes do not count as hidden.
func hiddenIn(s string) iter.Seq2[span, rune] {
	return func(yield func(span, rune) bool) {
		for i := 0; i < len(s); {
			at, _, w := ucd.Scan(s, i, ucd.Hidden)
			if at == len(s) {
				return
			}
			i = at + w
			if r, _, ok := ucd.Decode(s[at:]); ok && !yield(span{at, i}, r) {
				return
			}
		}
	}
}

// unifyLines makes one LF of every line break, and a space of the Ogham space,
// which has no ink in many fonts. spec: scrub/3.4
func unifyLines(p *pass) {
	for x, r := range hiddenIn(p.text) {
		if ucd.Substitute(r) != 0 {
			p.substitute(x, r)
		}
	}
}

// dropHidden removes every hidden character that is left. spec: scrub/3.5
func dropHidden(p *pass) {
	done := 0
	for x, r := range hiddenIn(p.text) {
		if x.at >= done {
			done = p.remove(x, r)
		}
	}
}

// remove takes out the hidden character r, with the controls behind it if it is one, and
// returns where that ends.
func (p *pass) remove(x span, r rune) (end int) {
	if !controls(r) {
		p.part(x.at, x.end, spacerOf(r), classOf(r))
		return x.end
	}
	end, g, c := partingRun(p.text, x.end, r)
	p.part(x.at, end, p.fitting(x.at, g), c)
	return end
}

// strip is RFC 4.4: what it names, and by default all that is hidden.
func strip(p *pass) {
	for x, r := range hiddenIn(p.text) {
		switch {
		case p.policy.DangerouslyRFCSetOnly:
			if ucd.InRFCSet(r) {
				p.r.ed.drop(x.at, x.end, classOf(r))
			}
		case ucd.Substitute(r) != 0:
			p.substitute(x, r)
		default:
			p.r.ed.drop(x.at, x.end, classOf(r))
		}
	}
}

// substitute puts a space or LF in the place of r; CR LF is one line break.
func (p *pass) substitute(x span, r rune) {
	switch {
	case ucd.Substitute(r) == ' ':
		p.r.ed.replace(x.at, x.end, " ", OddSpace)
	case r == '\r' && x.end < len(p.text) && p.text[x.end] == '\n':
		p.r.ed.drop(x.at, x.end, LineBreak)
	default:
		p.r.ed.replace(x.at, x.end, "\n", LineBreak)
	}
}
