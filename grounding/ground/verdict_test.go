// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
	"github.com/pellucid-mcp/pellucid/platform/datatest"
)

// TestVerdictStays: whatever becomes of the votes on the claim that was asked about, the
// verdict is on that claim, or UNVERIFIED; never on another that has the same words.
func TestVerdictStays(t *testing.T) {
	const (
		causes = "Substance Q causes the disease Z in children."
		denies = "Substance Q does not cause the disease Z in children."
		forty  = "Substance Q causes the disease Z in 40 children."
	)
	old := testTime.AddDate(-2, 0, 0)
	for _, x := range []struct {
		name   string
		on     saying // the claim that was asked about
		status string // of the vote in _meta.withheld
		reason string // of the vote in the explanation
		event  bool
		r      ground.Request
	}{
		{"retracted", saying{by: "a", claim: causes, verdict: "VERIFIED"}, "retracted", "retracted", true, ground.Request{}},
		{"expired", saying{by: "a", claim: causes, verdict: "VERIFIED", issued: old, expires: old.AddDate(1, 0, 0)}, "expired", "expired", false, ground.Request{}},
		{"not believed", saying{by: "a", claim: causes, verdict: "VERIFIED", domain: "journalism-default"}, "", "wrong-domain", false,
			ground.Request{Document: []byte(`{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:mine",` +
				`"version":"1","issued":"2020-01-01T00:00:00Z","domains":[{"name":"scientific-default","weight":1}]}`)}},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := newAdapter(t, ground.Options{Now: testClock})
			receipts := ingest(t, a, x.on, saying{by: "b", claim: denies, verdict: "VERIFIED"}, saying{by: "c", claim: forty, verdict: "VERIFIED"})
			if x.event {
				send(t, a, event(t, ground.Retract, receipts[0].Hash, "a", testTime))
			}
			x.r.Query = causes
			got := ask(t, a, x.r)
			if got.Summary.Verdict != "UNVERIFIED" || got.Summary.Validators != 0 || len(got.Attestations) != 0 {
				t.Errorf("%+v", got.Summary)
			}
			if got.Meta.Claim == nil || got.Meta.Claim.Text.Claim != causes || len(got.Meta.Others) != 2 {
				t.Errorf("the verdict is on %+v, %d others", got.Meta.Claim, len(got.Meta.Others))
			}
			if got.Meta.Explanation.Reasons[x.reason] != 1 {
				t.Errorf("%v", got.Meta.Explanation.Reasons)
			}
			if x.status != "" && (len(got.Meta.Withheld) != 1 || got.Meta.Withheld[0].Reason != x.status) {
				t.Errorf("withheld %+v", got.Meta.Withheld)
			}
		})
	}
	t.Run("never attested", func(t *testing.T) {
		a := newAdapter(t, ground.Options{Now: testClock})
		ingest(t, a, saying{by: "b", claim: denies, verdict: "VERIFIED"}, saying{by: "c", claim: forty, verdict: "VERIFIED"},
			saying{by: "d", claim: "Substance Q causes headache.", verdict: "VERIFIED"})
		for _, query := range []string{causes, "Does substance Q cause the disease Z in children?", "Substance Q causes the disease Z in 400 children."} {
			if got := ask(t, a, ground.Request{Query: query}); got.Summary.Verdict != "UNVERIFIED" || got.Meta.Claim != nil || len(got.Meta.Others) == 0 {
				t.Errorf("%s: %+v on %+v", query, got.Summary, got.Meta.Claim)
			}
		}
		for _, query := range []string{denies, forty, "Substance Q doesn't cause the disease Z in children"} {
			if got := ask(t, a, ground.Request{Query: query}); got.Summary.Verdict != "VERIFIED" {
				t.Errorf("%s: %+v on %+v", query, got.Summary, got.Meta.Claim)
			}
		}
	})
}

// TestClimateFeverExact: each of a few hundred published claims is found by its own words.
func TestClimateFeverExact(t *testing.T) {
	file, err := datatest.Find("../..", "climate-fever/climate-fever.jsonl.gz")
	if err != nil {
		t.Skip(err)
	}
	f, err := os.Open(filepath.Clean(file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	a := newAdapter(t, ground.Options{Now: testClock})
	var claims []string
	var batch []saying
	for d := json.NewDecoder(z); len(claims) < 400; {
		var row struct{ Claim string }
		if err := d.Decode(&row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, row.Claim)
		batch = append(batch, saying{by: "a", claim: row.Claim, verdict: "VERIFIED"})
	}
	for len(batch) > 0 {
		n := min(50, len(batch))
		ingest(t, a, batch[:n]...)
		batch = batch[n:]
	}
	wrong := 0
	for _, claim := range claims {
		got := ask(t, a, ground.Request{Query: claim})
		if got.Summary.Verdict != "VERIFIED" || got.Meta.Claim == nil || letters(got.Meta.Claim.Text.Claim) != letters(claim) {
			wrong++
			t.Logf("%+q: %+v, %+v", claim, got.Summary, got.Meta.Claim)
		}
	}
	t.Logf("%d claims, %d not found by their own words", len(claims), wrong)
	if wrong > 0 {
		t.Errorf("%d of %d", wrong, len(claims))
	}
}

// letters are those of ASCII in s, which sanitising leaves.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// TestLedgerScores: a profile that takes the ledger's scores gets them of one point, which
// the answer states; without a ledger it is refused, and others are asked as before.
func TestLedgerScores(t *testing.T) {
	const profile = `{"@context":"https://veritas-protocol.example/cpml/v0.1","@type":"ConsensusProfile","id":"urn:cpml:mine","version":"1",` +
		`"issued":"2020-01-01T00:00:00Z","domains":[{"name":"scientific-default","weight":1}],"validators":{"ledger":"reputation"}}`
	store := storetest.Open(t)
	asked := 0
	point := ground.LedgerPoint{Size: 12, At: testTime, Options: "1 700000 50000 86400"}
	a := newAdapter(t, ground.Options{Now: testClock, Store: store,
		Scores: func(_ context.Context, dids []string, now time.Time) ([]consensus.Score, ground.LedgerPoint, error) {
			asked++
			out := make([]consensus.Score, len(dids))
			for i := range out {
				out[i] = consensus.One / 2
				if dids[i] == validator(t, "b").DID() {
					out[i] = 0
				}
			}
			return out, point, nil
		}})
	ingest(t, a, saying{by: "a", claim: "Bees can count."}, saying{by: "b", claim: "Bees can count.", verdict: "FALSE"})
	if got := ask(t, a, ground.Request{Query: "Bees can count."}); got.Summary.Validators != 2 || asked != 0 {
		t.Errorf("%+v, asked %d times", got.Summary, asked)
	}
	r := ground.Request{Query: "Bees can count.", Document: []byte(profile)}
	answer, err := a.Ground(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	valid(t, answer)
	for _, want := range []string{`"ledger":"reputation"`, `"ledger_point":{"log_size":12,"at":"` + testTime.Format(time.RFC3339) + `","trust":"1 700000 50000 86400"}`,
		`"weight":"0.5","ledger_score":0.5`, `"reason":"no-weight"`} {
		if !strings.Contains(string(answer), want) {
			t.Errorf("the answer lacks %s: %s", want, answer)
		}
	}
	b := newAdapter(t, ground.Options{Now: testClock, Store: store})
	if _, err := b.Ground(t.Context(), r); !errors.Is(err, ground.ScoresUnknown) {
		t.Errorf("without a ledger: %v", err)
	}
}

// TestUntypedIsLoosened: what a loosened adapter has let through is shown by such an adapter
// alone, with the deviation; a strict one withholds it, and it does not count.
func TestUntypedIsLoosened(t *testing.T) {
	store := storetest.Open(t)
	loose := newAdapter(t, ground.Options{Now: testClock, Store: store, DangerouslyIngestUntyped: true})
	ingest(t, loose, saying{by: "a", claim: "Bees can count.", rationale: "See [here](https://x.example/)."})
	for _, x := range []struct {
		a     *ground.Adapter
		count int
		want  string
	}{
		{loose, 1, `"deviations":["dangerously_ingest_untyped"]`},
		{newAdapter(t, ground.Options{Now: testClock, Store: store}), 0, `"reason":"typed-link"`},
	} {
		answer, err := x.a.Ground(t.Context(), ground.Request{Query: "Bees can count."})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ground.ParseAnswer(answer); err != nil || got.Summary.Validators != x.count || !strings.Contains(string(answer), x.want) {
			t.Errorf("%v: %s", err, answer)
		}
		if loosened := strings.Contains(string(answer), `"sanitation_version":"none"`); loosened != (x.count == 1) {
			t.Errorf("sanitation_version: %s", answer)
		}
	}
}
