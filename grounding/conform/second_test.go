// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/href"
)

// A second adapter is made of an oracle instead of scrub. What it refuses is
// attest's word, but each reason can be switched off.
type second struct {
	*oracle
	ignore func(finding.Code) bool // refusals that are not made; nil: none
	harden func(string) string     // of URIs
	silent bool                    // _meta stays empty
	twice  bool                    // duplicates are taken
	quotes int                     // how many are shown
	held   map[string][]fed
}

// fed is what the adapter reads of an attestation, leniently.
type fed struct {
	Claim          struct{ Text string }
	Validator      string `json:"validator_did"`
	Verdict        string
	Domain         string `json:"consensus_domain"`
	Rationale      string
	Qualifications string
	Evidence       []struct{ Quote, URI string }
	hash           attest.Hash
	key            attest.DedupKey
}

func newSecond() *second {
	return &second{oracle: newOracle(), quotes: 5, held: map[string][]fed{}, harden: func(s string) string {
		u, _ := href.Parse(s)
		return u.Rendered()
	}}
}

func (d *second) Ingest(_ context.Context, src []byte) (Receipt, error) {
	a, err := parse(src)
	var refusal *attest.Refusal
	if errors.As(err, &refusal) && (d.ignore == nil || !d.ignore(refusal.Code)) {
		return Receipt{Code: string(refusal.Code)}, nil
	}
	var f fed
	if err := json.Unmarshal(src, &f); err != nil && refusal == nil {
		return Receipt{}, err
	}
	if a != nil {
		id := a.Identity()
		f.hash, f.key = id.Hash, id.Key
		for _, g := range d.held[f.Claim.Text] {
			if !d.twice && (f.hash == g.hash || f.key.Text == g.key.Text) {
				return Receipt{Code: "duplicate"}, nil
			}
		}
	}
	d.held[f.Claim.Text] = append(d.held[f.Claim.Text], f)
	return Receipt{Accepted: true}, nil
}

func (d *second) Query(_ context.Context, query string) (Answer, error) {
	type object = map[string]any
	truncated, replaced, stripped := []any{}, []any{}, []any{}
	clean := func(s string, limit int) string {
		m := d.clean(s, limit)
		if m.truncated {
			truncated = append(truncated, object{"field": "attestations/0"})
		}
		if m.replaced {
			replaced = append(replaced, object{"field": "attestations/0"})
		}
		if m.stripped {
			stripped = append(stripped, object{"field": "attestations/0"})
		}
		return m.text
	}
	list := []any{}
	for _, f := range d.held[query] {
		quotes := []any{}
		for i, e := range f.Evidence {
			if i == d.quotes {
				truncated = append(truncated, object{"field": "attestations/0/evidence"})
				break
			}
			quotes = append(quotes, object{"_untrusted_quote": object{
				"@type": frameType, "warning": warning, "quote": clean(e.Quote, 1000), "source_uri": d.harden(e.URI),
			}})
		}
		list = append(list, object{
			"validator_did": f.Validator, "verdict": f.Verdict, "consensus_domain": f.Domain,
			"_untrusted_text": object{
				"@type": frameType, "warning": warning, "evidence": quotes,
				"rationale": clean(f.Rationale, 2000), "qualifications": clean(f.Qualifications, 2000),
			},
		})
	}
	if d.silent {
		truncated, replaced, stripped = []any{}, []any{}, []any{}
	}
	out, err := json.Marshal(object{
		"@type": "veritas:GroundedAttestationResponse", "@version": "0.1", "query": d.clean(query, 2000).text,
		"consensus_domain": "scientific-default", "attestations": list,
		"verdict_summary": object{"primary_verdict": "SUPPORTED", "validator_count": 1, "disagreement_present": false},
		"_meta": object{
			"sanitation_version": "0.1", "truncated": truncated, "confusables_replaced": replaced,
			"stripped_positions": stripped, "confusables_present": false,
		},
	})
	return Answer{JSON: out}, err
}

// TestSecond: another implementation of the RFC, from other parts, passes too, so
// the expectations are not what scrub happens to do.
func TestSecond(t *testing.T) {
	rep := run(t, &Runner{Adapter: newSecond()})
	for _, v := range rep.Vectors {
		// nfkc_lossy is ours, and this adapter has never heard of it.
		if v.Status == "fail" && !slices.ContainsFunc(v.Faults, func(f Fault) bool { return strings.HasPrefix(f.What, "nfkc_lossy") }) {
			t.Errorf("%s %s: %v", v.Level, v.ID, v.Faults)
		}
	}
	if !rep.Conforms {
		t.Error("does not conform")
	}
}
