// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHookExamples: docs/examples/hooks has what protect --hooks writes where pellucid-hook is in the path.
func TestHookExamples(t *testing.T) {
	m, _ := hookMachine(t, "")
	o := options(t)
	o.Client = "pellucid-hook"
	for _, r := range runHooks(t, o, m, "", Job{}) {
		example := filepath.Join("..", "..", "docs", "examples", "hooks", r.Host+filepath.Ext(r.Path))
		if os.Getenv("PELLUCID_UPDATE_DOCS") != "" {
			if err := os.WriteFile(example, []byte(read(t, r.Path)), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := read(t, example); got != read(t, r.Path) {
			t.Errorf("%s is stale: PELLUCID_UPDATE_DOCS=1 go test ./boundary/protect -run HookExamples", example)
		}
	}
}
