// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

// briefs are texts of other authors, each to a brief of its own, that only the deep model is trained on.
//
//go:embed texts/*.txt briefs/*.txt
var texts embed.FS

// A written text is one that an author wrote whole, and not a generator.
type written struct {
	author   string // name of the file
	attack   bool
	family   string
	language string
	text     string
}

// asking are the authors whose honest texts are what users ask a model: in another text the same
// words would be an order, so that they stand alone.
var asking = []string{"direct", "phrases", "requests"}

// testAuthors are the authors whose texts are for testing only: a model that is never trained on them
// shows with them how well it does on a new author.
var testAuthors = []string{"letters", "persuasion", "records", "repositories"}

// Briefs are the texts that only the deep model is trained on.
func Briefs() (out []Row, err error) {
	list, err := authored("briefs")
	for i, w := range list {
		out = append(out, Row{ID: fmt.Sprintf("brief-%05d", i), Attack: w.attack, Family: w.author, Language: w.language, Group: w.author, Author: w.author, Carrier: "none", Licence: Licence, Text: w.text})
	}
	return out, err
}

// authored returns the texts of all authors of a folder.
func authored(folder string) (out []written, err error) {
	names, err := texts.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, f := range names {
		b, err := texts.ReadFile(folder + "/" + f.Name())
		if err != nil {
			return nil, err
		}
		list, err := parseTexts(string(b))
		if err != nil {
			return nil, fmt.Errorf("injections: %s: %w", f.Name(), err)
		}
		for _, w := range list {
			w.author = strings.TrimSuffix(f.Name(), path.Ext(f.Name()))
			out = append(out, w)
		}
	}
	return out, nil
}

// parseTexts reads a file of texts: a first line that says what they are, then sections, each behind
// a line "== attack FAMILY LANGUAGE" or "== honest FAMILY LANGUAGE", with one text a line, in which
// \n is the end of a line, \\ a backslash and \ufe0f the selector of an emoji.
func parseTexts(s string) (out []written, err error) {
	var in written
	seen := map[string]bool{}
	for i, line := range strings.Split(s, "\n") {
		head, isHead := strings.CutPrefix(line, "== ")
		switch field := strings.Fields(head); {
		case i == 0 || line == "":
		case isHead && (len(field) != 3 || field[0] != "attack" && field[0] != "honest"):
			return nil, fmt.Errorf("line %d: not the head of a section", i+1)
		case isHead:
			in = written{attack: field[0] == "attack", family: field[1], language: field[2]}
		case in.language == "":
			return nil, fmt.Errorf("line %d: a text before the first section", i+1)
		case seen[line]:
			return nil, fmt.Errorf("line %d: the text stands twice", i+1)
		default:
			seen[line] = true
			in.text = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\ufe0f`, "\ufe0f").Replace(line)
			out = append(out, in)
		}
	}
	return out, nil
}

// written makes the rows of the authors' texts: each alone, and of those that are trained on every
// attack and every second honest one also among other sentences of its language.
func (m *maker) written() error {
	list, err := authored("texts")
	if err != nil {
		return err
	}
	// Those of test authors come last, so that the rows before do not depend on them.
	test := func(w written) bool { return slices.Contains(testAuthors, w.author) }
	list = slices.Concat(slices.DeleteFunc(slices.Clone(list), test), slices.DeleteFunc(list, func(w written) bool { return !test(w) }))
	for i, w := range list {
		own := slices.IndexFunc(m.languages, func(l *language) bool { return l.code == w.language })
		if own < 0 {
			return fmt.Errorf("injections: texts/%s.txt: no sentences of the language %s", w.author, w.language)
		}
		r := Row{Attack: w.attack, Family: w.author, Language: w.language, Group: w.author + "/" + w.family, Author: w.author, Carrier: "none", Text: w.text}
		if w.attack {
			r.Order = w.text
		}
		r.Test = test(w)
		m.add(r)
		if r.Test {
			continue
		}
		if w.attack || i%2 == 0 && !slices.Contains(asking, w.author) {
			parts := m.context(m.languages[own], m.between(1, 4))
			m.add(m.carried(r, slices.Insert(parts, m.IntN(len(parts)+1), w.text)))
		}
	}
	return nil
}
