// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/outbound"
)

var _ outbound.Store = (*Ledger)(nil)

// ClaimExport implements outbound.Store.
func (l *Ledger) ClaimExport(ctx context.Context, name, holder string, begin int64, now, until time.Time) (position int64, ok bool, err error) {
	err = l.s.messages(ctx, "claim an export", func(t *tx) error {
		ok = false
		if err := t.exec(ctx, `INSERT INTO exports (name, position, holder, until) VALUES (?, ?, '', '') ON CONFLICT (name) DO NOTHING`, name, begin); err != nil {
			return err
		}
		return t.query(ctx, func(r *sql.Rows) error { ok = true; return r.Scan(&position) },
			`UPDATE exports SET holder = ?, until = ? WHERE name = ? AND (holder = '' OR holder = ? OR until <= ?) RETURNING position`,
			holder, stamp(until), name, holder, stamp(now))
	})
	return position, ok, err
}

// SaveExport implements outbound.Store.
func (l *Ledger) SaveExport(ctx context.Context, name, holder string, position int64, until time.Time) error {
	saved := false
	err := l.s.messages(ctx, "save an export", func(t *tx) error {
		saved = false
		return t.query(ctx, func(r *sql.Rows) error { saved = true; return r.Scan(&position) },
			`UPDATE exports SET position = ?, until = ? WHERE name = ? AND holder = ? RETURNING position`, position, stamp(until), name, holder)
	})
	if err == nil && !saved {
		return outbound.ErrLost
	}
	return err
}
