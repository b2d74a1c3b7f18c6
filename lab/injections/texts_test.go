// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"slices"
	"strings"
	"testing"
)

// Every author has honest texts, and nothing that the generator calls a style or a family.
func TestAuthored(t *testing.T) {
	list, err := authored("texts")
	if err != nil {
		t.Fatal(err)
	}
	attacks, honest := map[string]int{}, map[string]int{}
	seen := map[string]string{}
	for _, w := range list {
		if w.attack {
			attacks[w.author]++
		} else {
			honest[w.author]++
		}
		if of := seen[letters(w.text)]; of != "" && len(w.text) > 40 {
			t.Errorf("%.60q is also one of %s", w.text, of)
		}
		seen[letters(w.text)] = w.author
	}
	for author, n := range honest {
		if n < 100 || attacks[author] > n*11/10 {
			t.Errorf("%s: %d attacks, %d honest texts", author, attacks[author], n)
		}
		if slices.Contains(slices.Concat(leads, goals, whole, benign), author) {
			t.Errorf("%s is the name of a part", author)
		}
	}
	if len(honest) < 6 || len(attacks) != len(honest)-3 {
		t.Errorf("%d authors with honest texts, %d with attacks", len(honest), len(attacks))
	}
}

func TestParseTexts(t *testing.T) {
	got, err := parseTexts("# x\n== attack mail de\na\\nb \\\\n\n\n== honest log en\nc\n")
	want := []written{{"", true, "mail", "de", "a\nb \\n"}, {"", false, "log", "en", "c"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, s := range map[string]string{
		"no section":       "# x\na\n",
		"short head":       "# x\n== attack mail\na\n",
		"neither":          "# x\n== other mail en\na\n",
		"the same twice":   "# x\n== attack mail en\na\na\n",
		"in two sections":  "# x\n== attack mail en\na\n== honest mail en\na\n",
		"too long a head":  "# x\n== attack mail en de\na\n",
		"nothing but head": "# x\n==  \n",
	} {
		if _, err := parseTexts(s); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzParseTexts(f *testing.F) {
	f.Add("# x\n== attack mail en\na\\nb\n")
	f.Add("\n== honest a b\n\\\\\n== ")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := parseTexts(s)
		if err != nil && list != nil {
			t.Fatal("texts beside an error")
		}
		total := 0
		for _, w := range list {
			total += len(w.text)
			if w.language == "" || w.family == "" {
				t.Fatalf("%+v", w)
			}
		}
		if total > len(s) {
			t.Fatalf("%d bytes out of %d", total, len(s))
		}
	})
}

func FuzzParagraphs(f *testing.F) {
	f.Add("---\ntitle: a\n---\n\n# A title that is long enough\n\nand a paragraph of it\r\n")
	f.Add("---\n")
	f.Fuzz(func(t *testing.T, s string) {
		total := 0
		for _, p := range paragraphs(s) {
			if strings.Contains(p, "\n\n") || len(p) < 20 {
				t.Fatalf("%q", p)
			}
			total += len(p)
		}
		if total > len(s) {
			t.Fatalf("%d bytes out of %d", total, len(s))
		}
	})
}

// TestBriefs: the texts of the deep model are of 35 briefs, and none of them is one of a test author.
func TestBriefs(t *testing.T) {
	list, err := Briefs()
	if err != nil {
		t.Fatal(err)
	}
	authors, attacks := map[string]bool{}, 0
	for _, r := range list {
		authors[r.Author] = true
		if r.Attack {
			attacks++
		}
		if slices.Contains(testAuthors, r.Author) || r.Text == "" || r.Language == "" {
			t.Errorf("%+v", r)
		}
	}
	if len(authors) != 35 || len(list) < 4800 || attacks < 2100 {
		t.Errorf("%d authors, %d texts, %d attacks", len(authors), len(list), attacks)
	}
}
