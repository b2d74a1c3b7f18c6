// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// TestQuestion: the demonstration set answers what is asked, with something to clean.
func TestQuestion(t *testing.T) {
	asked, poisoned := 0, false
	for who, text := range rationales() {
		if strings.HasSuffix(who, Question+".") {
			asked++
			poisoned = poisoned || strings.Contains(text, "\u200b")
		}
	}
	if asked != 2 || !poisoned || len(demonstration.Attestations()) < 10 {
		t.Errorf("%d attestations, poisoned: %v", asked, poisoned)
	}
}

// TestGrounded: every way in which an answer can be wrong is found.
func TestGrounded(t *testing.T) {
	const good = `{"verdict_summary":{"primary_verdict":"FALSE","validator_count":2,"disagreement_present":false},
		"attestations":[
			{"validator_did":"did:key:a","verdict":"FALSE","_untrusted_text":{"@type":"veritas:UntrustedValidatorText","warning":"w","rationale":"r","evidence":[]}},
			{"validator_did":"did:key:b","verdict":"FALSE","_untrusted_text":{"@type":"veritas:UntrustedValidatorText","warning":"w","rationale":"r",
				"evidence":[{"_untrusted_quote":{"quote":"q","source_uri":"s"}}]}}],
		"_meta":{"confusables_replaced":[{}],"stripped_positions":[],"claim":{"_untrusted_text":{"claim":"c"}}}}`
	for name, change := range map[string][2]string{
		"":             {},
		"verdict":      {`"FALSE","validator_count"`, `"VERIFIED","validator_count"`},
		"count":        {`"validator_count":2`, `"validator_count":3`},
		"no frame":     {`"@type":"veritas:UntrustedValidatorText","warning"`, `"warning"`},
		"no warning":   {`"warning":"w"`, `"warning":""`},
		"nothing told": {`"confusables_replaced":[{}]`, `"confusables_replaced":[]`},
		"no claim":     {`"claim":{"_untrusted_text":{"claim":"c"}}`, `"claim":null`},
	} {
		var v any
		if err := json.Unmarshal([]byte(strings.Replace(good, change[0], change[1], 1)), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := new(Grounded).read(v); (err == nil) != (name == "") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestFencedTwice(t *testing.T) {
	open := func(s string, _ frame.Origin) (frame.Origin, string, error) {
		body, ok := strings.CutPrefix(s, "fence ")
		if !ok {
			return frame.Origin{}, "", errors.New("no fence")
		}
		return frame.Origin{}, body, nil
	}
	answer := map[string]any{"a": 1.0}
	for text, want := range map[string]bool{`fence {"a":1}`: true, `fence {"a":2}`: false, `fence x`: false, `{"a":1}`: false} {
		r := &mcp.CallToolResult{StructuredContent: answer, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
		if err := fencedTwice(r, open); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		r.IsError = true
		if fencedTwice(r, open) == nil {
			t.Errorf("%s: an error passes", text)
		}
	}
	if fencedTwice(&mcp.CallToolResult{StructuredContent: answer}, open) == nil {
		t.Error("no text passes")
	}
}
