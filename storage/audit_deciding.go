// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// Deciding is the rows by which calls, results and items pass or are kept back. Those of held results are for the Audit.
type Deciding struct {
	Approvals  []hold.Approval
	Exceptions []hold.Exception
	Blocks     []hold.Block
	Pins       map[string][]byte // by server
	Unread     []string          // rows that cannot be read, by table and id
}

// Deciding reads the rows as they are now.
func (l *Ledger) Deciding(ctx context.Context) (d Deciding, err error) {
	if d.Approvals, err = rowsOf(ctx, l.s, &d, "approval", "call", approvalColumns, scanApproval, func(a *hold.Approval) string { return a.ID }); err != nil {
		return d, err
	}
	if d.Exceptions, err = rowsOf(ctx, l.s, &d, "exception", "digest", exceptionColumns, scanException, func(e *hold.Exception) string { return e.ID }); err != nil {
		return d, err
	}
	if d.Blocks, err = rowsOf(ctx, l.s, &d, "block", "text", blockColumns, scanBlock, func(b *hold.Block) string { return b.ID }); err != nil {
		return d, err
	}
	d.Pins = map[string][]byte{}
	err = l.s.query(ctx, func(r *sql.Rows) error {
		var server string
		var record []byte
		err := r.Scan(&server, &record)
		d.Pins[server] = record
		return err
	}, `SELECT server, record FROM pins WHERE record IS NOT NULL`)
	return d, l.s.fail(ctx, "read the rows that decide", err)
}

// rowsOf reads the table of a kind of row, whose name it has in the plural. digest is a column of 32 bytes.
func rowsOf[T any](ctx context.Context, s *Store, d *Deciding, kind, digest, columns string, scan func(*sql.Rows) (T, error), id func(*T) string) (out []T, err error) {
	odd := map[string]bool{}
	if err := s.query(ctx, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		odd[id] = true
		return err
	}, `SELECT id FROM `+kind+`s WHERE length(`+digest+`) <> 32`); err != nil {
		return nil, s.fail(ctx, "read the rows that decide", err)
	}
	err = s.query(ctx, func(r *sql.Rows) error {
		row, err := scan(r)
		if err != nil || !hold.ValidID(id(&row)) || odd[id(&row)] {
			d.Unread = append(d.Unread, kind+" "+writerName(id(&row)))
			return nil
		}
		out = append(out, row)
		return nil
	}, `SELECT `+columns+` FROM `+kind+`s ORDER BY id`)
	return out, s.fail(ctx, "read the rows that decide", err)
}
