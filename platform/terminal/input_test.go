// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpenDir: a directory is opened; what is none is named, quoted, and refused.
func TestOpenDir(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a\u202efile")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := fs.ReadDir(d, "."); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for name, want := range map[string]string{file: "not a directory", filepath.Join(dir, "none"): "no such file or directory"} {
		if _, err := OpenDir(name); err == nil || !strings.HasSuffix(err.Error(), ": "+want) || !strings.HasPrefix(err.Error(), `open "`) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%+q: %v", name, err)
		}
	}
}
