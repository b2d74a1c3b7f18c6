// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestReplaceOpenFile: a file that another program keeps open is not replaced, and the error says why.
func TestReplaceOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path) // does not share its deletion
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new"), nil); err != errOpen || errors.Is(err, fs.ErrPermission) {
		t.Errorf("while it is open: %v", err)
	}
	done := make(chan error)
	go func() { done <- Replace(path, []byte("new"), nil) }()
	f.Close()
	if err := <-done; err != nil {
		t.Errorf("closed meanwhile: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}
