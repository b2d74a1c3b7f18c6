// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

var approvals = timedTable[hold.Approval]{
	name: "approval", columns: `id, call, principal, tool, item, since, until, approver, revoked, revoker, uses, used`, ended: "revoked", ender: "revoker",
	inForce: `revoked = '' AND until > ?`,
	scan: func(r *sql.Rows) (a hold.Approval, err error) {
		err = r.Scan(&a.ID, bytesIn(a.Call[:]), &a.Principal, &a.Tool, &a.Item, stampIn{&a.Since}, stampIn{&a.Until}, &a.By, stampIn{&a.Revoked}, &a.Revoker, &a.Uses, stampIn{&a.Used})
		return a, err
	},
	values: func(a *hold.Approval) []any {
		return []any{a.ID, a.Call[:], a.Principal, a.Tool, a.Item, Stamp(a.Since), Stamp(a.Until), a.By, "", "", 0, ""}
	},
	lifetime: func(a *hold.Approval) lifetime { return lifetime{a.Since, a.Until, a.Revoked, a.Revoker} },
	prepare:  func(context.Context, *Tx, *hold.Approval) error { return nil },
	notify:   func(context.Context, *Tx) error { return nil },
}

type approvalRows struct{ timedRows[hold.Approval] }

// Approvals returns the approvals of the store.
func (s *Store) Approvals() hold.ApprovalStore {
	return &approvalRows{timedRows[hold.Approval]{&approvals, s}}
}

// Use implements hold.ApprovalStore.
func (d *approvalRows) Use(ctx context.Context, call hold.Digest, now time.Time) (a hold.Approval, err error) {
	query := `SELECT ` + d.columns + ` FROM approvals WHERE call = ? AND revoked = '' AND until > ? ORDER BY until DESC, id LIMIT 1`
	// Most calls have none, and a query alone writes nothing.
	a, found, err := queryOne(ctx, d.s, d.scan, query, call[:], Stamp(now))
	if err != nil {
		return a, d.s.Fail(ctx, "find approval", err)
	}
	if found {
		err = d.s.Update(ctx, "use approval", func(t *Tx) (err error) {
			if a, found, err = queryOne(ctx, t, d.scan, query, call[:], Stamp(now)); err != nil || !found {
				return err
			}
			return t.Execute(ctx, `UPDATE approvals SET uses = uses + 1, used = ? WHERE id = ?`, Stamp(now), a.ID)
		})
	}
	if err == nil && !found {
		err = hold.ErrNotFound
	}
	return a, err
}
