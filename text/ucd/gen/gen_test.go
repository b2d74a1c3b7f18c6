// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/text/ucd"
)

// loadPinned reads the sources of the pinned version that are installed. The confusables, which Debian
// does not have, come from the tables themselves if UNHOMOGLYPH_JSON is not set.
func loadPinned(t *testing.T) *data {
	t.Helper()
	const dir = "/usr/share/unicode"
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("needs Debian's unicode-data: %v", err)
	}
	d, err := load(dir, "../hidden.go")
	if err != nil {
		if strings.Contains(err.Error(), "not of version") {
			t.Skipf("needs Debian's unicode-data %s: %v", version, err)
		}
		t.Fatal(err)
	}
	if path := os.Getenv("UNHOMOGLYPH_JSON"); path != "" {
		if err := d.loadConfusables(path); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("UNHOMOGLYPH_JSON is not set: the confusables are taken from the tables")
		d.sources = append(d.sources, "unhomoglyph-1.0.6/data.json "+confusablesSum)
		d.prototype = map[rune]string{}
		for r := rune(0); r < numRunes; r++ {
			if to := ucd.Prototype(r); to != "" {
				d.prototype[r] = to
			}
		}
	}
	return d
}

// loadNewest reads the newest version too, if the environment says where it lies.
func loadNewest(t *testing.T) *data {
	t.Helper()
	d := loadPinned(t)
	path := os.Getenv("UNICODE_17_JSON")
	if path == "" {
		t.Skip("needs an export of npm @unicode/unicode-" + newestVersion + " in UNICODE_17_JSON: see main.go")
	}
	if err := d.loadNewest(path); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTablesAreCurrent derives every table again and compares it byte by byte.
func TestTablesAreCurrent(t *testing.T) {
	old, err := filepath.Glob("../tables_*.go")
	if err != nil || len(old) != len(tables) {
		t.Errorf("%d files of tables, not %d: %v %v", len(old), len(tables), old, err)
	}
	t.Run(version, func(t *testing.T) {
		d := loadPinned(t)
		d.derive()
		for _, x := range tables {
			if x.version == version {
				text, err := d.print(x)
				compareTable(t, x.file(), text, err)
			}
		}
	})
	t.Run(newestVersion, func(t *testing.T) {
		files, err := loadNewest(t).generate()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			compareTable(t, name, want, nil)
		}
	})
}

func compareTable(t *testing.T, name string, want []byte, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s is not what its sources give: run go generate ./text/ucd", name)
	}
}

// TestBits: the generator's names of the facts are package ucd's.
func TestBits(t *testing.T) {
	for bit, want := range map[int]ucd.Prop{
		hidden: ucd.Hidden, nfkcActive: ucd.NFKCActive, nfcActive: ucd.NFCActive, nfkcJoins: ucd.NFKCJoins,
		nfcJoins: ucd.NFCJoins, nonStarter: ucd.NonStarter, confusable: ucd.Confusable, opener: ucd.Opener,
		flagged: ucd.Flagged, lossy: ucd.Lossy, joining: ucd.Joining, emojiPart: ucd.EmojiPart, mark: ucd.Mark,
		illFormed: ucd.IllFormed, blank: ucd.Blank, bound: ucd.Bound,
	} {
		if ucd.Prop(bit) != want {
			t.Errorf("bit %#x is %#x in package ucd", bit, want)
		}
	}
	if openerSet != ucd.OpenerSet || version != ucd.Version || newestVersion != ucd.NewestVersion {
		t.Error("OpenerSet or a version")
	}
}

// TestCheck breaks each thing that the generator vouches for.
func TestCheck(t *testing.T) {
	sound := loadNewest(t)
	for want, breakIt := range map[string]func(*data){
		"U+202E (Cf) is not in hiddenRanges":         func(d *data) { delete(d.hidden, 0x202E) },
		"U+1DAB0 (Cf) is not in hiddenRanges":        func(d *data) { d.newest.category[0x1DAB0] = "Cf" },
		"4326 hidden code points":                    func(d *data) { d.hidden['x'] = true },
		"composite U+00E9 is hidden or confusable":   func(d *data) { d.prototype[0xE9] = "e" },
		"561 reachable confusables":                  func(d *data) { delete(d.prototype, 0x430) },
		"U+1D16D is no confusable non-starter":       func(d *data) { d.ccc[0x1D16D] = 0 },
		"U+0430 is replaced by 0x9":                  func(d *data) { d.prototype[0x430] = "\t" },
		"U+200B is hidden and a non-starter":         func(d *data) { d.ccc[0x200B] = 220 },
		"U+09BE: form 0 active is false, not true":   func(d *data) { delete(d.quick["NFC_QC=M"], 0x9BE) },
		"Hangul syllable U+AC00 is hidden or confus": func(d *data) { d.prototype[0xAC00] = "7" },
	} {
		d := *sound
		d.hidden, d.prototype, d.quick = maps.Clone(d.hidden), maps.Clone(d.prototype), maps.Clone(d.quick)
		d.quick["NFC_QC=M"] = maps.Clone(d.quick["NFC_QC=M"])
		breakIt(&d)
		d.derive()
		if err := d.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %.300v", want, err)
		}
	}
}

func TestSources(t *testing.T) {
	if _, err := load(t.TempDir(), "../hidden.go"); err == nil {
		t.Error("no error for an empty directory")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "UnicodeData.txt"), []byte("0041;A;Lu;0;L;;;;;N;;;;;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := load(dir, "../hidden.go"); err == nil || !strings.Contains(err.Error(), "not of version") {
		t.Errorf("UnicodeData.txt of another version: %v", err)
	}
	path := filepath.Join(dir, "data.json")
	if err := os.WriteFile(path, []byte(`{"a":"b"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := new(data).loadConfusables(path); err == nil {
		t.Error("other confusables were accepted")
	}
	if err := new(data).loadNewest(path); err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("another file of the newest version: %v", err)
	}
	path = filepath.Join(dir, "hidden.go")
	if err := os.WriteFile(path, []byte("package x\nvar hiddenRanges = [...]r{{9, 9, A}, {5, 6, B}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readHidden(path); err == nil {
		t.Error("an unsorted list was accepted")
	}
}
