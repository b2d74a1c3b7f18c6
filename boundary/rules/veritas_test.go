// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
	"github.com/pellucid-mcp/pellucid/text/scrub"
)

// TestVeritasProfile: the text of a grounding adapter is scrubbed faithfully, keeps its control tokens and gets no second frame;
// the rules say so of that server, and print the profile as it was written.
func TestVeritasProfile(t *testing.T) {
	r := parse(t, "version: 1\nservers:\n  facts: {command: [x], profile: veritas-0.1}\n  other: {command: [y]}\n")
	facts := r.Servers[0]
	for _, rule := range facts.Rules() {
		if rule.Profile != gateway.Faithful || rule.ControlTokens != scrub.KeepTokens || rule.Frame != frame.KindMeta {
			t.Errorf("%+v", rule)
		}
	}
	if !facts.IsGrounding() || r.Servers[1].IsGrounding() || len(r.KeepsTokens()) != 1 {
		t.Errorf("grounding: %v, %v; kept by %q", facts.IsGrounding(), r.Servers[1].IsGrounding(), r.KeepsTokens())
	}
	if text := string(r.Effective()); !strings.Contains(text, "profile: veritas-0.1") {
		t.Errorf("%s", text)
	}
}
