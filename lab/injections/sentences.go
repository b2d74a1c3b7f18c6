// SPDX-License-Identifier: Apache-2.0

package injections

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"
)

//go:embed sentences/*.txt
var files embed.FS

// A language holds the sentences of one language by their part, such as "override".
type language struct {
	code  string // of ISO 639-1, or of ISO 639-3 where that has none
	parts map[string][]string
}

// leads are the parts that stand before an order and make it one to a model.
var leads = []string{"override", "notice", "address", "turn", "part"}

// goals are what an attack wants, as groups of sentences.
var goals = []string{"send", "pay", "access", "destroy", "reveal"}

// whole are the parts whose sentences are attacks without a lead.
var whole = []string{"answer", "prefer", "pretext", "story"}

// benign are the families of honest sentences.
var benign = []string{"agents", "api", "ask", "docs", "howto", "law", "log", "mail", "plain", "recipe", "result"}

// read returns the languages in order of code.
func read() ([]*language, error) {
	names, err := files.ReadDir("sentences")
	if err != nil {
		return nil, err
	}
	var out []*language
	for _, f := range names {
		b, err := files.ReadFile("sentences/" + f.Name())
		if err != nil {
			return nil, err
		}
		l, err := parse(strings.TrimSuffix(f.Name(), path.Ext(f.Name())), string(b))
		if err != nil {
			return nil, fmt.Errorf("injections: %s: %w", f.Name(), err)
		}
		out = append(out, l)
	}
	return out, nil
}

// parse reads a file of sentences: a first line that says which language it is, then
// parts, each behind a line "== NAME", with one sentence a line.
func parse(code, s string) (*language, error) {
	l := &language{code: code, parts: map[string][]string{}}
	part := ""
	for i, line := range strings.Split(s, "\n") {
		name, isPart := strings.CutPrefix(line, "== ")
		switch {
		case i == 0 || line == "":
		case isPart && l.parts[name] != nil:
			return nil, fmt.Errorf("line %d: the part stands twice", i+1)
		case isPart && !known(name):
			return nil, fmt.Errorf("line %d: an unknown part", i+1)
		case isPart:
			part = name
		case part == "":
			return nil, fmt.Errorf("line %d: a sentence before the first part", i+1)
		case slices.Contains(l.parts[part], line):
			return nil, fmt.Errorf("line %d: the sentence stands twice", i+1)
		default:
			l.parts[part] = append(l.parts[part], line)
		}
	}
	for _, name := range slices.Concat(leads, goals, whole, benign) {
		if len(l.parts[name]) == 0 {
			return nil, fmt.Errorf("the part %s is missing", name)
		}
	}
	return l, nil
}

func known(part string) bool {
	return slices.Contains(leads, part) || slices.Contains(goals, part) || slices.Contains(whole, part) || slices.Contains(benign, part)
}
