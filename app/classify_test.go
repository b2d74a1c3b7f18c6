// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
)

// TestUnusedClassifiers: a classifier that is set up and asked nowhere is named, so that it is not taken
// for a guard.
func TestUnusedClassifiers(t *testing.T) {
	const other = "  other: {provider: http, url: 'https://c.example', model: m}\n"
	for config, want := range map[string]string{
		"": "",
		"classifiers:\n  local: {mode: shadow}\n":                                                                     "",
		"classifiers:\n  local: {mode: enforce}\n":                                                                    "local",
		"classifiers:\n  local: {mode: enforce}\n" + other:                                                            "local other",
		"classifiers:\n" + other + "defaults: {classify: [other]}\n":                                                  "",
		"classifiers:\n" + other + "servers: {s: {command: [x], classify: [other]}}\n":                                "",
		"classifiers:\n" + other + "servers: {s: {command: [x], tools: {t: {classify: [other]}}}}\n":                  "",
		"classifiers:\n" + other + "defaults: {classify: [other]}\nservers: {s: {command: [x], classify: [local]}}\n": "",
		"classifiers:\n" + other + "servers: {s: {command: [x], classify: [local], tools: {t: {classify: []}}}}\n":    "other",
	} {
		r, err := rules.Parse([]byte("version: 1\n"+config), rules.Options{})
		if err != nil {
			t.Errorf("%s: %v", config, err)
		} else if got := strings.Join(unusedClassifiers(r), " "); got != want {
			t.Errorf("%s: %q, not %q", config, got, want)
		}
	}
}
