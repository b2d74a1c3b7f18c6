// SPDX-License-Identifier: Apache-2.0

// Package programtest finds the programs of others that some tests run: databases, proxies, browsers, interpreters.
//
// Such tests run only where PELLUCID_PEERS is set, so that the other tests take the same time on every machine.
package programtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Need skips a test that runs a program of others, unless PELLUCID_PEERS or PELLUCID_E2E is set.
func Need(t testing.TB) {
	t.Helper()
	if os.Getenv("PELLUCID_PEERS") == "" && os.Getenv("PELLUCID_E2E") == "" {
		t.Skip("runs a program of others: set PELLUCID_PEERS=1")
	}
}

// Find returns the path of the first of these programs that is installed. The test is skipped where none of them is, and
// where Need skips it.
func Find(t testing.TB, names ...string) string {
	t.Helper()
	Need(t)
	for _, name := range names {
		for _, place := range []string{name, filepath.Join("/usr/sbin", name)} {
			if path, err := exec.LookPath(place); err == nil {
				return path
			}
		}
	}
	t.Skipf("not installed: %s", strings.Join(names, ", "))
	return ""
}
