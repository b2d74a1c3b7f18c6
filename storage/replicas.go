// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"strconv"

	"github.com/pellucid-mcp/pellucid/platform/replica"
)

var _ replica.Store = (*Store)(nil)

// maxReplicas bounds the rows that are read.
const maxReplicas = 1000

// BeatReplica implements replica.Store.
func (s *Store) BeatReplica(ctx context.Context, row replica.Row, first bool) (rows []replica.Row, err error) {
	err = s.Ledger().update(ctx, "write the sign of life of a replica", func(t *tx) error {
		rows = nil
		if first {
			if err := t.exec(ctx, `DELETE FROM replicas WHERE address = ? AND id <> ?`, row.Address, row.ID); err != nil {
				return err
			}
		}
		err := t.putReplica(ctx, row)
		if err == nil && row.Rules != "" {
			err = t.exec(ctx, `INSERT INTO rules_versions (version) SELECT CAST(? AS text) WHERE NOT EXISTS
				(SELECT 1 FROM rules_versions WHERE version = ?) ON CONFLICT (version) DO NOTHING`, row.Rules, row.Rules)
		}
		if err == nil && row.Beat == 1 {
			err = t.tell(ctx, ReplicasChanged)
		}
		if err != nil {
			return err
		}
		return t.query(ctx, scanReplicas(&rows), selectReplicas, maxReplicas)
	})
	return rows, err
}

// putReplica stores a row, which must be there already unless its beat is 1.
func (t *tx) putReplica(ctx context.Context, row replica.Row) error {
	if row.Beat == 1 {
		return t.exec(ctx, `INSERT INTO replicas (id, address, install_key, release, rules, started, spent, beat) VALUES (`+marks(8)+`)
			ON CONFLICT (id) DO UPDATE SET address = excluded.address, install_key = excluded.install_key, release = excluded.release,
			rules = excluded.rules, started = excluded.started, spent = excluded.spent, beat = excluded.beat`,
			row.ID, row.Address, row.Key, row.Release, row.Rules, row.Started, blob(row.Spent), row.Beat)
	}
	n, err := t.change(ctx, `UPDATE replicas SET address = ?, install_key = ?, release = ?, rules = ?, spent = ?, beat = ? WHERE id = ?`,
		row.Address, row.Key, row.Release, row.Rules, blob(row.Spent), row.Beat, row.ID)
	if err == nil && n == 0 {
		return replica.ErrRemoved
	}
	return err
}

const selectReplicas = `SELECT id, address, install_key, release, rules, COALESCE((SELECT n FROM rules_versions WHERE version = rules), 0),
	started, spent, beat FROM replicas ORDER BY id LIMIT ?`

func scanReplicas(rows *[]replica.Row) func(*sql.Rows) error {
	return func(r *sql.Rows) error {
		var x replica.Row
		err := r.Scan(&x.ID, &x.Address, &x.Key, &x.Release, &x.Rules, &x.Generation, &x.Started, &x.Spent, &x.Beat)
		*rows = append(*rows, x)
		return err
	}
}

// Replicas returns the rows of all replicas, also of those that have stopped without removing theirs.
func (s *Store) Replicas(ctx context.Context) (rows []replica.Row, err error) {
	err = s.query(ctx, scanReplicas(&rows), selectReplicas, maxReplicas)
	return rows, s.fail(ctx, "list replicas", err)
}

// RemoveReplica implements replica.Store.
func (s *Store) RemoveReplica(ctx context.Context, id string, beat int64) (removed bool, err error) {
	err = s.Ledger().update(ctx, "remove a replica", func(t *tx) error {
		n, err := t.change(ctx, `DELETE FROM replicas WHERE id = ? AND (beat = ? OR ? = `+strconv.Itoa(replica.Any)+`)`, id, beat, beat)
		if removed = n > 0; err != nil || !removed {
			return err
		}
		return t.tell(ctx, ReplicasChanged)
	})
	return removed, err
}
