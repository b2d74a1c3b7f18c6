// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"fmt"
	"go/ast"
	"go/doc"
	"maps"
	"os"
	"path"
	"path/filepath"
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

// TestDocsArchitecture compares the list of layers and packages in ARCHITECTURE.md with the
// import policy and with the comments of the packages. With PELLUCID_UPDATE_DOCS set it rewrites a stale
// page, and still fails.
func TestDocsArchitecture(t *testing.T) {
	page := string(readFile(t, architecture))
	before, rest, begins := strings.Cut(page, writtenBegin)
	_, after, ends := strings.Cut(rest, writtenEnd)
	if !begins || !ends {
		t.Fatalf("%s lacks the line %q or %q", architecture, writtenBegin, writtenEnd)
	}
	want := before + writtenBegin + layers(importPolicy, synopses(goFiles(t))) + writtenEnd + after
	if page == want {
		return
	}
	if os.Getenv("PELLUCID_UPDATE_DOCS") == "" {
		t.Fatalf("%s is stale: run make docs", architecture)
	}
	if err := os.WriteFile(architecture, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s was stale and has been rewritten", architecture)
}

// layers writes a section for each folder that the policy lists: its sentence in the policy, and
// its packages in the order of the policy with the first sentence of each package comment.
func layers(policy string, about map[string]string) string {
	var b strings.Builder
	for line := range strings.Lines(policy) {
		name, sentence, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		if layer, heads := strings.CutPrefix(name, "# "); heads {
			fmt.Fprintf(&b, "\n### %s\n\n`%s/` %s.\n\n| package | |\n|---|---|\n", layer, layer, strings.TrimSpace(sentence))
			continue
		}
		fmt.Fprintf(&b, "| [%s](../%s) | %s |\n", name, name, strings.ReplaceAll(about[name], "|", `\|`))
	}
	return b.String() + "\n"
}

// synopses returns the first sentence of each package's comment, without "Package NAME".
func synopses(files []*goFile) map[string]string {
	out := map[string]string{}
	for _, f := range files {
		if f.ast.Doc == nil || f.ignored || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		words := strings.SplitN(new(doc.Package).Synopsis(f.ast.Doc.Text()), " ", 3)
		out[filepath.ToSlash(filepath.Dir(f.path))] = words[len(words)-1]
	}
	return out
}

var (
	inBackticks = regexp.MustCompile("`([^`\n]+)`")
	nameInFile  = regexp.MustCompile("`([^`\n]+)`\\s+in\\s+`([^`\n]+(?:\\.go|/))`")
	nameInCode  = regexp.MustCompile(`^([a-z][a-z0-9/]*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
)

// notCode are the endings of names of files that are no Go.
var notCode = []string{".yaml", ".json", ".jsonl", ".md", ".mod"}

// paths are the endings of names of files and folders that must exist.
var paths = []string{".go", ".txt", "/"}

// TestArchitectureNames fails where ARCHITECTURE.md names a file, a folder, or a function or
// type of a package that does not exist. In the page `a/b.go` and `a/b/` are paths from the root
// of the repository, and `pkg.Name` or `pkg.Type.Method` is declared in a package called pkg. Where
// the page says `pkg.Name` in `a/b.go`, or in `a/b/`, it is declared in this file, or folder.
func TestArchitectureNames(t *testing.T) {
	page, files := string(readFile(t, architecture)), goFiles(t)
	declared := declarations(files, func(f *goFile) string { return f.ast.Name.Name })
	names := 0
	for _, m := range inBackticks.FindAllStringSubmatch(page, -1) {
		if wrong, is := wrongName(m[1], declared); wrong != "" {
			t.Errorf("%s: %s", architecture, wrong)
		} else if is {
			names++
		}
	}
	within := declarations(files, func(f *goFile) string { return filepath.ToSlash(f.path) + " " + f.ast.Name.Name })
	maps.Copy(within, declarations(files, func(f *goFile) string { return filepath.ToSlash(filepath.Dir(f.path)) + "/ " + f.ast.Name.Name }))
	places := 0
	for _, m := range nameInFile.FindAllStringSubmatch(page, -1) {
		if wrong, is := wrongPlace(m[1], m[2], within); wrong != "" {
			t.Errorf("%s: %s", architecture, wrong)
		} else if is {
			places++
		}
	}
	if names < 200 || places < 100 {
		t.Errorf("only %d names and %d places were checked", names, places)
	}
}

// wrongPlace returns what is wrong with "`name` in `place`", and whether there is a name to
// check. within holds what is declared, by the place and the name of its package.
func wrongPlace(name, place string, within map[string]map[string]bool) (wrong string, is bool) {
	code := nameInCode.FindStringSubmatch(name)
	if code == nil || slices.Contains(notCode, path.Ext(name)) {
		return "", false
	}
	if !within[place+" "+path.Base(code[1])][code[2]] {
		return name + " is not declared in " + place, true
	}
	return "", true
}

// wrongName returns what is wrong with a name in backticks, and whether it is one to check.
func wrongName(name string, declared map[string]map[string]bool) (wrong string, is bool) {
	switch code := nameInCode.FindStringSubmatch(name); {
	case slices.ContainsFunc(paths, func(end string) bool { return strings.HasSuffix(name, end) }):
		if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
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

// declarations returns what the files declare, tests excepted, under the key of each file:
// functions, types, variables, constants, and methods and fields as "Type.Name".
func declarations(files []*goFile, key func(*goFile) string) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, f := range files {
		in := key(f)
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

func TestWrongPlace(t *testing.T) {
	within := map[string]map[string]bool{"a/run.go a": {"Run": true, "relay.run": true}, "a/stop.go a": {"Stop": true}, "a/ a": {"Run": true, "Stop": true}}
	for _, c := range []struct{ text, want string }{
		{"`a.Run` in `a/run.go`", ""},
		{"`a.relay.run` in\n   `a/run.go`", ""},
		{"`a.Stop` in `a/`", ""},
		{"`a.Stop` in `a/run.go`", "a.Stop is not declared in a/run.go"},
		{"`b.Run` in `a/run.go`", "b.Run is not declared in a/run.go"},
		{"`a.Stop` in\n  `a/gone.go`", "a.Stop is not declared in a/gone.go"},
		{"`tools/call` in `a/run.go`", ""},
	} {
		m := nameInFile.FindStringSubmatch(c.text)
		if m == nil {
			t.Errorf("%q is not found", c.text)
			continue
		}
		if got, _ := wrongPlace(m[1], m[2], within); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

func TestLayers(t *testing.T) {
	const policy = "\n# text: makes it safe\ntext/a:\ntext/b: text/a\n"
	want := "\n### text\n\n`text/` makes it safe.\n\n| package | |\n|---|---|\n| [text/a](../text/a) | reads a \\| b. |\n| [text/b](../text/b) | writes. |\n\n"
	if got := layers(policy, map[string]string{"text/a": "reads a | b.", "text/b": "writes."}); got != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
