// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// policyWords are the words of the glossary of ARCHITECTURE.md that end the names of no other
// types than those that it lists. Each of them had up to eleven types in as many senses.
var policyWords = []string{"action", "decision", "event", "mode", "outcome", "verdict"}

const maxTerms = 40

// term is a row of the glossary: its words, and what stands in the column "in code".
var term = regexp.MustCompile(`(?m)^\| ([a-z][^|]*) \| .* \| ([^|]*) ?\|$`)

// glossary returns the code of each term of the page.
func glossary(page string) map[string]string {
	_, page, _ = strings.Cut(page, "\n## Words\n")
	page, _, _ = strings.Cut(page, "\n## ")
	out := map[string]string{}
	for _, m := range term.FindAllStringSubmatch(page, -1) {
		if m[1] != "word" {
			out[m[1]] = m[2]
		}
	}
	return out
}

// lastWord is the last word of a name in camel case, in lower case.
func lastWord(name string) string {
	i := strings.LastIndexFunc(name, func(r rune) bool { return 'A' <= r && r <= 'Z' })
	return strings.ToLower(name[max(i, 0):])
}

// typesOf lists the types that f declares, inside functions too, whose names end with word.
func typesOf(f *ast.File, word string) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, is := n.(*ast.TypeSpec); is && lastWord(s.Name.Name) == word {
			names = append(names, s.Name.Name)
		}
		return true
	})
	return names
}

// TestGlossary holds each policy word to one sense: the types named by it are those that the
// glossary lists.
func TestGlossary(t *testing.T) {
	terms := glossary(string(readFile(t, architecture)))
	if n := len(terms); n < 20 || n > maxTerms {
		t.Errorf("%s: the glossary has %d terms; it may have %d: take one out, or say two in one row", architecture, n, maxTerms)
	}
	declared := map[string]map[string]bool{}
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		pkg := path.Base(filepath.ToSlash(filepath.Dir(f.path)))
		for _, word := range policyWords {
			for _, name := range typesOf(f.ast, word) {
				if declared[word] == nil {
					declared[word] = map[string]bool{}
				}
				declared[word][pkg+"."+name] = true
				if !strings.Contains(terms[word], "`"+pkg+"."+name+"`") {
					t.Errorf("%s declares the type %s. The glossary of %s has %q for %s only: use that type, or name the new one by its own word", f.path, name, architecture, word, terms[word])
				}
			}
		}
	}
	for _, word := range policyWords {
		for _, m := range inBackticks.FindAllStringSubmatch(terms[word], -1) {
			if !declared[word][m[1]] {
				t.Errorf("%s: the row %q lists %s, which is no type of that name", architecture, word, m[1])
			}
		}
		if len(declared[word]) == 0 {
			t.Errorf("no type is named by %q: the row of the glossary, or this test, is stale", word)
		}
	}
}

// TestGlossaryCanFail proves that the check sees what it looks for.
func TestGlossaryCanFail(t *testing.T) {
	const src = "package p\ntype Outcome int\ntype caseOutcome struct{}\ntype OutcomeList []int\ntype outcome = int\nfunc f() { type innerOutcome int }"
	f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(typesOf(f, "outcome"), " "); got != "Outcome caseOutcome outcome innerOutcome" {
		t.Errorf("types: %q", got)
	}
	page := "\n## Words\n\n| word | meaning | in code |\n|---|---|---|\n| mode | What \\| it does. | `policy.Mode` |\n| call, result | A request. | |\n\n## Layers\n| no | term | |\n"
	terms := glossary(page)
	if got := slices.Sorted(maps.Keys(terms)); !slices.Equal(got, []string{"call, result", "mode"}) || terms["mode"] != "`policy.Mode`" && terms["mode"] != "`policy.Mode` " {
		t.Errorf("terms: %q", terms)
	}
}
