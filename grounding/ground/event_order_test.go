// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
)

// TestArrivalOrder: whatever the order in which attestations and events come, and
// come again where that is asked for, every attestation ends with the same status.
func TestArrivalOrder(t *testing.T) {
	one, other := storetest.Open(t), storetest.Open(t)
	seen := map[consensus.Status]bool{}
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++ // the stores are never emptied, so no two runs speak of the same
		all, hashes := cascadeCase(t, rt, run)
		want := arrive(t, one, all, hashes)
		if diff := cmp.Diff(want, arrive(t, other, rapid.Permutation(all).Draw(rt, "order"), hashes)); diff != "" {
			rt.Fatal(diff)
		}
		for _, s := range want {
			seen[s] = true
		}
	})
	if len(seen) < 3 {
		t.Errorf("only these statuses came up: %v", seen)
	}
}

// A delivery is an attestation or an event.
type delivery struct {
	event bool
	body  []byte
}

// cascadeCase draws attestations that depend on sources and on each other, and
// events about all of them. It returns the hashes of the attestations too.
func cascadeCase(t *testing.T, rt *rapid.T, run int) (all []delivery, hashes []string) {
	targets := []string{fmt.Sprint(source, run), fmt.Sprint("urn:doi:10.1000/", run)}
	authors := map[string]string{} // by hash
	for i := range rapid.IntRange(1, 6).Draw(rt, "attestations") {
		s := saying{by: fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "by")), claim: fmt.Sprintf("Ice melts in %d days, %d hours.", run, i)}
		s.dependsOn = rapid.SliceOfNDistinct(rapid.SampledFrom(targets), 0, 2, func(s string) string { return s }).Draw(rt, "depends on")
		body := s.sign(t)
		att, err := attest.Parse(body, attest.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h := att.Hash().String()
		authors[h] = s.by
		hashes, targets = append(hashes, h), append(targets, h, att.ID)
		all = append(all, delivery{false, body})
	}
	for range rapid.IntRange(0, 5).Draw(rt, "events") {
		kind := rapid.SampledFrom([]ground.CascadeKind{ground.Retract, ground.Reverse}).Draw(rt, "kind")
		target := rapid.SampledFrom(targets).Draw(rt, "target")
		by := "issuer"
		if authors[target] != "" && rapid.Bool().Draw(rt, "by the author") {
			by = authors[target]
		}
		at := testTime.Add(-time.Duration(rapid.IntRange(0, 3).Draw(rt, "ago")) * time.Hour)
		all = append(all, delivery{true, event(t, kind, target, by, at)})
	}
	return all, hashes
}

// arrive hands all in, again as long as anything asks for it, and returns the
// statuses by hash.
func arrive(t *testing.T, s ground.Store, all []delivery, hashes []string) map[string]consensus.Status {
	t.Helper()
	a := newAdapter(t, ground.Options{Store: s, Now: testClock, Issuers: []string{validator(t, "issuer").DID()}})
	for round := 0; len(all) > 0; round++ {
		if round > 1 {
			t.Fatalf("%d deliveries are never taken", len(all))
		}
		var again []delivery
		for _, d := range all {
			var r ground.Receipt
			if d.event {
				r, _ = send(t, a, d.body)
			} else {
				rs, err := a.Ingest(t.Context(), "test", [][]byte{d.body})
				if err != nil {
					t.Fatal(err)
				}
				r = rs[0]
			}
			if r.Retry {
				again = append(again, d)
			}
		}
		all = again
	}
	out := map[string]consensus.Status{}
	for _, h := range hashes {
		out[h] = statusOf(t, s, h)
	}
	return out
}
