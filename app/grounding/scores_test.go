// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"encoding/json"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// TestLedgerScores: what a profile gets is what a replay of the log gives, of the point that is
// stated, and it moves on with the log.
func TestLedgerScores(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s, err := openGroundStore(t.Context(), dir, filepath.Join(t.TempDir(), "g.db"), MakeStore)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const unknown = "did:web:nobody.example"
	of, now := s.scores(log), time.Now()
	if got, point, err := of(t.Context(), []string{unknown}, now); err != nil || got[0] != 700_000 || point.Size != 0 {
		t.Fatalf("without a log: %v at %+v, %v", got, point, err)
	}
	take := func(bodies [][]byte) (dids []string) {
		o := ground.Options{Store: s}
		kept, err := s.record(t.Context(), dir, &o, nil, true, log)
		if err != nil {
			t.Fatal(err)
		}
		defer kept.Close() // which integrates
		a, err := ground.New(o)
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := a.Ingest(t.Context(), "", bodies)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range receipts {
			var doc struct {
				Validator string `json:"validator_did"`
			}
			if err := json.Unmarshal(bodies[i], &doc); err != nil || !r.Accepted || doc.Validator == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			dids = append(dids, doc.Validator)
		}
		return dids
	}
	all := demonstration.Attestations()
	last := int64(0)
	for _, bodies := range [][][]byte{all[:1], all[1:]} {
		dids := append(take(bodies), unknown)
		got, point, err := of(t.Context(), dids, now)
		if err != nil || point.Size < last+int64(len(bodies)) || point.Options != (trust.Options{}).Name() {
			t.Fatalf("%+v, %v", point, err)
		}
		last = point.Size
		head, err := s.Ledger().Head(t.Context())
		if err != nil || head.Size != point.Size {
			t.Fatalf("the log has %d records, %v", head.Size, err)
		}
		state, err := standing.Replay(t.Context(), s.Ledger(), head.Size, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, did := range dids {
			want := state.Score(trust.Origin{Validator: standing.ValidatorName(did)}, point.At.Unix())
			if consensus.Score(want) != got[i] || (got[i] > 700_000) != (did != unknown) {
				t.Errorf("%s: %v, want %v", did, got[i], want)
			}
		}
	}
}
