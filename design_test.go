// SPDX-License-Identifier: Apache-2.0

package pellucid_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// major is the suffix of a module's path that says nothing.
var major = regexp.MustCompile(`/v[0-9]+$`)

// TestDesignDependencies: every module that is required directly is here for a reason.
func TestDesignDependencies(t *testing.T) {
	_, table, found := strings.Cut(string(readFile(t, "DESIGN.md")), "\n## Dependencies\n")
	if !found {
		t.Fatal("DESIGN.md has no section on dependencies")
	}
	var named []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, m := range regexp.MustCompile("`[^`]+`").FindAllString(cells[1], -1) {
				named = append(named, strings.Trim(m, "`"))
			}
		}
	}
	mod, err := modfile.Parse("go.mod", readFile(t, "go.mod"), nil)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, r := range mod.Require {
		path, reason := "/"+major.ReplaceAllString(r.Mod.Path, "")+"/", ""
		for _, n := range named {
			if strings.Contains(path, "/"+n+"/") {
				reason, used[n] = n, true
			}
		}
		if reason == "" && !r.Indirect {
			t.Errorf("DESIGN.md gives no reason for %s", r.Mod.Path)
		}
	}
	for _, n := range named {
		if !used[n] {
			t.Errorf("DESIGN.md gives a reason for %s, which is not required", n)
		}
	}
}
