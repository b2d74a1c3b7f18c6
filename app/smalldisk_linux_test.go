// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk is the path of a database on a disk of 4 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return filepath.Join(dir, "p.db")
}
