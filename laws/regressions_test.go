// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// testName is how docs/regressions.md names a test: its package, and of a testscript its file.
var testName = regexp.MustCompile("`([a-z0-9/]*)\\.((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([a-z_]+))?`")

// TestRegressionsNameTests fails where docs/regressions.md names a test that does not exist,
// and where a row names none.
func TestRegressionsNameTests(t *testing.T) {
	rows := 0
	for line := range strings.Lines(string(readFile(t, "docs/regressions.md"))) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| what did not hold") {
			continue
		}
		rows++
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("no test stands behind: %s", line)
		}
		for _, m := range names {
			if !declaresTest(t, m[1], m[2]) {
				t.Errorf("%s.%s does not exist", m[1], m[2])
			}
			if script := path.Join(m[1], "testdata/script", m[3]+".txtar"); m[3] != "" {
				if _, err := os.Stat(script); err != nil {
					t.Errorf("%s does not exist", script)
				}
			}
		}
	}
	if rows < 30 {
		t.Errorf("only %d rows were read", rows)
	}
}

// declaresTest reports whether a test file of the package declares the function.
func declaresTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	dir := "./" + pkg
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "_test.go") && strings.Contains(string(readFile(t, path.Join(dir, e.Name()))), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
