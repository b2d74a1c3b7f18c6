// SPDX-License-Identifier: Apache-2.0

package datatest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	said, beside := filepath.Join(dir, "said"), filepath.Join(dir, "shared", "data")
	for _, d := range []string{filepath.Join(said, "a"), filepath.Join(beside, "b")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(dir, "repository")
	for _, tt := range []struct{ env, name, want string }{
		{said, "a", filepath.Join(said, "a")},
		{said, "b", ""}, // it is not looked for elsewhere
		{"", "b", filepath.Join(beside, "b")},
		{"", "a", ""},
	} {
		t.Setenv(Env, tt.env)
		got, err := Find(root, tt.name)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q, %s: %q, %v", tt.env, tt.name, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), Env) {
			t.Errorf("%v", err)
		}
	}
}
