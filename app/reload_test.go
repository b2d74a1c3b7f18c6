// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
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
	g := apptest.Start(t, fmt.Sprintf("version: 1\nservers:\n  one: {url: %s, headers: {X-Key: 'file:%s'}}\n", apptest.Upstream(t, "one", nil), key), nil)
	write("two")
	g.Eventually("the new secret", func() bool { return strings.Contains(g.Log.String(), "configuration in force") })
}
