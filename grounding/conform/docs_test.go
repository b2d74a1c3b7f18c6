// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

const (
	docPath  = "../../docs/CONFORMANCE.md"
	docBegin = "<!-- written by 'make docs' -->\n"
	docEnd   = "<!-- /written -->\n"
	docHead  = "# Conformance\n\nWhat Pellucid does of each document that it implements, shown by which tests, and where it departs from the letter.\n`grounding/conform/clauses_test.go` names the code of each clause.\n\n"
)

// TestDocsConformance holds what is said of each document against the code, and of
// the grounding RFC against the corpus and what the adapter scores as well. With
// PELLUCID_UPDATE_DOCS set it rewrites a stale file, and still fails.
func TestDocsConformance(t *testing.T) {
	section := docBegin + veritasSection(t) + otherSections(t) + docEnd
	old, err := os.ReadFile(docPath)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if len(old) == 0 {
		old = []byte(docHead)
	}
	fresh := replaceSection(string(old), section)
	if fresh == string(old) {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Fatal("docs/CONFORMANCE.md is stale: run 'make docs'")
	}
	if err := os.WriteFile(docPath, []byte(fresh), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Error("docs/CONFORMANCE.md was stale and has been rewritten")
}

// replaceSection leaves the other sections as they are.
func replaceSection(doc, section string) string {
	before, rest, found := strings.Cut(doc, docBegin)
	if !found {
		return doc + section
	}
	_, after, _ := strings.Cut(rest, docEnd)
	return before + section + after
}

func veritasSection(t *testing.T) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "## Veritas MCP grounding, RFC v0.1\n\n")
	fmt.Fprintf(&b, "Corpus %s, sanitation %s, Unicode %s. A MUST vector is the RFC's letter, a SHOULD\nvector more than that. ", corpus.Version, scrub.Veritas.Version(), scrub.UnicodeVersion)
	fmt.Fprintf(&b, "The rates are those of package `ground`\non SQLite; `pellucid-ground conform` measures any adapter over MCP.\n\n### Pass rate by family\n\n")
	rateTable(t, &b)
	fmt.Fprintf(&b, "\n### Clauses\n\nVectors are MUST + SHOULD.\n\n")
	clauseTable(t, &b)
	fmt.Fprintf(&b, "\n### Deviations from the letter\n\n| clause | the letter | what we do | why |\n|---|---|---|---|\n")
	for _, d := range departures {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", d.clause, cell(d.letter), cell(d.ours), cell(d.why))
	}
	return b.String()
}

func otherSections(t *testing.T) string {
	var b bytes.Buffer
	for _, o := range others {
		fmt.Fprintf(&b, "\n## %s\n\n| part | asks for | status | shown by |\n|---|---|---|---|\n", o.title)
		for _, c := range o.clauses {
			status := cmp.Or(c.status, "met")
			if len(c.code) == 0 || len(c.tests) == 0 {
				status = "not yet"
			}
			named(t, c.code, false)
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.number, cell(c.asks), status, named(t, c.tests, true))
		}
		b.WriteByte('\n')
		for _, d := range o.departures {
			fmt.Fprintf(&b, "* %s\n", d)
		}
	}
	return b.String()
}

// named checks that names of the code, or of tests, are there, and lists the first two.
func named(t *testing.T, refs []string, tests bool) string {
	var list []string
	for _, ref := range refs {
		checkReference(t, ref, tests)
		list = append(list, "`"+ref+"`")
	}
	if len(list) > 2 {
		list = append(list[:2], "\u2026")
	}
	return cmp.Or(strings.Join(list, ", "), "\u2013")
}

func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "[", `\[`, "*", `\*`, "_", `\_`).Replace(s)
}

func rateTable(t *testing.T, b *bytes.Buffer) {
	scopes := []corpus.Scope{corpus.Literal, corpus.Mixed}
	var reps []*Report
	for _, s := range scopes {
		reps = append(reps, run(t, &Runner{Adapter: newGrounding(t, attest.Policy{Scope: scrubScope(s)}), Scope: s}))
	}
	b.WriteString("| family | MUST, literal | SHOULD, literal | MUST, mixed | SHOULD, mixed |\n|---|--:|--:|--:|--:|\n")
	for i, f := range corpus.Families {
		fmt.Fprintf(b, "| %s |", f)
		for _, r := range reps {
			tally := r.Families[i]
			fmt.Fprintf(b, " %s | %s |", rate(tally.MustPassed, tally.Must), rate(tally.ShouldPassed, tally.Should))
		}
		b.WriteByte('\n')
	}
	var failed []string
	for i, r := range reps {
		for _, v := range r.Vectors {
			if v.Status == "fail" {
				failed = append(failed, fmt.Sprintf("* %s, scope %s: %s\n", v.ID, scopes[i], v.Faults[0].What))
			}
		}
	}
	if len(failed) > 0 {
		b.WriteString("\nNot passed:\n\n" + strings.Join(failed, ""))
	}
}

func clauseTable(t *testing.T, b *bytes.Buffer) {
	vectors, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("| clause | asks for | status | vectors, or tests |\n|---|---|---|--:|\n")
	for _, c := range veritas {
		must, should := 0, 0
		for _, v := range vectors {
			switch {
			case !slices.Contains(v.Clauses, c.vector):
			case v.Must:
				must++
			default:
				should++
			}
		}
		status, evidence := "met", named(t, c.tests, true)
		if slices.ContainsFunc(departures, func(d departure) bool { return d.clause == c.number }) {
			status = "met, with deviations"
		}
		if c.vector != "" {
			evidence = fmt.Sprintf("%d + %d", must, should)
			if must == 0 {
				t.Errorf("clause %s has no MUST vector", c.number)
			}
		}
		if len(c.code) == 0 || c.vector == "" && len(c.tests) == 0 {
			status = "not yet"
		}
		named(t, c.code, false)
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", c.number, cell(c.asks), status, evidence)
	}
}

// checkReference reports a package that is not there, or a name that it, or that its
// tests, do not declare.
func checkReference(t *testing.T, ref string, tests bool) {
	dir, name, named := strings.Cut(ref, ".")
	files, err := os.ReadDir(path.Join("..", "..", dir))
	if err != nil || len(files) == 0 {
		t.Errorf("%s: no such package", ref)
	}
	for _, f := range files {
		if !named {
			return
		}
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") != tests {
			continue
		}
		src, err := parser.ParseFile(token.NewFileSet(), path.Join("..", "..", dir, f.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(src.Decls, func(d ast.Decl) bool { return declares(d, name) }) {
			return
		}
	}
	t.Errorf("%s: no such name", ref)
}

func declares(d ast.Decl, name string) bool {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Recv == nil && d.Name.Name == name
	case *ast.GenDecl:
		return slices.ContainsFunc(d.Specs, func(s ast.Spec) bool {
			switch s := s.(type) {
			case *ast.TypeSpec:
				return s.Name.Name == name
			case *ast.ValueSpec:
				return slices.ContainsFunc(s.Names, func(n *ast.Ident) bool { return n.Name == name })
			}
			return false
		})
	}
	return false
}

// TestDeparturesHaveClauses: each is about a clause that the table has.
func TestDeparturesHaveClauses(t *testing.T) {
	for _, d := range departures {
		if !slices.ContainsFunc(veritas, func(c clause) bool { return c.number == d.clause }) {
			t.Errorf("%s: no such clause", d.clause)
		}
	}
}

func TestReplaceSection(t *testing.T) {
	doc := "a\n" + docBegin + "old\n" + docEnd + "b\n"
	if got := replaceSection(doc, docBegin+"new\n"+docEnd); got != "a\n"+docBegin+"new\n"+docEnd+"b\n" {
		t.Error(got)
	}
	if got := replaceSection("a\n", "s\n"); got != "a\ns\n" {
		t.Error(got)
	}
}
