// SPDX-License-Identifier: Apache-2.0

//go:build unix

package rules

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLoadPipe: a pipe to which nobody writes does not make its reader wait.
func TestLoadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pellucid.yaml")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, Options{}); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Error(err)
	}
}
