// SPDX-License-Identifier: Apache-2.0

package grounding

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/consensus"
	"github.com/pellucid-mcp/pellucid/grounding/demonstration"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// TestScores: a profile gets the scores that a replay of the adapter's own log gives, by way of the file that pellucid trust
// --json writes, of the point that the file states; and those of a newer file as soon as it is there.
func TestScores(t *testing.T) {
	dir := stateDir(t)
	s, err := openGroundStore(t.Context(), dir, filepath.Join(t.TempDir(), "g.db"), MakeStore)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	accept := func(bodies [][]byte) (dids []string) {
		o := ground.Options{Store: s.attestations}
		kept, err := s.record(t.Context(), dir, &o, nil, true, slog.New(slog.DiscardHandler))
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
	const unknown = "did:web:nobody.example"
	file := filepath.Join(t.TempDir(), "scores.jsonl")
	of := newScoreFile(file, slog.New(slog.DiscardHandler)).of
	if _, _, err := of(t.Context(), []string{unknown}, time.Now()); err == nil {
		t.Error("without a file: no error")
	}
	all := demonstration.Attestations()
	last := int64(0)
	for _, bodies := range [][][]byte{all[:1], all[1:]} {
		dids := append(accept(bodies), unknown)
		state, size, err := standing.Current(t.Context(), s.Ledger())
		if err != nil {
			t.Fatal(err)
		}
		var rows bytes.Buffer
		at := time.Now()
		if _, err := standing.WriteRows(&rows, state, size, at); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, rows.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		got, point, err := of(t.Context(), dids, time.Now())
		if err != nil || point.Size != size || size < last+int64(len(bodies)) || point.Options != (trust.Options{}).Name() || !point.At.Equal(at.Truncate(time.Second)) {
			t.Fatalf("%+v, %v", point, err)
		}
		last = size
		for i, did := range dids {
			want := state.Score(trust.Origin{Validator: standing.ValidatorName(did)}, at.Unix())
			if consensus.Score(want) != got[i] || (got[i] > 700_000) != (did != unknown) {
				t.Errorf("%s: %v, want %v", did, got[i], want)
			}
		}
	}
	for name, spoil := range map[string]func() error{
		"garbage": func() error { return os.WriteFile(file, []byte("{"), 0o600) }, "no file": func() error { return os.Remove(file) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, point, err := of(t.Context(), []string{unknown}, time.Now()); err != nil || point.Size != last {
			t.Errorf("%s: %+v, %v: the scores of the last reading do not count on", name, point, err)
		}
	}
}

// TestParseScores: an empty file gives every validator the score at rest; a file that is not of one point of one log, or not
// what pellucid trust prints, is refused.
func TestParseScores(t *testing.T) {
	const row = `{"validator":"ab","score":"0.301000","log_size":9,"at":"2026-04-25T12:00:00Z","trust":"2 700000 50000 86400"}`
	if s, err := parseScores(nil); err != nil || s.rest != 700_000 || s.point != (ground.LedgerPoint{}) {
		t.Errorf("an empty file: %+v, %v", s, err)
	}
	if s, err := parseScores([]byte(row + "\n")); err != nil || s.of["ab"] != 301_000 || s.rest != 700_000 || s.point.Size != 9 {
		t.Errorf("%+v, %v", s, err)
	}
	for edit, name := range map[[2]string]string{
		{`"0.301000"`, `"2"`}:               "a score above 1",
		{`"0.301000"`, `"NaN"`}:             "no number",
		{`"2 700000 50000 86400"`, `"2"`}:   "other arithmetic",
		{`700000 5`, `7000000 5`}:           "a resting score above 1",
		{`"score"`, `"scores"`}:             "another member",
		{`}`, "}\n" + `{"validator":"cd"}`}: "another point",
		{`{`, ``}:                           "no JSON",
	} {
		if s, err := parseScores([]byte(strings.Replace(row, edit[0], edit[1], 1))); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// FuzzParseScores: any bytes give scores from 0 to 1, or an error.
func FuzzParseScores(f *testing.F) {
	f.Add([]byte(`{"validator":"ab","score":"0.3","log_size":9,"at":"2026-04-25T12:00:00Z","trust":"2 700000 50000 86400"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := parseScores(src)
		if err != nil {
			return
		}
		for _, score := range s.of {
			if score > consensus.One || s.rest > consensus.One {
				t.Errorf("%+v", s)
			}
		}
	})
}
