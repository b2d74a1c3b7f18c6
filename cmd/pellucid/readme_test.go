// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A shell has this program in its path, and a state directory of its own.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no POSIX shell")
	}
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "pellucid")); err != nil {
		t.Fatal(err)
	}
	return &shell{dir, append(os.Environ(), roleVariable+"=pellucid", "PELLUCID_DB=", "PELLUCID_STATE="+filepath.Join(dir, "state"),
		"PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))}
}
