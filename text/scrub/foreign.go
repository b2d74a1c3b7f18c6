// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"strings"
	"unicode/utf8"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

const (
	dottedCircle = 0x25CC // stands where a mark is shown alone
	nullNotehead = 0x1D159

	// maxRow is how many marks stand on one letter, with a margin: Tibetan stacks have eight.
	maxRow = 16
	// maxModifiers is how many modifiers of one sign are written: a fill and a rotation in
	// SignWriting, a mirror and a damaged part of a hieroglyph.
	maxModifiers = 2
)

// dropForeignMarks removes what has no ink outside its script from other text, and marks of one
// script on letters of another beyond the allowance: 400 marks that a reader does not see there, or
// takes for dirt, are a code. It also bounds the marks on one letter whatever their combining
// class is. spec: scrub/3.6.2
func dropForeignMarks(p *pass) {
	var kept, none [numUses]int
	sweepMarks(p, &kept, [numUses]bool{})
	if over, is := p.over(&kept); is {
		p.begin()
		kept = none
		sweepMarks(p, &kept, over)
	}
	p.kept[modifying], p.kept[foreign] = kept[modifying], kept[foreign]
}

func sweepMarks(p *pass, kept *[numUses]int, over [numUses]bool) {
	s := p.text
	var base rune // the last character that is no mark, nor hidden, nor blank
	var script ucd.Script
	last := 0 // where the last mark ended
	row, modifiers := 0, 0
	for i := 0; i < len(s); {
		at, prop, w := ucd.Scan(s, i, ucd.Bound|ucd.Blank)
		if at == len(s) {
			break
		}
		i = at + w
		if prop&(ucd.Bound|ucd.Blank) == 0 {
			continue
		}
		for j := at; j > last; {
			r, w := utf8.DecodeLastRuneInString(s[:j])
			if ucd.Of(r)&(ucd.Hidden|ucd.Mark) == 0 {
				base, script, row, modifiers = r, ucd.ScriptOf(r), 0, 0
				break
			}
			j -= w
		}
		last = i
		r, _, _ := ucd.Decode(s[at:])
		own := ucd.ScriptOf(r) == script && script > ucd.ScriptInherited || base == dottedCircle || together(r, base)
		if prop&ucd.Bound != 0 {
			row++
		}
		u, class := useless, Class(0)
		switch {
		case row > maxRow:
			class = CombiningFlood
		case prop&ucd.Blank != 0:
			u = modifying
			if modifiers++; modifiers > maxModifiers || !own && !before(s[i:], r) {
				class = Format
			}
		case !own && ucd.ScriptOf(r) > ucd.ScriptInherited:
			u = foreign
		}
		if over[u] {
			class = Format
		}
		switch {
		case class == CombiningFlood:
			p.r.ed.drop(at, i, class) // the marks that stay keep apart what stands around them
		case class != 0:
			p.part(at, i, blank, class)
		case u != modifying || modifiers == 1:
			kept[u]++
		}
	}
}

// together reports whether r is written with base.
func together(r, base rune) bool {
	if r == nullNotehead {
		return musical(base)
	}
	return ucd.ScriptOf(r) == ucd.ScriptOf(base) || ucd.Extensions(r).And(ucd.Extensions(base)).Len() > 0
}

func musical(r rune) bool {
	return 0x1D100 <= r && r <= 0x1D1FF && ucd.Of(r)&(ucd.Hidden|ucd.Blank) == 0
}

// before reports whether the blank sign r, which is no mark, stands before one that is written
// with it.
func before(rest string, r rune) bool {
	next, w, _ := ucd.Decode(rest)
	return w > 0 && ucd.Of(r)&ucd.Mark == 0 && ucd.Of(next)&(ucd.Hidden|ucd.Mark|ucd.Blank) == 0 && together(r, next)
}

// composedMark reports whether s holds a mark that NFKC can bring into a text which has no Bound
// character: U+0E33 and U+0EB3 begin with one. Every other stands behind a letter of its script.
func composedMark(s string) bool {
	return strings.Contains(s, "\u0e4d") || strings.Contains(s, "\u0ecd")
}
