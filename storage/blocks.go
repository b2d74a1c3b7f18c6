// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

var _ hold.BlockStore = (*Store)(nil)

var blocks = timedTable[hold.Block]{"block", `id, server, tool, text, evidence, severity, since, until, lifted, lifter`, `lifted = '' AND until > ?`,
	func(r *sql.Rows) (b hold.Block, err error) {
		err = r.Scan(&b.ID, &b.Server, &b.Tool, bytesIn(b.Text[:]), &b.Evidence, &b.Severity, stampIn{&b.Since}, stampIn{&b.Until}, stampIn{&b.Lifted}, &b.By)
		return b, err
	}, func(b *hold.Block, now time.Time) error {
		return endedRow("block", "lifted", b.Lifted, b.By, b.Until, now)
	}}

// AddBlock implements hold.BlockStore.
func (s *Store) AddBlock(ctx context.Context, b hold.Block, most int, evidence []byte) error {
	return blocks.addRow(ctx, s, b.Since, most, func(t *tx) error {
		same := 0
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&same) },
			`SELECT count(*) FROM blocks WHERE id = ? OR lifted = '' AND until > ? AND server = ? AND tool = ? AND text = ?`,
			b.ID, stamp(b.Since), b.Server, b.Tool, b.Text[:])
		switch {
		case err != nil:
			return err
		case same > 0:
			return refusal{hold.ErrExists}
		}
		told := webhook.Notice{Type: webhook.SourceBlocked, At: b.Since, ID: b.ID, Server: b.Server, Tool: b.Tool, Scope: b.Scope(), Until: b.Until}
		return errors.Join(t.pend(ctx, evidence), t.post(ctx, told), t.tell(ctx, BlocksChanged))
	}, b.ID, b.Server, b.Tool, b.Text[:], b.Evidence, b.Severity, stamp(b.Since), stamp(b.Until), "", "")
}

// ListBlocks implements hold.BlockStore.
func (s *Store) ListBlocks(ctx context.Context, now time.Time, all bool) ([]hold.Block, error) {
	return blocks.listRows(ctx, s, now, all)
}

// GetBlock implements hold.BlockStore.
func (s *Store) GetBlock(ctx context.Context, id string) (hold.Block, error) {
	return blocks.getRow(ctx, s, id)
}

// LiftBlock implements hold.BlockStore.
func (s *Store) LiftBlock(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return blocks.changeRow(ctx, s, id, now, func(t *tx, _ *hold.Block) error {
		return errors.Join(t.pend(ctx, evidence), t.exec(ctx, `UPDATE blocks SET lifted = ?, lifter = ? WHERE id = ?`, stamp(now), by, id), t.tell(ctx, BlocksChanged))
	})
}

// SweepBlocks implements hold.BlockStore.
func (s *Store) SweepBlocks(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep blocks", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM blocks WHERE until < ?`, stamp(old))
	})
}
