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
	name         string // of a row; the table has it in the plural
	columns      string
	ended, ender string // columns: when a person ended the row, and who
	inForce      string // condition, with a mark for the time
	scan         func(*sql.Rows) (T, error)
	values       func(*T) []any
	lifetime     func(*T) lifetime
	prepare      func(context.Context, *Tx, *T) error // what goes before a new row in its transaction
	notify       func(context.Context, *Tx) error     // tells other processes of a change
}

type lifetime struct {
	since, until, ended time.Time
	by                  string // who ended it
}

// timedRows are the rows of a table in a store. They implement hold.TimedStore.
type timedRows[T any] struct {
	*timedTable[T]
	s *Store
}

// checkInForce returns an error if a person has ended the row, or if its time is over.
func (d *timedTable[T]) checkInForce(row *T, now time.Time) error {
	switch l := d.lifetime(row); {
	case !l.ended.IsZero():
		return refusal{&hold.DecidedError{What: d.name, State: d.ended, At: l.ended, By: l.by}}
	case !l.until.IsZero() && !now.Before(l.until):
		return refusal{&hold.DecidedError{What: d.name, State: string(hold.Expired), At: l.until}}
	}
	return nil
}

func (d *timedRows[T]) Add(ctx context.Context, row T, most int, evidence []byte) error {
	return d.s.updateOrRefuse(ctx, "add "+d.name, func(t *Tx) error {
		err := d.prepare(ctx, t, &row)
		if err == nil {
			err = errors.Join(t.AddRecords(ctx, evidence), d.notify(ctx, t))
		}
		if err != nil {
			return err
		}
		n := 0
		err = t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM `+d.name+`s WHERE `+d.inForce, Stamp(d.lifetime(&row).since))
		if err == nil && n >= most {
			err = refusal{hold.ErrFull}
		}
		if err != nil {
			return err
		}
		values := d.values(&row)
		return t.Execute(ctx, `INSERT INTO `+d.name+`s (`+d.columns+`) VALUES (`+Marks(len(values))+`)`, values...)
	})
}

// change calls do with a row that is in force.
func (d *timedRows[T]) change(ctx context.Context, id string, now time.Time, evidence []byte, do func(*Tx, *T) error) error {
	return d.s.updateOrRefuse(ctx, "change "+d.name, func(t *Tx) error {
		row, found, err := queryOne(ctx, t, d.scan, `SELECT `+d.columns+` FROM `+d.name+`s WHERE id = ?`, id)
		if err == nil && !found {
			err = refusal{hold.ErrNotFound}
		}
		if err == nil {
			err = d.checkInForce(&row, now)
		}
		if err == nil {
			err = do(t, &row)
		}
		if err != nil {
			return err
		}
		return errors.Join(t.AddRecords(ctx, evidence), d.notify(ctx, t))
	})
}

func (d *timedRows[T]) End(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return d.change(ctx, id, now, evidence, func(t *Tx, _ *T) error {
		return t.Execute(ctx, `UPDATE `+d.name+`s SET `+d.ended+` = ?, `+d.ender+` = ? WHERE id = ?`, Stamp(now), by, id)
	})
}

func (d *timedRows[T]) List(ctx context.Context, now time.Time, all bool) ([]T, error) {
	out := []T{}
	where, args := "", []any(nil)
	if !all {
		where, args = ` WHERE `+d.inForce, []any{Stamp(now)}
	}
	err := d.s.EachRow(ctx, func(r *sql.Rows) error {
		row, err := d.scan(r)
		out = append(out, row)
		return err
	}, `SELECT `+d.columns+` FROM `+d.name+`s`+where+` ORDER BY since DESC, id LIMIT 10000`, args...)
	return out, d.s.Fail(ctx, "list "+d.name+"s", err)
}

func (d *timedRows[T]) Get(ctx context.Context, id string) (T, error) {
	row, found, err := queryOne(ctx, d.s, d.scan, `SELECT `+d.columns+` FROM `+d.name+`s WHERE id = ?`, id)
	if err == nil && !found {
		return row, hold.ErrNotFound
	}
	return row, d.s.Fail(ctx, "get "+d.name, err)
}

func (d *timedRows[T]) Sweep(ctx context.Context, old time.Time) error {
	return d.s.Update(ctx, "sweep "+d.name+"s", func(t *Tx) error {
		return t.Execute(ctx, `DELETE FROM `+d.name+`s WHERE until <> '' AND until < ? OR until = '' AND since < ? OR `+d.ended+` <> '' AND `+d.ended+` < ?`, Stamp(old), Stamp(old), Stamp(old))
	})
}

// A refusal ends an update that changes nothing. The method returns it as it is.
type refusal struct{ error }

// updateOrRefuse is update with an f that may refuse.
func (s *Store) updateOrRefuse(ctx context.Context, what string, f func(*Tx) error) error {
	var refused error
	err := s.Update(ctx, what, func(t *Tx) error {
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
	EachRow(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error
}

// queryOne reads a row, if it exists.
func queryOne[T any](ctx context.Context, q querier, scan func(*sql.Rows) (T, error), query string, args ...any) (row T, found bool, err error) {
	err = q.EachRow(ctx, func(r *sql.Rows) (err error) {
		row, err = scan(r)
		found = true
		return err
	}, query, args...)
	return row, found, err
}

// stampIn and bytesIn scan a column into their target.
type (
	stampIn struct{ *time.Time }
	bytesIn []byte
)

func (s stampIn) Scan(column any) error {
	var text sql.NullString
	err := text.Scan(column)
	if err == nil {
		*s.Time, err = ParseStamp(text.String)
	}
	return err
}

func (b bytesIn) Scan(column any) error {
	var raw sql.Null[[]byte]
	err := raw.Scan(column)
	copy(b, raw.V)
	return err
}
