// SPDX-License-Identifier: Apache-2.0

package surface

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dataDir is the folder of the public test data; a test without it is skipped.
func dataDir(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("PELLUCID_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no test data: set PELLUCID_DATA to the folder that holds %s/", name)
	}
	return dir
}

// realDumps reads the saved surfaces of public servers, by name.
func realDumps(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dataDir(t, "mcp-surfaces"), "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d surfaces: %v", len(paths), err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = b
	}
	return all
}

func realSurfaces(t testing.TB) map[string]*Surface {
	t.Helper()
	all := map[string]*Surface{}
	for name, b := range realDumps(t) {
		s, err := ParseDump(b, Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = s
	}
	return all
}
