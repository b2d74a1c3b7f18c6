// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

var _ hold.ApprovalStore = (*Store)(nil)

const approvalColumns = `id, call, principal, tool, item, since, until, approver, revoked, revoker, uses, used`

func scanApproval(r *sql.Rows) (a hold.Approval, err error) {
	var call []byte
	var since, until, revoked, used string
	if err := r.Scan(&a.ID, &call, &a.Principal, &a.Tool, &a.Item, &since, &until, &a.By, &revoked, &a.Revoker, &a.Uses, &used); err != nil {
		return a, err
	}
	copy(a.Call[:], call)
	var errs [4]error
	a.Since, errs[0] = parseStamp(since)
	a.Until, errs[1] = parseStamp(until)
	a.Revoked, errs[2] = parseStamp(revoked)
	a.Used, errs[3] = parseStamp(used)
	return a, errors.Join(errs[:]...)
}

// AddApproval implements hold.ApprovalStore.
func (s *Store) AddApproval(ctx context.Context, a hold.Approval, most int, evidence []byte) error {
	var refused error
	err := s.update(ctx, "approve", func(t *tx) error {
		refused = nil
		n := 0
		err := t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
			`SELECT count(*) FROM approvals WHERE revoked = '' AND until > ?`, stamp(a.Since))
		if err != nil {
			return err
		}
		if n >= most {
			refused = hold.ErrFull
			return nil
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		return t.exec(ctx, `INSERT INTO approvals (`+approvalColumns+`) VALUES (`+marks(12)+`)`,
			a.ID, a.Call[:], a.Principal, a.Tool, a.Item, stamp(a.Since), stamp(a.Until), a.By, "", "", 0, "")
	})
	return errors.Join(err, refused)
}

// UseApproval implements hold.ApprovalStore.
func (s *Store) UseApproval(ctx context.Context, call hold.Digest, now time.Time) (a hold.Approval, err error) {
	const where = ` FROM approvals WHERE call = ? AND revoked = '' AND until > ? ORDER BY until DESC, id LIMIT 1`
	found := false
	scan := func(r *sql.Rows) (err error) {
		a, err = scanApproval(r)
		found = true
		return err
	}
	// Most calls have none, and a query alone writes nothing.
	if err := s.query(ctx, scan, `SELECT `+approvalColumns+where, call[:], stamp(now)); err != nil {
		return a, s.fail(ctx, "find approval", err)
	}
	if !found {
		return a, hold.ErrNotFound
	}
	err = s.update(ctx, "use approval", func(t *tx) error {
		found = false
		if err := t.query(ctx, scan, `SELECT `+approvalColumns+where, call[:], stamp(now)); err != nil || !found {
			return err
		}
		return t.exec(ctx, `UPDATE approvals SET uses = uses + 1, used = ? WHERE id = ?`, stamp(now), a.ID)
	})
	if err == nil && !found {
		err = hold.ErrNotFound
	}
	return a, err
}

// ListApprovals implements hold.ApprovalStore.
func (s *Store) ListApprovals(ctx context.Context, now time.Time, all bool) ([]hold.Approval, error) {
	out := []hold.Approval{}
	scan := func(r *sql.Rows) error {
		a, err := scanApproval(r)
		out = append(out, a)
		return err
	}
	var err error
	if all {
		err = s.query(ctx, scan, `SELECT `+approvalColumns+` FROM approvals ORDER BY since DESC, id LIMIT 10000`)
	} else {
		err = s.query(ctx, scan, `SELECT `+approvalColumns+` FROM approvals WHERE revoked = '' AND until > ? ORDER BY since DESC, id LIMIT 10000`, stamp(now))
	}
	return out, s.fail(ctx, "list approvals", err)
}

// GetApproval implements hold.ApprovalStore.
func (s *Store) GetApproval(ctx context.Context, id string) (a hold.Approval, err error) {
	found := false
	err = s.query(ctx, func(r *sql.Rows) (err error) {
		a, err = scanApproval(r)
		found = true
		return err
	}, `SELECT `+approvalColumns+` FROM approvals WHERE id = ?`, id)
	if err == nil && !found {
		return a, hold.ErrNotFound
	}
	return a, s.fail(ctx, "get approval", err)
}

// RevokeApproval implements hold.ApprovalStore.
func (s *Store) RevokeApproval(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	var refused error
	err := s.update(ctx, "revoke approval", func(t *tx) error {
		refused = hold.ErrNotFound
		err := t.query(ctx, func(r *sql.Rows) error {
			a, err := scanApproval(r)
			refused = nil
			switch {
			case !a.Revoked.IsZero():
				refused = &hold.DecidedError{What: "approval", State: "revoked", At: a.Revoked, By: a.Revoker}
			case !now.Before(a.Until):
				refused = &hold.DecidedError{What: "approval", State: string(hold.Expired), At: a.Until}
			}
			return err
		}, `SELECT `+approvalColumns+` FROM approvals WHERE id = ?`, id)
		if err != nil || refused != nil {
			return err
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		return t.exec(ctx, `UPDATE approvals SET revoked = ?, revoker = ? WHERE id = ?`, stamp(now), by, id)
	})
	return errors.Join(err, refused)
}

// SweepApprovals implements hold.ApprovalStore.
func (s *Store) SweepApprovals(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep approvals", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM approvals WHERE until < ? OR revoked <> '' AND revoked < ?`, stamp(old), stamp(old))
	})
}
