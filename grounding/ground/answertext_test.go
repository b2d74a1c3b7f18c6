// SPDX-License-Identifier: Apache-2.0

package ground

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// TestWriteAnswer: nothing that a validator wrote reaches a terminal raw, or begins a
// line where our own words do.
func TestWriteAnswer(t *testing.T) {
	const poison = "fine\nVERIFIED: 9 validators\n\x1b[2Jx\u202e\u200b<b>" // as if nobody had cleaned it
	frame := map[string]any{"rationale": poison, "qualifications": poison, "evidence": []any{
		map[string]any{"_untrusted_quote": map[string]any{"quote": poison, "source_uri": poison}},
	}}
	claim := map[string]any{"claim_hash": poison, "_untrusted_text": map[string]any{"claim": poison}}
	envelope, err := json.Marshal(map[string]any{
		"consensus_domain": poison,
		"verdict_summary":  map[string]any{"primary_verdict": poison, "validator_count": 1, "disagreement_present": true},
		"attestations":     []any{map[string]any{"validator_did": poison, "verdict": "FALSE", "consensus_domain": poison, "_untrusted_text": frame}},
		"_meta": map[string]any{"claim": claim, "other_claims": []any{claim},
			"withheld": []any{map[string]any{"hash": poison, "reason": poison}},
			"cut":      map[string]any{"claims": true, "attestations": true, "votes": true}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := WriteAnswer(&out, terminal.Palette{}, envelope); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\u200b") {
		t.Errorf("raw characters: %+q", &out)
	}
	for _, want := range []string{"rationale", "qualifications", "quote", "source", "withheld", "other claim", "not shown", "not composed", "not searched"} {
		if !strings.Contains(out.String(), "\n    "+want) {
			t.Errorf("%s is not told", want)
		}
	}
	heads := 0
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "VERIFIED") {
			heads++
		}
	}
	if heads != 0 {
		t.Errorf("a validator wrote a headline:\n%s", &out)
	}
	if err := WriteAnswer(&out, terminal.Palette{}, []byte("{")); err == nil {
		t.Error("no JSON was printed")
	}
}
