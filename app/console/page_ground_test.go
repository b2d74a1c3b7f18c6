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
	var list, provenance, others, votes []any
	for i, text := range hostile {
		reason := []string{"counted", "counted", "retracted", "cascade-pending", "superseded", text}[i%6]
		votes = append(votes, map[string]any{"id": text, "validator_did": hostile[i/2], "verdict": []string{hostile[0], "supported", text}[i%3], "reason": reason})
		list = append(list, map[string]any{"validator_did": text, "verdict": "supported", "consensus_domain": text, "_untrusted_text": map[string]any{
			"rationale": text, "qualifications": text, "evidence": []any{map[string]any{"_untrusted_quote": map[string]any{"quote": text, "source_uri": text}}}}})
		provenance = append(provenance, map[string]any{"hash": text, "issued": "2026-01-02T03:04:05Z"})
		others = append(others, map[string]any{"claim_hash": text, "match": 0.5, "attestations": 2, "_untrusted_text": map[string]any{"claim": text}})
	}
	b, err := json.Marshal(map[string]any{"consensus_domain": hostile[0], "verdict_summary": map[string]any{"primary_verdict": hostile[0], "validator_count": 3, "disagreement_present": true},
		"attestations": list, "_meta": map[string]any{"claim": others[0], "other_claims": others, "provenance": provenance, "withheld": []any{map[string]any{"hash": hostile[1], "reason": hostile[2]}},
			"cut": map[string]any{"claims": true, "attestations": true}, "explanation": map[string]any{"outcome": hostile[0], "votes": votes, "votes_omitted": 3, "tallies": []any{map[string]any{"verdict": hostile[0], "validator_count": 2}}}}})
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
	t.Parallel()
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

// TestGroundingGraph: the drawing has a box for the claim, each attestation, each validator and the verdict, each of them a link with
// a name to a place that is on the page; what was withdrawn is marked, and the table says the same.
func TestGroundingGraph(t *testing.T) {
	t.Parallel()
	votes := `{"id":"h1","validator_did":"did:web:a.example","verdict":"SUPPORTED","reason":"counted"},{"id":"h2","validator_did":"did:web:b.example","verdict":"REFUTED","reason":"counted"},
		{"id":"h3","validator_did":"did:web:c.example","verdict":"SUPPORTED","reason":"retracted"},{"id":"h4","validator_did":"did:web:c.example","verdict":"SUPPORTED","reason":"cascade-pending"},
		{"id":"h5","validator_did":"did:web:a.example","verdict":"SUPPORTED","reason":"superseded"}`
	g := newTest(t, func(_ *testConsole, o *Options) {
		o.Ask = func(_ context.Context, q string) ([]byte, error) {
			return []byte(`{"verdict_summary":{"primary_verdict":"SUPPORTED"},"_meta":{"claim":{"claim_hash":"c"},"explanation":{"votes":[` + q + `]}}}`), nil
		}
	})
	_, page := g.get("grounding?ask=" + url.QueryEscape(votes))
	box := func(first, second string) string {
		return `<text x="10" y="17">` + first + `</text> <text class="g-second" x="10" y="32">` + second + `</text></svg></a>`
	}
	contains(t, "boxes", page, box("the claim", ""), box("SUPPORTED", "the verdict"), box("a1 SUPPORTED", "counts"), box("a2 REFUTED", "counts"), box("a4 SUPPORTED", "withdrawn"),
		box("a5 SUPPORTED", "its source withdrawn"), box("validator v1", "agrees"), box("validator v2", "another verdict"), box("validator v3", "does not count"))
	for class, n := range map[string]int{`class="g-box g-gone"`: 2, `<path class="g-edge g-gone" d="M136`: 2, `class="g-box g-end"`: 2, `<tr id="vote-`: 5, `<dt id="validator-`: 3, `<path class="g-edge g-against" d="M472`: 1} {
		if got := strings.Count(page, class); got != n {
			t.Errorf("%s: %d times, want %d", class, got, n)
		}
	}
	for _, part := range strings.Split(page, `href="#`)[1:] {
		if id, _, _ := strings.Cut(part, `"`); !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("a link to #%s, which is not there", id)
		}
	}
	if _, page = g.get("grounding?ask=" + url.QueryEscape(strings.TrimSuffix(strings.Repeat(`{"id":"h","validator_did":"v","reason":"counted"},`, 60), ","))); !strings.Contains(page, "36 attestations are in the table only") || strings.Count(page, `<tr id="vote-`) != 60 {
		t.Error("a long list is drawn whole, or not told whole")
	}
	if _, page = g.get("grounding?ask=%20"); strings.Contains(page, "<h2 id=\"gc\"") {
		t.Error("a drawing of nothing")
	}
}
