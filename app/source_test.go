// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// TestDemoSource: the demonstration has the grounding adapter where its program is installed, with the profile under which its
// frames pass as they are, and goes without it elsewhere.
func TestDemoSource(t *testing.T) {
	for program, servers := range map[string]int{"": 2, `/opt/a "b"/pellucid-ground`: 3} {
		r, err := DemoSource("/opt/pellucid", program).load(rules.Options{})
		if err != nil || len(r.Servers) != servers {
			t.Fatalf("%q: %d servers, %v", program, len(r.Servers), err)
		}
		for _, s := range r.Servers {
			if s.IsGrounding() != (s.Name == "grounding") || s.IsGrounding() && s.Command[0] != program {
				t.Errorf("%s: %q, grounding %v", s.Name, s.Command, s.IsGrounding())
			}
		}
	}
}
