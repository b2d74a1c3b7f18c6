// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// DecisionRows are the rows by which calls, results and items pass or are kept back. Audit compares those of held results.
type DecisionRows struct {
	Approvals  []hold.Approval
	Exceptions []hold.Exception
	Blocks     []hold.Block
	Pins       map[string][]byte // by server
	Unread     []string          // rows that cannot be read, by table and id
}

// DecisionRows reads the rows as they are now.
func (l *Ledger) DecisionRows(ctx context.Context) (d DecisionRows, err error) {
	if d.Approvals, err = rowsOf(ctx, l.s, &d, &approvals, "call", func(a *hold.Approval) string { return a.ID }); err != nil {
		return d, err
	}
	if d.Exceptions, err = rowsOf(ctx, l.s, &d, &exceptions, "digest", func(e *hold.Exception) string { return e.ID }); err != nil {
		return d, err
	}
	if d.Blocks, err = rowsOf(ctx, l.s, &d, &blocks, "text", func(b *hold.Block) string { return b.ID }); err != nil {
		return d, err
	}
	d.Pins = map[string][]byte{}
	err = l.s.EachRow(ctx, func(r *sql.Rows) error {
		var server string
		var record []byte
		err := r.Scan(&server, &record)
		d.Pins[server] = record
		return err
	}, `SELECT server, record FROM pins WHERE record IS NOT NULL`)
	return d, l.s.Fail(ctx, "read the rows that decide", err)
}

// rowsOf reads a table. digest is a column of 32 bytes.
func rowsOf[T any](ctx context.Context, s *Store, d *DecisionRows, of *timedTable[T], digest string, id func(*T) string) (out []T, err error) {
	wrongLength := map[string]bool{}
	if err := s.EachRow(ctx, func(r *sql.Rows) error {
		var id string
		err := r.Scan(&id)
		wrongLength[id] = true
		return err
	}, `SELECT id FROM `+of.name+`s WHERE length(`+digest+`) <> 32`); err != nil {
		return nil, s.Fail(ctx, "read the rows that decide", err)
	}
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		row, err := of.scan(r)
		if err != nil || !hold.ValidID(id(&row)) || wrongLength[id(&row)] {
			d.Unread = append(d.Unread, of.name+" "+writerName(id(&row)))
			return nil
		}
		out = append(out, row)
		return nil
	}, `SELECT `+of.columns+` FROM `+of.name+`s ORDER BY id`)
	return out, s.Fail(ctx, "read the rows that decide", err)
}
