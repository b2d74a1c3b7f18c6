// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// TestRequirementsHaveReasons: the line of each module that is required directly ends in a
// comment that says what it is for, and which alternative was rejected.
func TestRequirementsHaveReasons(t *testing.T) {
	for _, path := range withoutReason(t, readFile(t, "go.mod")) {
		t.Errorf("go.mod does not say what %s is for: write a comment behind its version", path)
	}
}

// withoutReason returns the modules that file requires directly and without a comment.
func withoutReason(t *testing.T, file []byte) (paths []string) {
	t.Helper()
	mod, err := modfile.Parse("go.mod", file, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range mod.Require {
		comment := ""
		for _, c := range r.Syntax.Suffix {
			comment += strings.TrimSpace(strings.TrimPrefix(c.Token, "//"))
		}
		if comment == "" && !r.Indirect {
			paths = append(paths, r.Mod.Path)
		}
	}
	return paths
}

func TestWithoutReason(t *testing.T) {
	const file = "module m\nrequire (\n\ta.example/x v1.0.0 // reads x\n\tb.example/x v1.0.0\n\tc.example/x v1.0.0 //\n\td.example/x v1.0.0 // indirect\n)\n"
	if got := strings.Join(withoutReason(t, []byte(file)), " "); got != "b.example/x c.example/x" {
		t.Errorf("without a reason: %s", got)
	}
}
