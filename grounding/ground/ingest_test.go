// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/attest"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
)

// TestReceipts: each attestation of a batch has a fate of its own, and what was
// refused is told as evidence, without its text.
func TestReceipts(t *testing.T) {
	var refused []ground.Refused
	a := newAdapter(t, ground.Options{Now: testClock, Refused: func(r ground.Refused) { refused = append(refused, r) }})
	good := saying{by: "a", claim: "Snow is cold."}.sign(t)
	other := saying{by: "b", claim: "Snow is cold."}.sign(t)
	forged := bytes.Replace(other, []byte("SUPPORTED"), []byte("FALSE"), 1)
	stolen := bytes.Replace(other, []byte(validator(t, "b").DID()), []byte(validator(t, "a").DID()), 1)
	late := saying{by: "a", claim: "Snow will fall.", issued: testTime.AddDate(0, 0, 1)}.sign(t)
	renewal := saying{by: "a", claim: "Snow is cold.", issued: testTime.AddDate(0, 0, -1)}.sign(t)
	bodies := [][]byte{
		good, []byte("{"), forged, stolen, saying{by: "c", claim: "<b>Snow</b> is cold.", rationale: "<script>alert(1)</script>"}.sign(t),
		good, late, other, renewal, bytes.Repeat([]byte(" "), attest.MaxBytes+1),
		saying{by: "a", claim: "Sno\u200bw is cold."}.sign(t),
	}
	rs, err := a.Ingest(t.Context(), "lab-1", bodies)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range rs {
		s := r.Code
		if r.Accepted {
			s = "+" + r.Status
		}
		if r.Renews != "" {
			s += " renews"
		}
		got = append(got, s)
	}
	want := []string{
		"+live", "not-json", "proof-invalid", "proof-key", "typed-tag",
		"duplicate", "proof-time", "+live", "+live renews", "too-long",
		"duplicate", // a hidden character makes no other statement
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rs[8].Renews != rs[0].Hash || rs[5].Repeats != rs[0].Hash {
		t.Errorf("renews %s, repeats %s, want %s", rs[8].Renews, rs[5].Repeats, rs[0].Hash)
	}
	if len(refused) != 7 {
		t.Errorf("%d refusals told, want 7: a replay is none", len(refused))
	}
	for _, r := range refused {
		if r.Submitter != "lab-1" || !strings.HasPrefix(r.Digest, "sha256:") || !r.At.Equal(testTime) {
			t.Errorf("%+v", r)
		}
		if strings.Contains(fmt.Sprint(r), "script") {
			t.Errorf("third-party text in %+v", r)
		}
	}
}

// TestIngestFailures: a store that fails is told of, and a batch that was not
// acknowledged may be handed in again.
func TestIngestFailures(t *testing.T) {
	s := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: s, Now: testClock})
	body := saying{by: "a", claim: "Snow is cold."}.sign(t)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if rs, err := a.Ingest(ctx, "", [][]byte{body}); err == nil {
		t.Errorf("a cancelled batch was acknowledged: %+v", rs)
	}
	if rs, err := a.Ingest(t.Context(), "", nil); err != nil || len(rs) != 0 {
		t.Errorf("an empty batch: %v, %v", rs, err)
	}
	s.Close()
	rs, err := a.Ingest(t.Context(), "", [][]byte{body, []byte("no")})
	if err != nil {
		t.Fatal(err)
	}
	if rs[0].Accepted || !rs[0].Retry || rs[0].Code != ground.CodeUnavailable {
		t.Errorf("closed store: %+v", rs[0])
	}
	if rs[1].Retry || rs[1].Code != "not-json" {
		t.Errorf("a refusal does not depend on the store: %+v", rs[1])
	}
	if _, err := a.Ground(t.Context(), ground.Request{Query: "snow"}); err == nil || !strings.HasPrefix(err.Error(), ground.Unavailable.Error()) {
		t.Errorf("query: %v", err)
	}
}

// TestLargeBatch: more than a Put takes, and each receipt at its place.
func TestLargeBatch(t *testing.T) {
	a := newAdapter(t, ground.Options{Now: testClock})
	n := ground.MaxBatch + 10
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = []byte("{}")
	}
	bodies[5] = saying{by: "a", claim: "Snow is cold."}.sign(t)
	bodies[n-1] = saying{by: "b", claim: "Snow is cold."}.sign(t)
	rs, err := a.Ingest(t.Context(), "", bodies)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		if want := i == 5 || i == n-1; r.Accepted != want {
			t.Fatalf("%d: %+v", i, r)
		}
	}
}

// TestOrder: the answer does not depend on the order in which attestations came.
func TestOrder(t *testing.T) {
	var all [][]byte
	for i := range 12 {
		all = append(all, saying{
			by: fmt.Sprint(i % 7), claim: []string{"Rain is wet.", "Rain is wet and cold."}[i/7],
			verdict: []string{"SUPPORTED", "FALSE", "QUALIFIED"}[i%3], issued: testTime.AddDate(0, 0, -1-i),
		}.sign(t))
	}
	var want []byte
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 0))
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		a := newAdapter(t, ground.Options{Now: testClock})
		for at := 0; at < len(all); {
			n := 1 + r.IntN(len(all)-at)
			if _, err := a.Ingest(context.Background(), "", all[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		got, err := a.Ground(context.Background(), ground.Request{Query: "rain is wet"})
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatal(diff)
		}
	}
}
