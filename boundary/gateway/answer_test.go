// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"
)

// TestAnswerCodes: a client can tell every answer of our own from the others by its
// code alone.
func TestAnswerCodes(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "answer.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		lit, ok := spec.Values[0].(*ast.CompositeLit)
		if !ok || types.ExprString(lit.Type) != "answer" {
			return true
		}
		code, name := types.ExprString(lit.Elts[0]), spec.Names[0].Name
		if name == "errFull" { // says of errWithheld why
			return true
		}
		if other := seen[code]; other != "" {
			t.Errorf("%s and %s have the same code, %s", other, name, code)
		}
		seen[code] = name
		return true
	})
	if len(seen) < 12 {
		t.Errorf("only %d answers were found", len(seen))
	}
}
