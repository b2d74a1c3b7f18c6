// SPDX-License-Identifier: Apache-2.0

package demonstration_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

func TestAttestations(t *testing.T) {
	set := demonstration.Attestations()
	if !slices.EqualFunc(set, demonstration.Attestations(), bytes.Equal) {
		t.Error("not the same each time")
	}
	count := map[string]map[string]bool{}
	add := func(of, what string) {
		if count[of] == nil {
			count[of] = map[string]bool{}
		}
		count[of][what] = true
	}
	pr, err := attest.NewProjector(attest.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	var known []attest.Identity
	var replaced, stripped, expired int
	for _, body := range set {
		a, err := attest.Parse(body, attest.Options{})
		if err == nil {
			err = a.Verify(t.Context(), now, attest.DIDKey{})
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range known {
			if r := attest.Relate(k, a.Identity()); r != attest.Distinct {
				t.Errorf("%s: relation %d", a.ID, r)
			}
		}
		known = append(known, a.Identity())
		if d, err := (*consensus.Registry)(nil).Resolve(a.Domain); err != nil || string(d) != a.Domain {
			t.Errorf("%s: domain %s: %v", a.ID, a.Domain, err)
		}
		add("validators", a.Validator)
		add("claims", a.ClaimHash.String())
		add("domains", a.Domain)
		add("verdicts", string(a.Verdict))
		add("languages", a.Claim.Language)
		topic, _, _ := strings.Cut(a.Claim.Topic, ":")
		add("topics", topic)
		var p attest.Projection
		if err := pr.Project(a, &p); err != nil {
			t.Fatal(err)
		}
		replaced += len(p.Meta.ConfusablesReplaced)
		stripped += len(p.Meta.StrippedPositions)
		if !a.Expires.IsZero() && a.Expires.Before(now) {
			expired++
		}
	}
	for of, least := range map[string]int{
		"validators": 5, "claims": 11, "domains": 6, "verdicts": 6, "languages": 3, "topics": 5,
	} {
		if len(count[of]) < least {
			t.Errorf("%d %s, want %d", len(count[of]), of, least)
		}
	}
	if replaced == 0 || stripped == 0 || expired != 1 {
		t.Errorf("%d replaced, %d stripped, %d expired", replaced, stripped, expired)
	}
}
