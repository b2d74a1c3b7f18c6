// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpFollowsReferences: what the file refers to is a part of it, so that a new secret
// is in force without a restart.
func TestUpFollowsReferences(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write := func(secret string) {
		t.Helper()
		if err := os.WriteFile(key, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	g := startUp(t, fmt.Sprintf("version: 1\nservers:\n  one: {url: %s, headers: {X-Key: 'file:%s'}}\n", upstream(t, "one", nil), key), nil)
	write("two")
	g.eventually("the new secret", func() bool { return strings.Contains(g.err.String(), "configuration in force") })
}
