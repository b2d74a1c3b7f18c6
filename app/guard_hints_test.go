// SPDX-License-Identifier: Apache-2.0

package app

import (
	"testing"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
)

// TestToolHints: what several servers say of tools of one name counts if all of them read,
// or if one acts.
func TestToolHints(t *testing.T) {
	const reads, writes, destroys, nothing = `{"annotations":{"readOnlyHint":true}}`, `{"annotations":{"readOnlyHint":false}}`, `{"annotations":{"destructiveHint":true}}`, `{"annotations":{"title":"x"}}`
	known := map[string]counterfactual.Hint{}
	for _, tool := range [][3]string{
		{"git_hub", "issue", reads}, {"b", "issue", reads}, {"a", "look", reads}, {"b", "look", nothing}, {"a", "turn", reads}, {"b", "turn", writes}, {"a", "burn", destroys}, {"a", "odd", "{"},
	} {
		addHint(known, tool[0], tool[1], tool[2])
	}
	look, act := counterfactual.Hint{Reads: true}, counterfactual.Hint{Acts: true}
	for name, want := range map[string]counterfactual.Hint{
		"issue": look, "git-hub_issue": look, "mcp__git_hub__issue": look, "look": {}, "a_look": look, "b_look": {}, "turn": act, "a_turn": look, "burn": act, "odd": {}, "other": {},
	} {
		if known[name] != want {
			t.Errorf("%s: %+v", name, known[name])
		}
	}
}
