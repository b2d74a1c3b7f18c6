// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// derived is what follows from the sources.
type derived struct {
	pairs   map[[2]rune]rune // canonical composition, without Hangul
	seconds map[rune]bool    // what can compose with what stands before it
	full    [2]map[rune][]rune
	props   [numRunes]uint16
}

const (
	nfc = iota
	nfkc
)

// The bits of ucd.Prop, by name: the printed tables use the numbers and
// prop_test.go compares every bit with the sources' meaning.
const (
	hidden = 1 << iota
	nfkcActive
	nfcActive
	nfkcJoins
	nfcJoins
	nonStarter
	confusable
	opener
	flagged
	lossy
	joining
	emojiPart
	mark
	illFormed // of ucd alone
	blank
	bound
)

const openerSet = "<[#|{"

func (d *data) derive() {
	d.pairs, d.seconds = map[[2]rune]rune{}, map[rune]bool{}
	for r, to := range d.decomp {
		if d.tag[r] == "" && len(to) == 2 && !d.excluded[r] {
			d.pairs[[2]rune{to[0], to[1]}] = r
			d.seconds[to[1]] = true
		}
	}
	for r := rune(0x1161); r <= 0x1175; r++ {
		d.seconds[r] = true
	}
	for r := rune(0x11A8); r <= 0x11C2; r++ {
		d.seconds[r] = true
	}
	for form := range d.full {
		d.full[form] = map[rune][]rune{}
		for r := range d.decomp {
			if form == nfkc || d.tag[r] == "" {
				d.full[form][r] = d.decompose(form, []rune{r})
			}
		}
	}
	parts := map[rune]bool{}
	for _, seq := range d.sequences() {
		for _, r := range seq {
			parts[r] = true
		}
	}
	for r := rune(0); r < numRunes; r++ {
		d.props[r] = d.prop(r, parts)
	}
}

func (d *data) prop(r rune, emojiParts map[rune]bool) (p uint16) {
	set := func(bit uint16, is bool) {
		if is {
			p |= bit
		}
	}
	set(hidden, d.hidden[r])
	set(nfkcActive, d.ccc[r] != 0 || d.quick["NFKC_QC=N"][r] || d.quick["NFKC_QC=M"][r])
	set(nfcActive, d.ccc[r] != 0 || d.quick["NFC_QC=N"][r] || d.quick["NFC_QC=M"][r])
	set(nfkcJoins, d.joins(nfkc, r))
	set(nfcJoins, d.joins(nfc, r))
	set(nonStarter, d.ccc[r] != 0)
	set(confusable, d.confusable(r) != 0)
	set(opener, d.opens(r))
	category := d.newest.category[r]
	set(flagged, !d.hidden[r] && (r == 0x2800 || r == 0xFFFC || category == "Co" || category == "Cs" || category == "" ||
		d.category[r] == "" && d.newest.decomposes[r]))
	set(lossy, d.lossy(r))
	set(joining, d.newest.virama[r] || joins(d.newest.joining[r]))
	set(emojiPart, emojiParts[r])
	set(mark, strings.HasPrefix(category, "M"))
	script := d.scripts[d.newest.script[r]]
	set(blank, !d.hidden[r] && d.newest.blank(r, script))
	set(bound, !d.hidden[r] && strings.HasPrefix(category, "M") && (script != "Inherited" && script != "Common" || d.ccc[r] == 0))
	return p
}

// joins reports whether a letter of the Joining_Type joins to another.
func joins(joiningType string) bool {
	return joiningType == "Left_Joining" || joiningType == "Right_Joining" || joiningType == "Dual_Joining"
}

func (d *data) joins(form int, r rune) bool {
	first := r
	if to := d.full[form][r]; to != nil {
		first = to[0]
	}
	return d.ccc[first] != 0 || d.seconds[first]
}

// confusable returns the one ASCII character that r is taken for, if r is not
// ASCII and survives NFKC; 0 if not found.
func (d *data) confusable(r rune) byte {
	if to := d.prototype[r]; r >= 0x80 && len(to) == 1 && string(d.normal(nfkc, []rune{r})) == string(r) {
		return to[0]
	}
	return 0
}

// opens reports whether the NFKC or the skeleton of r begins with one of
// openerSet. ASCII stands for itself only: the prototype of | is l.
func (d *data) opens(r rune) bool {
	first := r
	if to := d.full[nfkc][r]; to != nil {
		first = to[0] // U+226E is < and a mark
	}
	for _, x := range []rune{r, first} {
		if to := d.prototype[x]; x >= 0x80 && to != "" && strings.IndexByte(openerSet, to[0]) >= 0 {
			return true
		}
	}
	return strings.ContainsRune(openerSet, first)
}

func (d *data) lossy(r rune) bool {
	switch d.tag[r] {
	case "<super>", "<sub>", "<fraction>":
		return true
	}
	return slices.ContainsFunc(d.decomp[r], d.lossy)
}

// decompose is the full decomposition in canonical order: the definition, slow.
func (d *data) decompose(form int, in []rune) []rune {
	var out []rune
	for _, r := range in {
		switch to := d.decomp[r]; {
		case 0xAC00 <= r && r <= 0xD7A3:
			s := r - 0xAC00
			out = append(out, 0x1100+s/588, 0x1161+s/28%21)
			if s%28 != 0 {
				out = append(out, 0x11A7+s%28)
			}
		case to != nil && (form == nfkc || d.tag[r] == ""):
			out = append(out, d.decompose(form, to)...)
		default:
			out = append(out, r)
		}
	}
	for i := 1; i < len(out); i++ {
		for j := i; j > 0 && d.ccc[out[j]] != 0 && d.ccc[out[j-1]] > d.ccc[out[j]]; j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// normal is the normalised form.
func (d *data) normal(form int, in []rune) []rune {
	if len(in) == 1 && d.decomp[in[0]] == nil {
		return in // a syllable comes apart and together again
	}
	var out []rune
	starter := -1
	for _, r := range d.decompose(form, in) {
		if n := len(out); starter >= 0 && (n-1 == starter || d.ccc[out[n-1]] < d.ccc[r]) {
			if c := d.pair(out[starter], r); c != 0 {
				out[starter] = c
				continue
			}
		}
		if d.ccc[r] == 0 {
			starter = len(out)
		}
		out = append(out, r)
	}
	return out
}

func (d *data) pair(a, b rune) rune {
	switch {
	case 0x1100 <= a && a <= 0x1112 && 0x1161 <= b && b <= 0x1175:
		return 0xAC00 + ((a-0x1100)*21+b-0x1161)*28
	case 0xAC00 <= a && a <= 0xD7A3 && (a-0xAC00)%28 == 0 && 0x11A8 <= b && b <= 0x11C2:
		return a + b - 0x11A7
	}
	return d.pairs[[2]rune{a, b}]
}
