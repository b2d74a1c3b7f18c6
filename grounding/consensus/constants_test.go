// SPDX-License-Identifier: Apache-2.0

package consensus

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// constants reads the constants of the closed vocabularies out of the source.
func constants(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range []string{"consensus.go", "vote.go", "compose.go", "profile.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			if id, ok := v.Type.(*ast.Ident); ok && slices.Contains([]string{"code", "Reason", "Basis", "Rule"}, id.Name) {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				out[id.Name+" "+v.Names[0].Name] = text
			}
			return true
		})
	}
	return out
}

// TestConstants: what stands in a log, a label or an answer is safe there.
func TestConstants(t *testing.T) {
	label := regexp.MustCompile(`^[a-z][a-z0-9-]{2,31}$`)
	all := constants(t)
	if len(all) < 35 {
		t.Fatalf("only %d constants found", len(all))
	}
	for name, value := range all {
		if !label.MatchString(value) {
			t.Errorf("%s = %q does not suit a label", name, value)
		}
	}
}
