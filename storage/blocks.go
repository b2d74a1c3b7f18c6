// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/webhook"
)

var blocks = timedTable[hold.Block]{
	name: "block", columns: `id, server, tool, text, evidence, severity, since, until, lifted, lifter`, ended: "lifted", ender: "lifter",
	inForce: `lifted = '' AND until > ?`,
	scan: func(r *sql.Rows) (b hold.Block, err error) {
		err = r.Scan(&b.ID, &b.Server, &b.Tool, bytesIn(b.Text[:]), &b.Evidence, &b.Severity, stampIn{&b.Since}, stampIn{&b.Until}, stampIn{&b.Lifted}, &b.By)
		return b, err
	},
	values: func(b *hold.Block) []any {
		return []any{b.ID, b.Server, b.Tool, b.Text[:], b.Evidence, b.Severity, Stamp(b.Since), Stamp(b.Until), "", ""}
	},
	lifetime: func(b *hold.Block) lifetime { return lifetime{b.Since, b.Until, b.Lifted, b.By} },
	prepare:  prepareBlock,
	notify:   func(ctx context.Context, t *Tx) error { return t.tell(ctx, BlocksChanged) },
}

// Blocks returns the blocks of the store.
func (s *Store) Blocks() hold.TimedStore[hold.Block] { return &timedRows[hold.Block]{&blocks, s} }

// prepareBlock refuses a second block of a source, and stores the messages about a new one.
func prepareBlock(ctx context.Context, t *Tx, b *hold.Block) error {
	same := 0
	err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&same) },
		`SELECT count(*) FROM blocks WHERE id = ? OR lifted = '' AND until > ? AND server = ? AND tool = ? AND text = ?`,
		b.ID, Stamp(b.Since), b.Server, b.Tool, b.Text[:])
	switch {
	case err != nil:
		return err
	case same > 0:
		return refusal{hold.ErrExists}
	}
	return t.post(ctx, webhook.Notice{Type: webhook.SourceBlocked, At: b.Since, ID: b.ID, Server: b.Server, Tool: b.Tool, Scope: b.Scope(), Until: b.Until})
}
