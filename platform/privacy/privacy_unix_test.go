// SPDX-License-Identifier: Apache-2.0

//go:build unix

package privacy

import (
	"os"
	"testing"
)

func expose(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}
