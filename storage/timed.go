// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A timedTable has rows that are in force until a time, unless a person ends one before: approvals, blocks and exceptions.
type timedTable[T any] struct {
	name     string // of a row; the table has it in the plural
	columns  string
	inForce  string // condition, with a mark for the time
	scan     func(*sql.Rows) (T, error)
	hasEnded func(row *T, now time.Time) error
}

// endedRow is the error of a row that a person has ended at a time, or whose time is over.
func endedRow(what, verb string, ended time.Time, by string, until, now time.Time) error {
	switch {
	case !ended.IsZero():
		return &hold.DecidedError{What: what, State: verb, At: ended, By: by}
	case !now.Before(until):
		return &hold.DecidedError{What: what, State: string(hold.Expired), At: until}
	}
	return nil
}

// addRow inserts a row, after what the caller does in the same transaction, unless most are in force.
func (d *timedTable[T]) addRow(ctx context.Context, s *Store, since time.Time, most int, before func(*tx) error, values ...any) error {
	return s.updateOrRefuse(ctx, "add "+d.name, func(t *tx) error {
		if err := before(t); err != nil {
			return err
		}
		n := 0
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM `+d.name+`s WHERE `+d.inForce, stamp(since))
		if err == nil && n >= most {
			err = refusal{hold.ErrFull}
		}
		if err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO `+d.name+`s (`+d.columns+`) VALUES (`+marks(len(values))+`)`, values...)
	})
}

// changeRow calls do with a row that has not ended.
func (d *timedTable[T]) changeRow(ctx context.Context, s *Store, id string, now time.Time, do func(*tx, *T) error) error {
	return s.updateOrRefuse(ctx, "change "+d.name, func(t *tx) error {
		row, found, err := queryOne(ctx, t, d.scan, `SELECT `+d.columns+` FROM `+d.name+`s WHERE id = ?`, id)
		if err != nil {
			return err
		}
		if !found {
			return refusal{hold.ErrNotFound}
		}
		if err := d.hasEnded(&row, now); err != nil {
			return refusal{err}
		}
		return do(t, &row)
	})
}

// listRows returns the rows in force, or all of them, the newest first.
func (d *timedTable[T]) listRows(ctx context.Context, s *Store, now time.Time, all bool) ([]T, error) {
	out := []T{}
	where, args := "", []any(nil)
	if !all {
		where, args = ` WHERE `+d.inForce, []any{stamp(now)}
	}
	err := s.query(ctx, func(r *sql.Rows) error {
		row, err := d.scan(r)
		out = append(out, row)
		return err
	}, `SELECT `+d.columns+` FROM `+d.name+`s`+where+` ORDER BY since DESC, id LIMIT 10000`, args...)
	return out, s.fail(ctx, "list "+d.name+"s", err)
}

func (d *timedTable[T]) getRow(ctx context.Context, s *Store, id string) (T, error) {
	row, found, err := queryOne(ctx, s, d.scan, `SELECT `+d.columns+` FROM `+d.name+`s WHERE id = ?`, id)
	if err == nil && !found {
		return row, hold.ErrNotFound
	}
	return row, s.fail(ctx, "get "+d.name, err)
}

// A refusal ends an update that changes nothing. The method returns it as it is.
type refusal struct{ error }

// updateOrRefuse is update with an f that may refuse.
func (s *Store) updateOrRefuse(ctx context.Context, what string, f func(*tx) error) error {
	var refused error
	err := s.update(ctx, what, func(t *tx) error {
		err := f(t)
		if r, ok := errors.AsType[refusal](err); ok {
			refused = r.error
		}
		return err
	})
	if refused != nil {
		return refused
	}
	return err
}

// A querier is a Store, or a transaction.
type querier interface {
	query(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error
}

// queryOne reads a row, if it exists.
func queryOne[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) (row T, found bool, err error) {
	err = q.query(ctx, func(r *sql.Rows) (err error) {
		row, err = scan(r)
		found = true
		return err
	}, query, args...)
	return row, found, err
}

// stampIn and bytesIn scan a column into what they point at.
type (
	stampIn struct{ *time.Time }
	bytesIn []byte
)

func (s stampIn) Scan(column any) error {
	var text sql.NullString
	err := text.Scan(column)
	if err == nil {
		*s.Time, err = parseStamp(text.String)
	}
	return err
}

func (b bytesIn) Scan(column any) error {
	var raw sql.Null[[]byte]
	err := raw.Scan(column)
	copy(b, raw.V)
	return err
}
