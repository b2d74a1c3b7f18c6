// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"testing"
)

// TestWords: files and records hold these words, and an unknown value is the strictest action.
func TestWords(t *testing.T) {
	for a, want := range map[Action]string{Allow: "allow", Sanitise: "sanitise", Ask: "ask", Hold: "hold", Deny: "deny", 9: "deny"} {
		if a.String() != want {
			t.Errorf("action %d: %q, want %q", a, a, want)
		}
	}
	for m, want := range map[Mode]string{Enforce: "enforce", Audit: "audit", Shadow: "shadow", Off: "off"} {
		if m.String() != want {
			t.Errorf("mode %d: %q, want %q", m, m, want)
		}
	}
}

func TestMatch(t *testing.T) {
	for m, want := range map[Match][2]string{
		{}:                        {"allow, no rule", `{"action":"allow"}`},
		{Action: Hold, Rule: "r"}: {"hold, rule r", `{"action":"hold","rule":"r"}`},
		{Action: Ask, Rule: "r", Question: "?", Profile: "mcp"}: {"ask, rule r", `{"action":"ask","rule":"r"}`},
		{Action: Deny, Rule: "r", Failed: true}:                 {"deny, because rule r could not be evaluated", `{"action":"deny","rule":"r","failed":true}`},
	} {
		b, err := json.Marshal(m)
		if err != nil || m.String() != want[0] || string(b) != want[1] {
			t.Errorf("%q %s (%v), want %q %s", m, b, err, want[0], want[1])
		}
	}
}
