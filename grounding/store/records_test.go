// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestRecordedWithChange: the records of a change are stored with it, or neither is.
func TestRecordedWithChange(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s, rec := open(t, where, storage.Options{}), []byte("record")
		before := 0
		expect := func(what string, records int, do func() error) {
			t.Helper()
			err := do()
			n, err2 := s.Ledger().Waiting(ctx, 100)
			if err2 != nil || n-before != records || (err != nil) != (what == "put that cannot be recorded") {
				t.Errorf("%s: %d records, want %d: %v, %v", what, n-before, records, err, err2)
			}
			before = n
		}
		two := func(out []ground.PutResult) (records [][]byte, err error) {
			for range out {
				records = append(records, rec)
			}
			return records, nil
		}
		batch := []ground.Record{record("a", "One."), record("b", "Two.")}
		expect("put", 2, func() error { _, err := s.Put(ctx, batch, two); return err })
		refuse := func([]ground.PutResult) ([][]byte, error) { return nil, errors.New("no") }
		third := record("c", "Three.")
		expect("put that cannot be recorded", 0, func() error { _, err := s.Put(ctx, []ground.Record{third}, refuse); return err })
		if _, err := s.ByHash(ctx, third.Hash); !errors.Is(err, ground.ErrNotFound) {
			t.Errorf("stored without its record: %v", err)
		}
		e := ground.Cascade{Hash: hash("e"), Kind: ground.Retract, Target: "urn:x", At: day, Original: []byte("e")}
		expect("event", 1, func() error { _, err := s.Apply(ctx, e, rec); return err })
		expect("event again", 0, func() error { _, err := s.Apply(ctx, e, rec); return err })
	})
}
