// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// callsByName returns what in a file of the program makes the linker keep every exported method
// of every type in use, which is 5 MB of the binary: templates and net/rpc call methods by names
// that the linker cannot know, and so do three functions of kong with a verb's methods.
// cmd/pellucid/parse.go says what takes their place.
func callsByName(f *ast.File, verbs bool) (found []string) {
	for _, imp := range f.Imports {
		if path := strings.Trim(imp.Path.Value, `"`); path == "text/template" || path == "html/template" || path == "net/rpc" {
			found = append(found, "imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if method, ok := n.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "MethodByName" {
				if _, constant := n.Args[0].(*ast.BasicLit); !constant {
					found = append(found, "calls MethodByName")
				}
			}
		case *ast.FuncDecl:
			if verbs && n.Recv != nil && slices.Contains(kongHooks, n.Name.Name) {
				found = append(found, "has a method "+n.Name.Name+": the program does not call it; name it validate")
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); verbs && ok && x.Name == "k" && n.Sel.Name == "Parse" {
				found = append(found, "calls Parse of kong: call parse")
			}
		}
		return true
	})
	return found
}

// kongHooks are the methods of verbs that kong calls by name.
var kongHooks = []string{"Validate", "BeforeReset", "BeforeResolve", "BeforeApply", "AfterApply", "AfterRun"}

// TestMethodsByName holds the program free of what calls methods by name. The pages of the console are the
// exception: html/template escapes each value by where it stands, which is worth the size (DESIGN.md).
func TestMethodsByName(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "lab/") || strings.HasPrefix(f.path, "app/console/") {
			continue
		}
		for _, what := range callsByName(f.ast, strings.HasPrefix(f.path, "cmd/pellucid/")) {
			t.Errorf("%s %s", f.path, what)
		}
	}
}

func TestMethodsByNameCanFail(t *testing.T) {
	const file = `package main
import ("text/template"; "reflect")
func (c *x) Validate() error { k.Parse(nil); reflect.Value{}.MethodByName(name); reflect.Value{}.MethodByName("Run"); return nil }`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", file, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := callsByName(f, true); len(found) != 4 {
		t.Errorf("%q", found)
	}
}
