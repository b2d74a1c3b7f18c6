// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestApps: the pages of real Apps are part of what the check of their servers pins.
func TestApps(t *testing.T) {
	t.Parallel()
	for _, module := range []string{"budget-allocator", "sheet-music"} {
		t.Run(module, func(t *testing.T) {
			in := newInstall(t)
			dump := filepath.Join(t.TempDir(), "surface.json")
			cmd := exec.CommandContext(soon(t), in.bin, append([]string{"check", "--dump", dump, "--"}, npmServer(t, module, "--stdio")...)...)
			cmd.Env = in.env()
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			b, err := os.ReadFile(dump)
			if err != nil {
				t.Fatal(err)
			}
			var d struct {
				Apps map[string]struct {
					Contents []struct {
						MimeType string
						Text     struct {
							SHA256 string
							Bytes  int
						}
					}
				}
			}
			if err := json.Unmarshal(b, &d); err != nil {
				t.Fatal(err)
			}
			if len(d.Apps) == 0 {
				t.Fatal("no app was read")
			}
			for uri, app := range d.Apps {
				if !strings.HasPrefix(uri, "ui://") || len(app.Contents) != 1 || app.Contents[0].MimeType != "text/html;profile=mcp-app" ||
					len(app.Contents[0].Text.SHA256) != 64 || app.Contents[0].Text.Bytes < 1000 {
					t.Errorf("app %+q: %+v", uri, app)
				}
			}
			if strings.Contains(string(b), "<html") {
				t.Error("the dump holds the page")
			}
		})
	}
}
