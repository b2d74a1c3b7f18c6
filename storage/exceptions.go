// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var _ hold.ExceptionStore = (*Store)(nil)

const exceptionColumns = `id, server, tool, code, digest, since, until, why, granter, revoked, revoker, second, keep`

func scanException(r *sql.Rows) (e hold.Exception, err error) {
	var digest []byte
	var code, since, until, revoked string
	var keep int64
	if err := r.Scan(&e.ID, &e.Server, &e.Tool, &code, &digest, &since, &until, &e.Why, &e.By, &revoked, &e.Revoker, &e.Second, &keep); err != nil {
		return e, err
	}
	e.Code, e.Keep = finding.Code(code), time.Duration(keep)*time.Second
	copy(e.Digest[:], digest)
	var errs [3]error
	e.Since, errs[0] = parseStamp(since)
	e.Until, errs[1] = parseStamp(until)
	e.Revoked, errs[2] = parseStamp(revoked)
	return e, errors.Join(errs[:]...)
}

// AddException implements hold.ExceptionStore.
func (s *Store) AddException(ctx context.Context, e hold.Exception, most int, evidence []byte) error {
	var refused error
	err := s.update(ctx, "grant an exception", func(t *tx) error {
		refused = nil
		n := 0
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM exceptions WHERE revoked = '' AND (until > ? OR until = '')`, stamp(e.Since))
		switch {
		case err != nil:
			return err
		case n >= most:
			refused = hold.ErrFull
			return nil
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		err = t.exec(ctx, `INSERT INTO exceptions (`+exceptionColumns+`) VALUES (`+marks(13)+`)`,
			e.ID, e.Server, e.Tool, string(e.Code), e.Digest[:], stamp(e.Since), stamp(e.Until), e.Why, e.By, "", "", "", int64(e.Keep/time.Second))
		if err != nil {
			return err
		}
		return t.tell(ctx, ExceptionsChanged)
	})
	return errors.Join(err, refused)
}

// ListExceptions implements hold.ExceptionStore.
func (s *Store) ListExceptions(ctx context.Context, now time.Time, all bool) ([]hold.Exception, error) {
	out := []hold.Exception{}
	scan := func(r *sql.Rows) error {
		e, err := scanException(r)
		out = append(out, e)
		return err
	}
	var err error
	if all {
		err = s.query(ctx, scan, `SELECT `+exceptionColumns+` FROM exceptions ORDER BY since DESC, id LIMIT 10000`)
	} else {
		err = s.query(ctx, scan, `SELECT `+exceptionColumns+` FROM exceptions WHERE revoked = '' AND (until > ? OR until = '') ORDER BY since DESC, id`, stamp(now))
	}
	return out, s.fail(ctx, "list exceptions", err)
}

// GetException implements hold.ExceptionStore.
func (s *Store) GetException(ctx context.Context, id string) (e hold.Exception, err error) {
	found := false
	err = s.query(ctx, func(r *sql.Rows) (err error) {
		e, err = scanException(r)
		found = true
		return err
	}, `SELECT `+exceptionColumns+` FROM exceptions WHERE id = ?`, id)
	if err == nil && !found {
		return e, hold.ErrNotFound
	}
	return e, s.fail(ctx, "get exception", err)
}

// changeException does with the exception of that id, unless may says why not.
func (s *Store) changeException(ctx context.Context, what, id string, now time.Time, may func(*hold.Exception) error, evidence []byte, do func(*tx, *hold.Exception) error) error {
	var refused error
	err := s.update(ctx, what, func(t *tx) error {
		var e hold.Exception
		refused = hold.ErrNotFound
		err := t.query(ctx, func(r *sql.Rows) (err error) {
			refused = nil
			e, err = scanException(r)
			return err
		}, `SELECT `+exceptionColumns+` FROM exceptions WHERE id = ?`, id)
		switch {
		case err != nil || refused != nil:
			return err
		case !e.Revoked.IsZero():
			refused = &hold.DecidedError{What: "exception", State: "revoked", At: e.Revoked, By: e.Revoker}
		case !e.Proposed() && !now.Before(e.Until):
			refused = &hold.DecidedError{What: "exception", State: string(hold.Expired), At: e.Until}
		default:
			refused = may(&e)
		}
		if refused != nil {
			return nil
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		if err := do(t, &e); err != nil {
			return err
		}
		return t.tell(ctx, ExceptionsChanged)
	})
	return errors.Join(err, refused)
}

// ConfirmException implements hold.ExceptionStore.
func (s *Store) ConfirmException(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return s.changeException(ctx, "confirm an exception", id, now, func(e *hold.Exception) error {
		switch {
		case e.Second != "":
			return &hold.DecidedError{What: "exception", State: "confirmed", At: e.Since, By: e.Second}
		case e.By == "" || hold.SamePerson(e.By, by): // whose name was erased cannot be told from another person
			return hold.ErrSecond
		}
		return nil
	}, evidence, func(t *tx, e *hold.Exception) error {
		until := e.Until
		if e.Proposed() {
			until = now.Add(e.Keep)
		}
		return t.exec(ctx, `UPDATE exceptions SET second = ?, until = ?, keep = 0 WHERE id = ?`, by, stamp(until), id)
	})
}

// RevokeException implements hold.ExceptionStore.
func (s *Store) RevokeException(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return s.changeException(ctx, "revoke an exception", id, now, func(*hold.Exception) error { return nil }, evidence, func(t *tx, _ *hold.Exception) error {
		return t.exec(ctx, `UPDATE exceptions SET revoked = ?, revoker = ? WHERE id = ?`, stamp(now), by, id)
	})
}

// SweepExceptions implements hold.ExceptionStore.
func (s *Store) SweepExceptions(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep exceptions", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM exceptions WHERE until <> '' AND until < ? OR until = '' AND since < ? OR revoked <> '' AND revoked < ?`, stamp(old), stamp(old), stamp(old))
	})
}
