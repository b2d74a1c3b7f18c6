// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestGroundingBehind: behind the boundary an adapter's answer arrives as it was
// given, with its frames counted; an answer without any is of low confidence.
func TestGroundingBehind(t *testing.T) {
	t.Parallel()
	in := newInstall(t)
	adapter := []string{groundProgram(t), "serve", "--stdio"}
	direct := bare(adapter...)
	direct.Env = in.env()
	one, other := connect(t, direct), connect(t, in.command(append([]string{"--name", "ground", "--env", "PELLUCID_STATE", "--"}, adapter...)...))
	ask := func(h *host, query string) (*mcp.CallToolResult, map[string]any) {
		r, err := h.CallTool(soon(t), &mcp.CallToolParams{Name: "ground", Arguments: map[string]any{"query": query}})
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := r.StructuredContent.(map[string]any)
		return r, answer
	}
	_, want := ask(one, "lightning never strikes twice")
	r, got := ask(other, "lightning never strikes twice")
	for _, name := range []string{"@type", "@version", "query", "consensus_domain", "verdict_summary", "attestations"} {
		if d := cmp.Diff(want[name], got[name]); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	frames := strings.Count(string(raw), `"veritas:UntrustedValidatorText"`)
	seen := map[string]any{"frames": float64(frames), "low_confidence": false, "reasons": []any{}}
	if d := cmp.Diff(seen, r.Meta["dev.pellucid/grounding"]); d != "" || frames == 0 {
		t.Errorf("%d frames: %s", frames, d)
	}
	r, _ = ask(other, "xylophone quorum zeppelin")
	seen = map[string]any{"frames": 0.0, "low_confidence": true, "reasons": []any{"no-frame"}}
	if d := cmp.Diff(seen, r.Meta["dev.pellucid/grounding"]); d != "" {
		t.Error(d)
	}
}
