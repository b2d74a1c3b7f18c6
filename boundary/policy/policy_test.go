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
		{}:                                      {"allow, no rule", `{"action":"allow"}`},
		{Action: Hold, Rule: "r"}:               {"hold, rule r", `{"action":"hold","rule":"r"}`},
		{Action: Ask, Rule: "r", Question: "?"}: {"ask, rule r", `{"action":"ask","rule":"r"}`},
		{Action: Deny, Rule: "r", Failed: true}: {"deny, because rule r could not be evaluated", `{"action":"deny","rule":"r","failed":true}`},
	} {
		b, err := json.Marshal(m)
		if err != nil || m.String() != want[0] || string(b) != want[1] {
			t.Errorf("%q %s (%v), want %q %s", m, b, err, want[0], want[1])
		}
	}
}

// TestNumber: a number is what is written, or nothing that compares.
func TestNumber(t *testing.T) {
	no := Unreadable{}
	for raw, want := range map[string]any{
		"0": int64(0), "-0": int64(0), "9223372036854775807": int64(9223372036854775807), "9223372036854775808": uint64(1 << 63), "-9223372036854775809": no,
		"18446744073709551616": no, "1e3": int64(1000), "1000.0": int64(1000), "1.5e1": int64(15), "1e-1": 0.1, "0.30": 0.3, "1000.0000000000000001": no,
		"1e999999999": no, "1e-999999999": no, "1e99999999999999999999": no, "1e400": no, "0.1234567890123456789012345678901234567890123456789012345678901234567890": no,
		"": no, "x": no, "1/3": no, "0x10": no, "1_0": no, "Inf": no,
	} {
		if got := Number(raw); got != want {
			t.Errorf("%s is %T %v", raw, got, got)
		}
	}
}
