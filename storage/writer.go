// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"

	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A writer is one chain of records that this process stores: sequence.Link. A transaction
// that stores records has it for itself until it has ended.
type writer struct {
	key  *sequence.ChainKey
	turn chan sequence.Link // the last link that was committed
}

func newWriter(key *sequence.ChainKey) *writer {
	w := &writer{key, make(chan sequence.Link, 1)}
	w.turn <- sequence.Link{Writer: key.NewWriter()}
	return w
}

// AddRecords stores records for the ledger with whatever else the transaction does.
func (t *Tx) AddRecords(ctx context.Context, records ...[]byte) error {
	var args []any
	for _, r := range records {
		if r == nil {
			continue
		}
		if t.last == nil {
			select {
			case last := <-t.writer.turn:
				t.last = &last
			case <-ctx.Done():
				return ctx.Err()
			}
			t.began = *t.last
		}
		*t.last = t.writer.key.Next(*t.last, r)
		args = append(args, r, t.last.Writer, t.last.Seq, Blob(t.last.Prev), t.last.MAC)
	}
	return t.InsertRows(ctx, "ledger_pending (record, writer, wseq, prev, mac)", 5, "", args)
}

// closeChain notes the last link, before the transaction is committed.
func (t *Tx) closeChain(ctx context.Context) error {
	if t.last == nil {
		return nil
	}
	return t.Execute(ctx, `INSERT INTO ledger_writers (writer, wseq, tag) VALUES (?, ?, ?) ON CONFLICT (writer)
		DO UPDATE SET wseq = excluded.wseq, tag = excluded.tag`, t.last.Writer, t.last.Seq, t.writer.key.Tag(*t.last))
}

// release lets the next transaction have the writer. After a commit that failed it is not
// known whether the links are stored: then the chain ends, and another one begins.
func (t *Tx) release(err error, committed bool) {
	switch {
	case t.last == nil:
	case !committed:
		t.writer.turn <- t.began
	case err != nil:
		t.writer.turn <- sequence.Link{Writer: t.writer.key.NewWriter()}
	default:
		t.writer.turn <- *t.last
	}
	t.last = nil
}
