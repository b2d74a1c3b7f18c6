// SPDX-License-Identifier: Apache-2.0

package pellucid_test

import (
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// houseColumn is where in a line of DESIGN.md's house the words begin.
const houseColumn = 48

// houseLines reads the house out of DESIGN.md: on which line of it each package stands.
func houseLines(t *testing.T, design string) map[string]int {
	t.Helper()
	_, house, _ := strings.Cut(design, "no import runs up:\n\n```\n")
	house, _, found := strings.Cut(house, "\n```\n")
	if !found {
		t.Fatal("DESIGN.md has no house")
	}
	at := map[string]int{}
	for i, line := range strings.Split(house, "\n") {
		for _, pkg := range strings.Fields(line[:min(len(line), houseColumn)]) {
			if _, twice := at[pkg]; twice {
				t.Errorf("DESIGN.md: %s stands twice in the house", pkg)
			}
			at[pkg] = i
		}
	}
	return at
}

// TestDesignHouse holds the house of DESIGN.md against the import policy: every package
// is in it or named beside it, and none imports what stands below it.
func TestDesignHouse(t *testing.T) {
	design := string(readFile(t, "DESIGN.md"))
	at, policy := houseLines(t, design), parseFloors(t, floors)
	for pkg := range at {
		if _, is := policy[pkg]; !is {
			t.Errorf("DESIGN.md: %s is no package", pkg)
		}
	}
	for pkg, f := range policy {
		line, in := at[pkg]
		if !in {
			if !strings.Contains(design, "`"+pkg+"`") {
				t.Errorf("DESIGN.md does not know %s", pkg)
			}
			continue
		}
		for dep := range f.internal {
			if below, in := at[dep]; in && below > line && !strings.HasPrefix(pkg, "cmd/") {
				t.Errorf("DESIGN.md: %s imports %s, which stands below it", pkg, dep)
			}
		}
	}
}

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
