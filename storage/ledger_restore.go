// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// The errors of Restore, to be compared with errors.Is.
var (
	ErrNothingLost = errors.New("storage: the log in the database is as large already")
	ErrOtherLog    = errors.New("storage: the copy is not a continuation of the log in the database")
)

// Restore adds the records that the database has lost, from a copy of the log whose checkpoint one of
// the keys has signed, and takes back the reason for which the log was stopped. All of them or none are
// added. Their openings are lost. It returns how many records were added.
func (l *Ledger) Restore(ctx context.Context, src ledger.Source, keys []*ledger.Key) (n int64, err error) {
	head, err := l.Head(ctx)
	if err != nil {
		return 0, err
	}
	msg, err := src.Checkpoint(ctx)
	if err != nil {
		return 0, err
	}
	c, err := ledger.OpenCheckpoint(msg, keys, nil)
	if err != nil {
		return 0, err
	}
	switch {
	case c.Origin != head.Origin:
		return 0, ErrOtherLog
	case c.Size <= head.Size:
		return 0, ErrNothingLost
	}
	tree, err := ledger.OpenTree(head.Size, func(level int, n int64, width int) ([]byte, error) { return l.Tile(ctx, level, n, width) })
	if err != nil {
		return 0, err
	}
	next := sequence.Head{Origin: head.Origin, Signer: head.Signer, Size: c.Size, Checkpoint: msg}
	err = l.update(ctx, "restore the log", func(t *Tx) error {
		for at := head.Size; at < c.Size; {
			entries, err := lost(ctx, src, at, c.Size)
			if err != nil {
				return err
			}
			leaves := make([]ledger.Hash, len(entries))
			for i := range entries {
				leaves[i] = ledger.LeafHash(entries[i].Envelope)
				if k := entries[i].Statement.Key; entries[i].Kind == ledger.KeyInstalled {
					key, err := ledger.ParseKey(k)
					if err != nil {
						return err
					}
					next.Signer = key.ID()
				}
			}
			if err := t.add(ctx, &sequence.Batch{Entries: entries, Tiles: tree.Append(leaves)}); err != nil {
				return err
			}
			at += int64(len(entries))
		}
		if tree.Root() != c.Root {
			return ErrOtherLog // nothing was committed
		}
		if err := t.takeLease(ctx, logLease); err != nil {
			return err
		}
		if err := t.Execute(ctx, `UPDATE ledger_head SET size = ?, checkpoint = ?, signer = ? WHERE size = ?`,
			next.Size, next.Checkpoint, next.Signer, head.Size); err != nil {
			return err
		}
		return t.Execute(ctx, `DELETE FROM ledger_stop`)
	})
	if err != nil {
		if errors.Is(err, ErrOtherLog) {
			err = ErrOtherLog
		}
		return 0, err
	}
	return c.Size - head.Size, nil
}

// lost reads records of the copy: to the end of a bundle, since a copy has bundles.
func lost(ctx context.Context, src ledger.Source, at, size int64) ([]sequence.Entry, error) {
	const wide = 256
	first := at / wide * wide
	list, err := src.Entries(ctx, first, int(min(wide, size-first)))
	if err != nil {
		return nil, fmt.Errorf("storage: restore: records from %d on: %w", first, err)
	}
	if int64(len(list)) <= at-first {
		return nil, ledger.ErrNotFound
	}
	out := make([]sequence.Entry, 0, len(list))
	for i, envelope := range list[at-first:] {
		e, err := ledger.ParseEnvelope(envelope)
		if err != nil {
			return nil, err
		}
		st, err := ledger.ParseStatement(e.Statement)
		if err != nil {
			return nil, err
		}
		out = append(out, sequence.Entry{Index: at + int64(i), ID: st.ID, Time: st.Time, Server: st.Server, Kind: st.Kind, Envelope: envelope, Statement: st})
	}
	return out, nil
}
