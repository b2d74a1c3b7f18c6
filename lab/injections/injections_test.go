// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

func rows(t *testing.T) []Row {
	t.Helper()
	all, err := Rows(Seed)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// digest is that of the published rows, uncompressed. CARD.md names it too.
const digest = "0b7b6d424273d25363a7bea3e73b8274ffe90022d8dc6abd40cb675199b9376d"

func TestReproducible(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, "rows.jsonl", rows(t)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	got := hex.EncodeToString(sum[:])
	if got != digest {
		t.Errorf("the rows have the digest %s: write it here and into CARD.md", got)
	}
	card, err := os.ReadFile("CARD.md")
	if err != nil || !strings.Contains(string(card), digest) {
		t.Errorf("CARD.md does not name the digest (%v)", err)
	}
}

// The rows are read back as they were, by the reader of the other collections.
func TestWrite(t *testing.T) {
	all := rows(t)
	path := filepath.Join(t.TempDir(), "rows.jsonl.gz")
	var b bytes.Buffer
	if err := Write(&b, path, all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	i := 0
	err := datatest.Read(path, func(r datatest.Row) error {
		if w := all[i]; r.Text != w.Text || r.ID != w.ID || r.Attack != w.Attack || r.Family != w.Family || r.Licence != Licence {
			t.Fatalf("row %d reads %+v, was %+v", i, r, w)
		}
		i++
		return nil
	})
	if err != nil || i != len(all) {
		t.Errorf("%d of %d rows: %v", i, len(all), err)
	}
}

// Every language has as many honest texts as attacks, on both sides of the split.
func TestBalance(t *testing.T) {
	type key struct {
		language string
		held     bool
	}
	attacks, honest := map[key]int{}, map[key]int{}
	for _, r := range rows(t) {
		if r.Test != slices.Contains(testAuthors, r.Author) {
			t.Fatalf("%s by %q: test %v", r.ID, r.Author, r.Test)
		}
		switch k := (key{r.Language, r.Held}); {
		case r.Test:
		case r.Attack:
			attacks[k]++
		default:
			honest[k]++
		}
	}
	for k, n := range attacks {
		if n < 20 || honest[k] < n*8/10 {
			t.Errorf("%v: %d attacks, %d honest texts", k, n, honest[k])
		}
	}
	if len(attacks) != 42 {
		t.Errorf("%d languages and sides", len(attacks))
	}
}

// What is held shares no style but the wrappers, no goal, no carrier and no honest family
// with the rest.
func TestSplit(t *testing.T) {
	for _, of := range []func(Row) string{
		func(r Row) string {
			if r.Carrier == "none" {
				return ""
			}
			return r.Carrier
		},
		func(r Row) string {
			if r.Family == "wrapped" || r.Family == "quoted" || r.Family == "carried" {
				return ""
			}
			return r.Family
		},
		func(r Row) string { _, goal, _ := strings.Cut(r.Group, "/"); return goal },
	} {
		sides := map[string]bool{}
		for _, r := range rows(t) {
			k := of(r)
			if k == "" {
				continue
			}
			if held, known := sides[k]; known && held != r.Held {
				t.Fatalf("%s stands on both sides", k)
			}
			sides[k] = r.Held
		}
	}
}

// No row of a collection of others is among ours, in letters and digits.
func TestOwn(t *testing.T) {
	dir, err := datatest.CorporaDir(filepath.Join("..", ".."))
	if errors.Is(err, datatest.ErrAbsent) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]string{}
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		for _, list := range l.parts {
			for _, s := range list {
				own[letters(s)] = s
			}
		}
	}
	for _, r := range rows(t) {
		own[letters(r.Text)] = r.ID
	}
	paths, err := datatest.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		err := datatest.Read(path, func(r datatest.Row) error {
			if of := own[letters(r.Text)]; of != "" && len(r.Text) > 12 {
				t.Errorf("%s of %s is %q here", r.ID, r.Family, of)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func letters(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return r < 'a' && (r < '0' || r > '9') || r > 'z' && r < 0x80 }), " ")
}

func TestParse(t *testing.T) {
	whole := func(change func(string) string) string {
		b, err := files.ReadFile("sentences/en.txt")
		if err != nil {
			t.Fatal(err)
		}
		return change(string(b))
	}
	for name, s := range map[string]string{
		"nothing":          "",
		"unknown part":     "# x\n== other\na\n",
		"no part":          "# x\na sentence\n",
		"a part twice":     whole(func(s string) string { return s + "\n== law\nThe end.\n" }),
		"a sentence twice": "# x\n== law\na\na\n",
		"a part missing":   whole(func(s string) string { return strings.Replace(s, "== law", "== mail", 1) }),
	} {
		if _, err := parse("xx", s); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# English\n== law\nOne.\n")
	f.Add("\n== \n== law\n\n")
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := parse("xx", s); (l == nil) == (err == nil) {
			t.Fatalf("%v %v", l, err)
		}
	})
}

func FuzzEscaped(f *testing.F) {
	f.Add("a\"b\\c\nd\u00e9\U0001f600", true)
	f.Add("\x00\x1f\x7f\u2028", false)
	f.Fuzz(func(t *testing.T, s string, plain bool) {
		for _, r := range escaped(s, plain) {
			if r < 0x20 || !plain && r > 0x7e {
				t.Fatalf("%q holds %q", s, r)
			}
		}
	})
}
