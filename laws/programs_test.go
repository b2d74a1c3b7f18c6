// SPDX-License-Identifier: Apache-2.0

package laws_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestProgramsApart: the boundary links nothing of grounding, and the grounding adapter nothing of the boundary and of the models
// but the pins that storage keeps.
func TestProgramsApart(t *testing.T) {
	for program, banned := range map[string][]string{
		"./cmd/pellucid":        {"grounding", "app/grounding"},
		"./cmd/pellucid-ground": {"boundary", "model", "app/install", "mcp/era", "mcp/forward"},
	} {
		list := exec.Command("go", "list", "-deps", program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for pkg := range strings.FieldsSeq(string(out)) {
			name, ours := strings.CutPrefix(pkg, module+"/")
			if !ours {
				continue
			}
			found++
			if name == "boundary/surface" || name == "boundary/blob" { // surface.PinStore
				continue
			}
			for _, b := range banned {
				if name == b || strings.HasPrefix(name, b+"/") {
					t.Errorf("%s links %s", program, name)
				}
			}
		}
		if found < 20 {
			t.Errorf("%s: only %d packages of this module were found", program, found)
		}
	}
}
