// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

func (d *data) writeProp(p *printer) {
	const shift, limit = 6, 0x20000
	p.f("// Version is the Unicode version of normal forms, combining classes, confusables and\n")
	p.f("// PinnedScripts: of all that a canonical hash depends on.\nconst Version = %q\n\n", version)
	p.f("// NewestVersion is the Unicode version of the rest.\nconst NewestVersion = %q\n\n", newestVersion)
	p.f("const propLimit = %#x // index of pages; propHigh from here\n\n", limit)
	index, out, _ := pages(d.props[:limit], shift)
	printIndex(p, "propIndex", index)
	p.f("// propData: the pages, %d bytes.\nvar propData = [...]Prop{", len(out)*2)
	for i, x := range out {
		if i%24 == 0 {
			p.f("\n")
		}
		p.f("%d,", x)
	}
	p.f("\n}\n\n// propHigh: runs above the table.\nvar propHigh = [...]propRun{\n")
	last := uint16(0xFFFF)
	for r := rune(limit); r < numRunes; r++ {
		if x := d.props[r]; x != last {
			p.f("{%#x, %d},\n", r, x)
			last = x
		}
	}
	p.f("}\n")
}

func (d *data) writeNorm(p *printer) {
	trie(p, "CCC", "canonical combining class", d.ccc[:])

	// A run is a decomposition, or a non-starter alone to save the look at CCC.
	runs := []uint32{0}
	place := map[string]uint16{}
	run := func(to []rune) uint16 {
		at, ok := place[string(to)]
		if !ok {
			at = uint16(len(runs))
			place[string(to)] = at
			for _, r := range to {
				runs = append(runs, uint32(r)|uint32(d.ccc[r])<<21)
			}
			runs[len(runs)-1] |= 1 << 31
		}
		return at
	}
	for form, name := range []string{nfc: "NFD", nfkc: "NFKD"} {
		v := make([]uint16, numRunes)
		for r := range rune(numRunes) {
			if to := d.full[form][r]; to != nil {
				v[r] = run(to)
			} else if d.ccc[r] != 0 {
				v[r] = run([]rune{r})
			}
		}
		trie(p, name, "place in decompRuns of the full decomposition, 0 = a starter that stays", v)
	}
	if len(runs) > 0xFFFF {
		panic("decompRuns outgrows 16 bits")
	}
	numbers(p, "decompRuns", "rune, combining class << 21, last << 31", runs)
	d.writeCompositions(p)
}

func (d *data) writeCompositions(p *printer) {
	const bits = 11
	var slots [1 << bits][3]uint32
	keys := slices.SortedFunc(maps.Keys(d.pairs), func(a, b [2]rune) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	var filter [32]uint64 // small enough to stay in the nearest cache
	for r := range d.seconds {
		filter[r>>6&31] |= 1 << (r & 63)
	}
	for _, k := range keys {
		h := (uint32(k[0])*0x9E3779B1 ^ uint32(k[1])*0x85EBCA6B) >> (32 - bits)
		for slots[h][2] != 0 {
			h = (h + 1) % uint32(len(slots))
		}
		slots[h] = [3]uint32{uint32(k[0]), uint32(k[1]), uint32(d.pairs[k])}
	}
	p.f("const compositionBits = %d\n\n", bits)
	numbers(p, "secondFilter", "by the low 11 bits: may the character compose backwards", filter[:])
	p.f("// compositions: open addressing, %d pairs.\nvar compositions = [1 << compositionBits]compositionEntry{\n", len(keys))
	for h, e := range slots {
		if e[2] != 0 {
			p.f("%d: {%#x, %#x, %#x},\n", h, e[0], e[1], e[2])
		}
	}
	p.f("}\n")
}

func (d *data) writeConfusables(p *printer) {
	// The targets in one string, each after its length.
	var text strings.Builder
	text.WriteByte(0)
	place := map[string]uint16{}
	targets := slices.Sorted(maps.Values(d.prototype))
	for _, to := range slices.Compact(targets) {
		place[to] = uint16(text.Len())
		text.WriteByte(byte(len(to)))
		text.WriteString(to)
	}
	if text.Len() > 0xFFFF {
		panic("prototypes outgrow 16 bits")
	}
	v := make([]uint16, numRunes)
	for r, to := range d.prototype {
		v[r] = place[to]
	}
	trie(p, "Prototype", "place in prototypes, 0 = none", v)
	p.f("// prototypes: a byte of length before each target; %d bytes.\nconst prototypes = \"\" +\n", text.Len())
	s := text.String()
	for ; len(s) > 24; s = s[24:] {
		p.f("%s +\n", literal(s[:24]))
	}
	p.f("%s\n", literal(s))
}

// literal is a string literal without any raw character that a reader may not see.
func literal(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		b.WriteString(`\x`)
		b.WriteByte(hex[s[i]>>4])
		b.WriteByte(hex[s[i]&15])
	}
	b.WriteByte('"')
	return b.String()
}

func (d *data) writeScript(p *printer) {
	p.f("const (\nScriptUnknown Script = iota\n")
	for _, name := range d.scripts[1:] {
		p.f("Script%s\n", strings.ReplaceAll(name, "_", ""))
	}
	p.f("numScripts = iota\n)\n\nvar scriptNames = [numScripts]string{\n")
	for i, name := range d.scripts {
		p.f("%q,", name)
		if i%8 == 7 {
			p.f("\n")
		}
	}
	p.f("\n}\n\n")
	trie(p, "Script", "script number", d.newest.script[:])

	// Sets of scripts: the most have the first one, and it means "the own script".
	places, sets := d.scriptSets(d.newest.extensions)
	trie(p, "ScriptSet", "place in scriptSets + 1, 0 = the own script alone", places)
	d.printSets(p, "scriptSets", sets)
}

// writePinnedScript prints where the scripts of the pinned version differ.
func (d *data) writePinnedScript(p *printer) {
	places, sets := d.scriptSets(d.extensions)
	p.f("// scriptChanges: where the newest version says otherwise, sorted.\nvar scriptChanges = [...]scriptChange{\n")
	differs := func(r rune) bool {
		return d.script[r] != d.newest.script[r] || !slices.Equal(d.extensions[r], d.newest.extensions[r])
	}
	for r := rune(0); r < numRunes; r++ {
		if !differs(r) {
			continue
		}
		end := r
		for end+1 < numRunes && differs(end+1) && d.script[end+1] == d.script[r] && places[end+1] == places[r] {
			end++
		}
		p.f("{%#x, %#x, %d, %d},\n", r, end, d.script[r], places[r])
		r = end
	}
	p.f("}\n\n")
	d.printSets(p, "pinnedScriptSets", sets)
}

// scriptSets numbers the values of Script_Extensions, and says which character has which.
func (d *data) scriptSets(extensions map[rune][]string) (places []uint8, sets [][]string) {
	places = make([]uint8, numRunes)
	for r := range rune(numRunes) {
		names := extensions[r]
		if names == nil {
			continue
		}
		at := slices.IndexFunc(sets, func(s []string) bool { return slices.Equal(s, names) })
		if at < 0 {
			at = len(sets)
			sets = append(sets, names)
		}
		places[r] = uint8(at + 1)
	}
	if len(sets) > 254 {
		panic("script sets outgrow 8 bits")
	}
	return places, sets
}

func (d *data) printSets(p *printer, name string, sets [][]string) {
	p.f("// %s: the values of Script_Extensions.\nvar %s = [...]ScriptSet{\n", name, name)
	for _, names := range sets {
		var bits [3]uint64
		for _, name := range names {
			n := slices.Index(d.scripts, name)
			bits[n/64] |= 1 << (n % 64)
		}
		p.f("{%#x, %#x, %#x}, // %s\n", bits[0], bits[1], bits[2], strings.Join(names, " "))
	}
	p.f("}\n")
}

func (d *data) writeLayout(p *printer) {
	joiningTypes := []string{"Non_Joining", "Join_Causing", "Dual_Joining", "Left_Joining", "Right_Joining", "Transparent"}
	v := make([]uint8, numRunes)
	for r := range v {
		switch d.newest.bidi[rune(r)] {
		case "Left_To_Right":
			v[r] = 1
		case "Right_To_Left", "Arabic_Letter":
			v[r] = 2
		}
		v[r] |= uint8(max(0, slices.Index(joiningTypes, d.newest.joining[rune(r)]))) << 2
		for bit, is := range map[uint8]bool{
			1 << 5: d.newest.virama[rune(r)],
			1 << 6: d.newest.pictographic[rune(r)],
			1 << 7: r >= 0x80 && slices.Contains([]string{"So", "Sm", "No"}, d.newest.category[r]),
		} {
			if is {
				v[r] |= bit
			}
		}
	}
	trie(p, "Layout", "strong direction, joining type and more, see layout.go", v)
}
