// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// TestCodes: no code of our own has two meanings, and each stands in docs/spec/errors.md.
func TestCodes(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := os.ReadFile("../../docs/spec/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[int]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllSubmatch(spec, -1) {
		code, _ := strconv.Atoi(string(row[1]))
		if listed[code] {
			t.Errorf("errors.md has %d twice", code)
		}
		listed[code] = true
	}
	named := map[int]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		lit, is := spec.Values[0].(*ast.BasicLit)
		if !is {
			return false // those that JSON-RPC reserves
		}
		code, err := strconv.Atoi(lit.Value)
		name := spec.Names[0].Name
		if err != nil || code < 7000 || named[code] != "" || !listed[code] {
			t.Errorf("%s = %s: also %q, listed %v", name, lit.Value, named[code], listed[code])
		}
		named[code] = name
		return false
	})
	if len(named) < 30 || len(named) != len(listed) {
		t.Errorf("%d codes, %d listed", len(named), len(listed))
	}
}
