// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

var _ hold.ExceptionStore = (*Store)(nil)

var exceptions = timedTable[hold.Exception]{"exception", `id, server, tool, code, digest, since, until, why, granter, revoked, revoker, second, keep`, `revoked = '' AND (until > ? OR until = '')`,
	func(r *sql.Rows) (e hold.Exception, err error) {
		err = r.Scan(&e.ID, &e.Server, &e.Tool, &e.Code, bytesIn(e.Digest[:]), stampIn{&e.Since}, stampIn{&e.Until}, &e.Why, &e.By, stampIn{&e.Revoked}, &e.Revoker, &e.Second, &e.Keep)
		e.Keep *= time.Second // as it is stored
		return e, err
	}, func(e *hold.Exception, now time.Time) error {
		if e.Proposed() {
			return nil
		}
		return endedRow("exception", "revoked", e.Revoked, e.Revoker, e.Until, now)
	}}

// AddException implements hold.ExceptionStore.
func (s *Store) AddException(ctx context.Context, e hold.Exception, most int, evidence []byte) error {
	return exceptions.addRow(ctx, s, e.Since, most, func(t *tx) error { return errors.Join(t.pend(ctx, evidence), t.tell(ctx, ExceptionsChanged)) },
		e.ID, e.Server, e.Tool, string(e.Code), e.Digest[:], stamp(e.Since), stamp(e.Until), e.Why, e.By, "", "", "", int64(e.Keep/time.Second))
}

// ListExceptions implements hold.ExceptionStore.
func (s *Store) ListExceptions(ctx context.Context, now time.Time, all bool) ([]hold.Exception, error) {
	return exceptions.listRows(ctx, s, now, all)
}

// GetException implements hold.ExceptionStore.
func (s *Store) GetException(ctx context.Context, id string) (hold.Exception, error) {
	return exceptions.getRow(ctx, s, id)
}

// ConfirmException implements hold.ExceptionStore.
func (s *Store) ConfirmException(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return exceptions.changeRow(ctx, s, id, now, func(t *tx, e *hold.Exception) error {
		switch {
		case e.Second != "":
			return refusal{&hold.DecidedError{What: "exception", State: "confirmed", At: e.Since, By: e.Second}}
		case e.By == "" || hold.SamePerson(e.By, by): // whose name was erased cannot be told from another person
			return refusal{hold.ErrSecond}
		}
		until := e.Until
		if e.Proposed() {
			until = now.Add(e.Keep)
		}
		return errors.Join(t.pend(ctx, evidence), t.exec(ctx, `UPDATE exceptions SET second = ?, until = ?, keep = 0 WHERE id = ?`, by, stamp(until), id), t.tell(ctx, ExceptionsChanged))
	})
}

// RevokeException implements hold.ExceptionStore.
func (s *Store) RevokeException(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return exceptions.changeRow(ctx, s, id, now, func(t *tx, _ *hold.Exception) error {
		return errors.Join(t.pend(ctx, evidence), t.exec(ctx, `UPDATE exceptions SET revoked = ?, revoker = ? WHERE id = ?`, stamp(now), by, id), t.tell(ctx, ExceptionsChanged))
	})
}

// SweepExceptions implements hold.ExceptionStore.
func (s *Store) SweepExceptions(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep exceptions", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM exceptions WHERE until <> '' AND until < ? OR until = '' AND since < ? OR revoked <> '' AND revoked < ?`, stamp(old), stamp(old), stamp(old))
	})
}
