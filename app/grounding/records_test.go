// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

// TestRecords: a record names no person and holds no word of a third party, and a duplicate has none.
func TestRecords(t *testing.T) {
	r := &records{deviations: "dangerously_ingest_untyped"}
	batch := make([]ground.Record, 3)
	for i := range batch {
		batch[i] = ground.Record{Hash: [32]byte{byte(i)}, Validator: "did:web:secret.example", ClaimText: "secret"}
	}
	list, err := r.Put(batch, []ground.PutResult{{Disposition: ground.Added}, {Disposition: ground.Duplicate}, {Disposition: ground.Renewed}})
	if err != nil || len(list) != 2 {
		t.Fatalf("%d records, %v", len(list), err)
	}
	event, err := r.Apply(ground.Cascade{Hash: [32]byte{1}, Kind: ground.Retract, Target: "urn:secret", Against: "did:web:secret.example"})
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range append(list, event) {
		s, err := ledger.ReadSealed(b)
		if err != nil {
			t.Fatal(err)
		}
		st, err := ledger.ParseStatement(s.Statement)
		want := []string{"added", "renewed", "retracted"}[i]
		if err != nil || st.Verdict != want || st.Kind == ledger.AttestationEvent != (i == 2) || bytes.Contains(b, []byte("secret")) {
			t.Errorf("%s: %+v, %v: %s", want, st, err, b)
		}
	}
}

// TestRefusalsRecorded: every refusal is in the log when the adapter has ended, also what came faster than the log takes it,
// as a number of lost records.
func TestRefusalsRecorded(t *testing.T) {
	dir := stateDir(t)
	s, err := openGroundStore(t.Context(), dir, filepath.Join(t.TempDir(), "g.db"), MakeStore)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o := ground.Options{Store: s.attestations}
	r, err := s.record(t.Context(), dir, &o, nil, true, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r.lost.Store(3)
	const refusals = 2000
	for i := range refusals {
		o.Refused(ground.Refused{At: time.Now(), Submitter: fmt.Sprint("submitter ", i), Validator: "did:web:v.example", Receipt: ground.Receipt{Code: "bad-proof"}})
	}
	r.Close()
	head, err := s.Ledger().Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, err := s.Ledger().Rows(t.Context(), 0, 2*refusals)
	if err != nil || int64(len(rows)) != head.Size {
		t.Fatalf("%d rows of %d, %v", len(rows), head.Size, err)
	}
	counts := map[ledger.Kind]int{}
	for _, row := range rows {
		counts[ledger.Kind(row.Kind)]++
	}
	if counts[ledger.AttestationRefused] != refusals || counts[ledger.RecordsLost] != 1 {
		t.Errorf("%v", counts)
	}
}
