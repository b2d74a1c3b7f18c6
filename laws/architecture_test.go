// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	architecture = "docs/ARCHITECTURE.md"
	writtenBegin = "<!-- written by 'make docs' -->\n"
	writtenEnd   = "<!-- /written -->\n"
)

// TestDocsArchitecture compares the table of rooms in ARCHITECTURE.md with the import policy. With
// PELLUCID_UPDATE_DOCS set it rewrites a stale page, and still fails.
func TestDocsArchitecture(t *testing.T) {
	page := string(readFile(t, architecture))
	before, rest, begins := strings.Cut(page, writtenBegin)
	_, after, ends := strings.Cut(rest, writtenEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the line %q or %q", architecture, writtenBegin, writtenEnd)
	}
	want := before + writtenBegin + rooms(importPolicy) + writtenEnd + after
	if page == want {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Fatalf("%s is stale: run make docs", architecture)
	}
	if err := os.WriteFile(rooted(architecture), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s was stale and has been rewritten", architecture)
}

// rooms writes a row for each folder that the policy lists, with its sentence in the policy.
func rooms(policy string) string {
	var b strings.Builder
	b.WriteString("| folder | |\n|---|---|\n")
	for line := range strings.Lines(policy) {
		if name, sentence, heads := strings.Cut(strings.TrimSpace(line), ":"); heads && strings.HasPrefix(name, "# ") {
			fmt.Fprintf(&b, "| `%s/` | %s |\n", name[2:], strings.TrimSpace(sentence))
		}
	}
	return b.String()
}

var (
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	nameInCode  = regexp.MustCompile(`^([a-z][a-z0-9/]*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
)

// notCode are the endings of names of files that are no Go.
var notCode = []string{".yaml", ".json", ".jsonl", ".md", ".mod"}

// paths are the endings of names of files and folders that must exist.
var paths = []string{".go", ".txt", "/"}

// TestArchitectureNames fails where ARCHITECTURE.md names a file, a folder, or a function or
// type of a package that does not exist. In the page `a/b.go` and `a/b/` are paths from the root
// of the repository, and `pkg.Name` or `pkg.Type.Method` is declared in a package called pkg.
func TestArchitectureNames(t *testing.T) {
	page, declared := string(readFile(t, architecture)), declarations(goFiles(t))
	names := 0
	for _, m := range inBackticks.FindAllStringSubmatch(page, -1) {
		if wrong, is := wrongName(m[1], declared); wrong != "" {
			t.Errorf("%s: %s", architecture, wrong)
		} else if is {
			names++
		}
	}
	if names < 60 {
		t.Errorf("only %d names were checked", names)
	}
}

// wrongName returns what is wrong with a name in backticks, and whether it is one to check.
func wrongName(name string, declared map[string]map[string]bool) (wrong string, is bool) {
	switch code := nameInCode.FindStringSubmatch(name); {
	case slices.ContainsFunc(paths, func(end string) bool { return strings.HasSuffix(name, end) }):
		if _, err := os.Stat(rooted(name)); err != nil {
			return name + " does not exist", true
		}
		return "", true
	case code == nil || slices.Contains(notCode, path.Ext(name)):
		return "", false
	case !declared[path.Base(code[1])][code[2]]:
		return name + " is not declared", true
	}
	return "", true
}

// declarations returns what the files declare, tests excepted, by package: functions, types,
// variables, constants, and methods and fields as "Type.Name".
func declarations(files []*goFile) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range files {
		in := f.ast.Name.Name
		if out[in] == nil {
			out[in] = map[string]bool{}
		}
		if strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range declaredBy(d) {
				out[in][name] = true
			}
		}
	}
	return out
}

func declaredBy(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}
		}
		on := d.Recv.List[0].Type
		if star, is := on.(*ast.StarExpr); is {
			on = star.X
		}
		if generic, is := on.(*ast.IndexExpr); is {
			on = generic.X
		}
		if id, is := on.(*ast.Ident); is {
			return []string{id.Name + "." + d.Name.Name}
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				names = append(names, membersOf(s)...)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}

// membersOf returns the fields of a struct and the methods of an interface.
func membersOf(s *ast.TypeSpec) (names []string) {
	var list *ast.FieldList
	switch t := s.Type.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			names = append(names, s.Name.Name+"."+n.Name)
		}
	}
	return names
}

func TestWrongName(t *testing.T) {
	declared := map[string]map[string]bool{"gateway": {"Run": true, "inspector.pass": true}}
	for name, want := range map[string]string{
		"laws/imports_test.go":            "",
		"boundary/gateway/nothing.go":     "boundary/gateway/nothing.go does not exist",
		"boundary/":                       "",
		"attic/":                          "attic/ does not exist",
		"gateway.Run":                     "",
		"boundary/gateway.inspector.pass": "",
		"gateway.inspector.fail":          "gateway.inspector.fail is not declared",
		"strange.Run":                     "strange.Run is not declared",
		"tools/call":                      "",
		"pellucid.yaml":                   "",
		"pellucid wrap":                   "",
	} {
		if got, _ := wrongName(name, declared); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestRooms(t *testing.T) {
	const want = "| folder | |\n|---|---|\n| `text/` | makes it safe |\n| `app/` | serves |\n"
	if got := rooms("\n# text: makes it safe\ntext/a:\ntext/b: text/a\n\n# app: serves\n"); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
