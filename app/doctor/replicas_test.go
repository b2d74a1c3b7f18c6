// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/replica"
)

// TestAgree: replicas that have one address fail the check; other keys and older rules are warnings.
func TestAgree(t *testing.T) {
	row := func(address, key string, generation int64) replica.Row {
		return replica.Row{Address: address, Key: key, Generation: generation}
	}
	for name, tt := range map[string]struct {
		live []replica.Row
		own  string
		want []string
	}{
		"agree":            {[]replica.Row{row("a:1", "k", 1), row("b:1", "k", 1)}, "k", []string{OK}},
		"one address":      {[]replica.Row{row("a:1", "k", 1), row("a:1", "k", 1), row("b:1", "k", 1)}, "k", []string{OK, Failed}},
		"two keys":         {[]replica.Row{row("a:1", "k", 1), row("b:1", "other", 1)}, "k", []string{OK, Warning}},
		"key of a command": {[]replica.Row{row("a:1", "k", 1)}, "other", []string{OK, Warning}},
		"older rules":      {[]replica.Row{row("a:1", "k", 2), row("b:1", "k", 1)}, "", []string{OK, Warning}},
	} {
		t.Run(name, func(t *testing.T) {
			x := &examiner{report: Report{OK: true}}
			x.agree(tt.live, tt.own)
			var got []string
			for _, c := range x.report.Checks {
				got = append(got, c.Status)
			}
			if !slices.Equal(got, tt.want) || x.report.OK == slices.Contains(tt.want, Failed) {
				t.Errorf("%+v", x.report)
			}
		})
	}
}
