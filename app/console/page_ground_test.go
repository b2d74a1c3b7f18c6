// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// hostileAnswer is an envelope in which every text of a third party is hostile.
func hostileAnswer() []byte {
	var list, provenance, others []any
	for _, text := range hostile {
		list = append(list, map[string]any{"validator_did": text, "verdict": "supported", "consensus_domain": text, "_untrusted_text": map[string]any{
			"rationale": text, "qualifications": text, "evidence": []any{map[string]any{"_untrusted_quote": map[string]any{"quote": text, "source_uri": text}}}}})
		provenance = append(provenance, map[string]any{"hash": text, "issued": "2026-01-02T03:04:05Z"})
		others = append(others, map[string]any{"claim_hash": text, "match": 0.5, "attestations": 2, "_untrusted_text": map[string]any{"claim": text}})
	}
	b, err := json.Marshal(map[string]any{"consensus_domain": hostile[0], "verdict_summary": map[string]any{"primary_verdict": hostile[0], "validator_count": 3, "disagreement_present": true},
		"attestations": list, "_meta": map[string]any{"claim": others[0], "other_claims": others, "provenance": provenance, "withheld": []any{map[string]any{"hash": hostile[1], "reason": hostile[2]}},
			"cut": map[string]any{"claims": true, "attestations": true}, "explanation": map[string]any{"outcome": hostile[0], "tallies": []any{map[string]any{"verdict": hostile[0], "validator_count": 2}}}}})
	if err != nil {
		panic(err)
	}
	return b
}

func withGround(_ *testConsole, o *Options) {
	o.Ask = func(_ context.Context, q string) ([]byte, error) {
		switch q {
		case "nothing":
			return []byte(`{"verdict_summary":{},"attestations":[],"_meta":{"claim":null}}`), nil
		case "away":
			return nil, ground.Unavailable
		case "long":
			return nil, ground.QueryTooLong
		case "broken":
			return nil, errors.New("no")
		}
		return hostileAnswer(), nil
	}
}

func groundPages() []testPage {
	return []testPage{
		{name: "grounding", path: "grounding?ask=sun", change: withGround},
		{name: "grounding-first", path: "grounding", change: withGround},
		{name: "grounding-nothing", path: "grounding?ask=nothing", change: withGround},
		{name: "grounding-refused", path: "grounding?ask=long", change: withGround},
		{name: "grounding-away", path: "grounding?ask=away", change: withGround, status: http.StatusServiceUnavailable},
		{name: "grounding-none", path: "grounding"},
	}
}

// TestGrounding: an answer is shown with the text of validators marked, and each other outcome is a state of its own.
func TestGrounding(t *testing.T) {
	g := newTest(t, withGround)
	for ask, want := range map[string]string{"sun": "they disagree", "nothing": "Nothing is known of it", "long": "There is no answer: the query is too long", "": "Words of a claim"} {
		if _, body := g.get("grounding?ask=" + ask); !strings.Contains(body, want) {
			t.Errorf("%q: no %q", ask, want)
		}
	}
	for _, text := range hostile {
		if _, body := g.get("grounding?ask=" + url.QueryEscape(text)); hiddenInPage(body) != "" || foreignMarkup(body) != nil {
			t.Errorf("%.30q: %s %v", text, hiddenInPage(body), foreignMarkup(body))
		}
	}
	if r, _ := g.get("grounding?ask=broken"); r.StatusCode != http.StatusInternalServerError {
		t.Errorf("an error: %d", r.StatusCode)
	}
	if r, _ := g.get("grounding?ask=" + strings.Repeat("x", maxQuestion+1)); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a long question: %d", r.StatusCode)
	}
}
