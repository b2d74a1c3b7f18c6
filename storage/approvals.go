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

var approvals = timedTable[hold.Approval]{"approval", `id, call, principal, tool, item, since, until, approver, revoked, revoker, uses, used`, `revoked = '' AND until > ?`,
	func(r *sql.Rows) (a hold.Approval, err error) {
		err = r.Scan(&a.ID, bytesIn(a.Call[:]), &a.Principal, &a.Tool, &a.Item, stampIn{&a.Since}, stampIn{&a.Until}, &a.By, stampIn{&a.Revoked}, &a.Revoker, &a.Uses, stampIn{&a.Used})
		return a, err
	}, func(a *hold.Approval, now time.Time) error {
		return endedRow("approval", "revoked", a.Revoked, a.Revoker, a.Until, now)
	}}

// AddApproval implements hold.ApprovalStore.
func (s *Store) AddApproval(ctx context.Context, a hold.Approval, most int, evidence []byte) error {
	return approvals.addRow(ctx, s, a.Since, most, func(t *tx) error { return t.pend(ctx, evidence) },
		a.ID, a.Call[:], a.Principal, a.Tool, a.Item, stamp(a.Since), stamp(a.Until), a.By, "", "", 0, "")
}

// UseApproval implements hold.ApprovalStore.
func (s *Store) UseApproval(ctx context.Context, call hold.Digest, now time.Time) (a hold.Approval, err error) {
	query := `SELECT ` + approvals.columns + ` FROM approvals WHERE call = ? AND revoked = '' AND until > ? ORDER BY until DESC, id LIMIT 1`
	// Most calls have none, and a query alone writes nothing.
	a, found, err := queryOne(ctx, s, approvals.scan, query, call[:], stamp(now))
	if err != nil {
		return a, s.fail(ctx, "find approval", err)
	}
	if found {
		err = s.update(ctx, "use approval", func(t *tx) (err error) {
			if a, found, err = queryOne(ctx, t, approvals.scan, query, call[:], stamp(now)); err != nil || !found {
				return err
			}
			return t.exec(ctx, `UPDATE approvals SET uses = uses + 1, used = ? WHERE id = ?`, stamp(now), a.ID)
		})
	}
	if err == nil && !found {
		err = hold.ErrNotFound
	}
	return a, err
}

// ListApprovals implements hold.ApprovalStore.
func (s *Store) ListApprovals(ctx context.Context, now time.Time, all bool) ([]hold.Approval, error) {
	return approvals.listRows(ctx, s, now, all)
}

// GetApproval implements hold.ApprovalStore.
func (s *Store) GetApproval(ctx context.Context, id string) (hold.Approval, error) {
	return approvals.getRow(ctx, s, id)
}

// RevokeApproval implements hold.ApprovalStore.
func (s *Store) RevokeApproval(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	return approvals.changeRow(ctx, s, id, now, func(t *tx, _ *hold.Approval) error {
		return errors.Join(t.pend(ctx, evidence), t.exec(ctx, `UPDATE approvals SET revoked = ?, revoker = ? WHERE id = ?`, stamp(now), by, id))
	})
}

// SweepApprovals implements hold.ApprovalStore.
func (s *Store) SweepApprovals(ctx context.Context, old time.Time) error {
	return s.update(ctx, "sweep approvals", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM approvals WHERE until < ? OR revoked <> '' AND revoked < ?`, stamp(old), stamp(old))
	})
}
