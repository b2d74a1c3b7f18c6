// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/text/finding"
)

// FuzzParseTrial: whatever a person types into the form of a backtest, the answer is rules or an error.
func FuzzParseTrial(f *testing.F) {
	for _, s := range []string{"", "defaults: {hold: [hidden-tag]}", "servers: {a: {hold: [], tools: {'r*': {hold: [hidden-bidi]}}}}",
		"policy: {preset: strict, rules: [{name: x, on: result, when: size > 1, then: hold}]}",
		"servers: {a: {}}\nexceptions: [{server: a, code: hidden-tag, until: 2027-01-01T00:00:00Z, why: x}]", "servers: {a: 3}", "defaults: [", "{servers: {? {}: 1}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		x, err := ParseTrial([]byte(s))
		if (x == nil) == (err == nil) {
			t.Fatalf("%v, %v", x, err)
		}
		if err == nil {
			x.Hold("a", "read", []finding.Code{finding.HiddenTag})
		}
	})
}
