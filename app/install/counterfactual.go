// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// KeepCounterfactual writes the digest of a counterfactual record into the ledger of the database,
// where one has begun: evidence is configured there. It returns the id of the record.
func (db Database) KeepCounterfactual(ctx context.Context, verdict string, record []byte) (id string, err error) {
	dir, err := local.OpenState()
	if err != nil {
		return "", err
	}
	s, err := db.Open(ctx, dir, false)
	if errors.Is(err, ErrNoStore) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	defer s.Close()
	kept, err := RecordsOf(ctx, s, dir)
	if err != nil {
		return "", local.OpenError(err)
	}
	if kept == nil {
		return "", nil
	}
	defer kept.Close()
	e := &ledger.Event{Time: time.Now(), Kind: ledger.Counterfactual, Verdict: verdict, Rule: "ccr-analyze",
		Subjects: []ledger.Subject{{Role: ledger.Output, Digest: sha256.Sum256(record)}}}
	sealed, err := kept.Seal(e)
	if err == nil {
		err = kept.Log.Add(ctx, [][]byte{sealed})
	}
	if err != nil {
		return "", err
	}
	kept.Seq.Wake()
	return e.ID.String(), nil
}

// errNotInLedger: no record of the ledger has the digest of a file.
var errNotInLedger = errors.New("no counterfactual record of the ledger has its digest: it was changed, or was never recorded there")

// CounterfactualOf finds the record of the ledger whose digest is that of the file.
func (db Database) CounterfactualOf(file []byte) (id ledger.ID, err error) {
	want := ledger.Subject{Role: ledger.Output, Digest: sha256.Sum256(file)}
	err = db.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		for before := int64(0); ; {
			list, err := l.List(ctx, sequence.Filter{Kind: ledger.Counterfactual, Before: before, Limit: 1000})
			if err != nil {
				return err
			}
			for i := range list {
				before = list[i].Index
				st, err := ledger.UnverifiedStatement(list[i].Envelope)
				if err != nil {
					return err
				}
				o, err := ledger.ParseOpening(list[i].Opening)
				if err == nil && o.Check(st) == nil && slices.Contains(o.Subjects, want) {
					id = list[i].ID
					return nil
				}
			}
			if len(list) == 0 || before == 0 {
				return fmt.Errorf("sha256:%s: %w", hex.EncodeToString(want.Digest[:]), errNotInLedger)
			}
		}
	})
	return id, err
}
