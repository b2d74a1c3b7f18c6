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

const exceptionColumns = `id, server, tool, code, digest, since, until, why, granter, revoked, revoker`

func scanException(r *sql.Rows) (e hold.Exception, err error) {
	var digest []byte
	var code, since, until, revoked string
	if err := r.Scan(&e.ID, &e.Server, &e.Tool, &code, &digest, &since, &until, &e.Why, &e.By, &revoked, &e.Revoker); err != nil {
		return e, err
	}
	e.Code = finding.Code(code)
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
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT count(*) FROM exceptions WHERE revoked = '' AND until > ?`, stamp(e.Since))
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
		err = t.exec(ctx, `INSERT INTO exceptions (`+exceptionColumns+`) VALUES (`+marks(11)+`)`,
			e.ID, e.Server, e.Tool, string(e.Code), e.Digest[:], stamp(e.Since), stamp(e.Until), e.Why, e.By, "", "")
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
		err = s.query(ctx, scan, `SELECT `+exceptionColumns+` FROM exceptions WHERE revoked = '' AND until > ? ORDER BY since DESC, id`, stamp(now))
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

// RevokeException implements hold.ExceptionStore.
func (s *Store) RevokeException(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	var refused error
	err := s.update(ctx, "revoke an exception", func(t *tx) error {
		refused = hold.ErrNotFound
		err := t.query(ctx, func(r *sql.Rows) error {
			e, err := scanException(r)
			refused = nil
			switch {
			case !e.Revoked.IsZero():
				refused = &hold.DecidedError{What: "exception", State: "revoked", At: e.Revoked, By: e.Revoker}
			case !now.Before(e.Until):
				refused = &hold.DecidedError{What: "exception", State: string(hold.Expired), At: e.Until}
			}
			return err
		}, `SELECT `+exceptionColumns+` FROM exceptions WHERE id = ?`, id)
		if err != nil || refused != nil {
			return err
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		if err := t.exec(ctx, `UPDATE exceptions SET revoked = ?, revoker = ? WHERE id = ?`, stamp(now), by, id); err != nil {
			return err
		}
		return t.tell(ctx, ExceptionsChanged)
	})
	return errors.Join(err, refused)
}

// SweepExceptions implements hold.ExceptionStore.
func (s *Store) SweepExceptions(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep exceptions", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM exceptions WHERE until < ? OR revoked <> '' AND revoked < ?`, stamp(old), stamp(old))
	})
}
