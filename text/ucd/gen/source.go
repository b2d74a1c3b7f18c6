// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const numRunes = 0x110000

// data is what the sources say, then what follows from it.
type data struct {
	sources []string // "name sha256", in the order of reading

	category   [numRunes]string // "" = unassigned
	ccc        [numRunes]uint8
	decomp     map[rune][]rune // one step
	tag        map[rune]string // <super> and others; canonical decompositions have none
	excluded   map[rune]bool   // Full_Composition_Exclusion
	quick      map[string]map[rune]bool
	ignorable  map[rune]bool // Default_Ignorable_Code_Point
	bidiFormat map[rune]bool // Bidi_Control
	nonchar    map[rune]bool
	scripts    []string // by number; the first three are Unknown, Common, Inherited
	script     [numRunes]uint8
	scriptAbbr map[string]string // Latn to Latin
	extensions map[rune][]string
	hidden     map[rune]bool
	prototype  map[rune]string

	categoryAbbr map[string]string // Nonspacing_Mark to Mn
	variations   []string          // of characters that are not ASCII, as emoji
	variants     [][]rune          // a base and its selector

	newest newest
	derived
}

func load(dir, hiddenGo string) (*data, error) {
	d := &data{
		decomp: map[rune][]rune{}, tag: map[rune]string{},
		scripts: []string{"Unknown", "Common", "Inherited"}, scriptAbbr: map[string]string{},
		extensions: map[rune][]string{}, categoryAbbr: map[string]string{},
	}
	for _, step := range []struct {
		file string
		read func([]string, rune, rune) error
	}{
		{"UnicodeData.txt", d.readUnicodeData()},
		{"DerivedNormalizationProps.txt", d.readNormProps()},
		{"DerivedCoreProperties.txt", pick(&d.ignorable, "Default_Ignorable_Code_Point")},
		{"PropList.txt", both(pick(&d.bidiFormat, "Bidi_Control"), pick(&d.nonchar, "Noncharacter_Code_Point"))},
		{"PropertyValueAliases.txt", d.readAliases},
		{"Scripts.txt", d.readScripts},
		{"ScriptExtensions.txt", d.readExtensions},
		{"StandardizedVariants.txt", d.readVariants},
		{"emoji/emoji-variation-sequences.txt", d.readEmojiVariations},
	} {
		if err := d.each(dir, step.file, step.read); err != nil {
			return nil, err
		}
	}
	var err error
	d.hidden, err = readHidden(hiddenGo)
	return d, err
}

// each reads one file: fields parted by ";", comments after "#". A first field
// of the form X or X..Y becomes lo, hi. "# @missing:" lines are data.
func (d *data) each(dir, name string, f func(fields []string, lo, hi rune) error) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	if sum != unicodeDataSum && !saysVersion(name, text) {
		return fmt.Errorf("%s is not of version %s", name, version)
	}
	d.sources = append(d.sources, name+" "+sum)
	sc := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		if rest, ok := strings.CutPrefix(line, "# @missing: "); ok {
			line = rest + ";missing"
		}
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(line, ";")
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		lo, hi := span(fields[0])
		if err := f(fields, lo, hi); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return sc.Err()
}

// saysVersion looks for the version where the file says it: in its first lines.
func saysVersion(name string, text []byte) bool {
	head := string(text[:min(len(text), 1500)])
	if strings.HasPrefix(name, "emoji/") {
		return strings.Contains(head, "Version: 15.0\n") || strings.Contains(head, "Emoji Version 15.0 ")
	}
	return strings.Contains(head, strings.TrimSuffix(filepath.Base(name), ".txt")+"-"+version)
}

// span reads "X" or "X..Y"; for anything else it returns 0, -1.
func span(s string) (lo, hi rune) {
	a, b, ok := strings.Cut(s, "..")
	if !ok {
		b = a
	}
	x, err1 := strconv.ParseUint(a, 16, 32)
	y, err2 := strconv.ParseUint(b, 16, 32)
	if err1 != nil || err2 != nil {
		return 0, -1
	}
	return rune(x), rune(y)
}

func runes(s string) (out []rune, err error) {
	for _, f := range strings.Fields(s) {
		x, err := strconv.ParseUint(f, 16, 32)
		if err != nil {
			return nil, err
		}
		out = append(out, rune(x))
	}
	return out, nil
}

func (d *data) readUnicodeData() func([]string, rune, rune) error {
	first := rune(-1)
	return func(f []string, r, _ rune) error {
		lo := r
		if strings.HasSuffix(f[1], ", Last>") {
			lo = first
		}
		first = r
		class, err := strconv.ParseUint(f[3], 10, 8)
		if err != nil {
			return err
		}
		for ; lo <= r; lo++ {
			d.category[lo], d.ccc[lo] = f[2], uint8(class)
		}
		if f[5] == "" {
			return nil
		}
		if f[5][0] == '<' {
			d.tag[r], f[5], _ = strings.Cut(f[5], " ")
		}
		d.decomp[r], err = runes(f[5])
		return err
	}
}

func pick(set *map[rune]bool, prop string) func([]string, rune, rune) error {
	*set = map[rune]bool{}
	return func(f []string, lo, hi rune) error {
		if f[1] == prop && f[len(f)-1] != "missing" {
			for ; lo <= hi; lo++ {
				(*set)[lo] = true
			}
		}
		return nil
	}
}

func both(a, b func([]string, rune, rune) error) func([]string, rune, rune) error {
	return func(f []string, lo, hi rune) error {
		if err := a(f, lo, hi); err != nil {
			return err
		}
		return b(f, lo, hi)
	}
}

// readNormProps reads the exclusions, and the quick checks as "NFC_QC=M".
func (d *data) readNormProps() func([]string, rune, rune) error {
	exclusions := pick(&d.excluded, "Full_Composition_Exclusion")
	d.quick = map[string]map[rune]bool{"NFC_QC=N": {}, "NFC_QC=M": {}, "NFKC_QC=N": {}, "NFKC_QC=M": {}}
	return func(f []string, lo, hi rune) error {
		if len(f) == 3 && f[2] != "missing" {
			if set := d.quick[f[1]+"="+f[2]]; set != nil {
				for ; lo <= hi; lo++ {
					set[lo] = true
				}
			}
			return nil
		}
		return exclusions(f, lo, hi)
	}
}

func (d *data) readAliases(f []string, _, _ rune) error {
	switch f[0] {
	case "sc":
		d.scriptAbbr[f[1]] = f[2]
	case "gc":
		d.categoryAbbr[f[2]] = f[1]
	}
	return nil
}

func (d *data) readScripts(f []string, lo, hi rune) error {
	if f[len(f)-1] == "missing" {
		return nil
	}
	n := d.scriptNumber(f[1])
	for ; lo <= hi; lo++ {
		d.script[lo] = n
	}
	return nil
}

func (d *data) scriptNumber(name string) uint8 {
	n := slices.Index(d.scripts, name)
	if n < 0 {
		n = len(d.scripts)
		d.scripts = append(d.scripts, name)
	}
	return uint8(n)
}

func (d *data) readExtensions(f []string, lo, hi rune) error {
	if f[len(f)-1] == "missing" {
		return nil
	}
	var names []string
	for _, abbr := range strings.Fields(f[1]) {
		names = append(names, d.scriptAbbr[abbr])
	}
	slices.Sort(names)
	for ; lo <= hi; lo++ {
		d.extensions[lo] = names
	}
	return nil
}

func (d *data) readVariants(f []string, _, _ rune) error {
	seq, err := runes(f[0])
	d.variants = append(d.variants, seq)
	return err
}

// readEmojiVariations takes the variants of characters: those of emoji that are not ASCII as
// sequences (a digit needs U+20E3 to be an emoji), those of text (U+FE0E) as variants.
func (d *data) readEmojiVariations(f []string, _, _ rune) error {
	seq, err := runes(f[0])
	if err == nil && seq[1] == 0xFE0E {
		d.variants = append(d.variants, seq)
	} else if err == nil && seq[0] >= utf8.RuneSelf {
		d.variations = append(d.variations, string(seq))
	}
	return err
}

// readHidden reads the literal of hiddenRanges, so that the list exists once and
// the generator does not need a package that compiles.
func readHidden(path string) (map[rune]bool, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	set := map[rune]bool{}
	last := rune(-1)
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "hiddenRanges" {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			row := e.(*ast.CompositeLit).Elts
			lo, err1 := strconv.ParseInt(row[0].(*ast.BasicLit).Value, 0, 32)
			hi, err2 := strconv.ParseInt(row[1].(*ast.BasicLit).Value, 0, 32)
			if err1 != nil || err2 != nil || rune(lo) <= last || hi < lo {
				err = fmt.Errorf("%s: hiddenRanges is not sorted at %#x", path, lo)
				return false
			}
			for last = rune(lo); last <= rune(hi); last++ {
				set[last] = true
			}
			last = rune(hi)
		}
		return false
	})
	for plane := rune(0); plane < numRunes; plane += 0x10000 {
		set[plane|0xFFFE], set[plane|0xFFFF] = true, true
	}
	return set, err
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

func (d *data) loadConfusables(path string) error {
	text, err := readSum(path, "unhomoglyph-1.0.6/data.json", confusablesSum, &d.sources)
	if err != nil {
		return err
	}
	var m map[string]string
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.prototype = map[rune]string{}
	for from, to := range m {
		r, n := utf8.DecodeRuneInString(from)
		if n != len(from) {
			return fmt.Errorf("%s: source %+q is not one code point", path, from)
		}
		d.prototype[r] = to
	}
	return nil
}
