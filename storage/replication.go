// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
)

// A Replication says how a Postgres server copies transactions to its standbys.
type Replication struct {
	Standbys    int  // that are connected
	Synchronous int  // of them; -1: the role may not see it (it needs pg_read_all_stats)
	Waits       bool // a commit waits for a standby: synchronous_standby_names is set
}

// Asynchronous reports whether a failover could lose what was committed.
func (r *Replication) Asynchronous() bool { return r != nil && !r.Waits && r.Standbys > 0 }

// Missing reports whether commits wait for a synchronous standby, and none is connected.
func (r *Replication) Missing() bool {
	return r != nil && r.Waits && (r.Standbys == 0 || r.Synchronous == 0)
}

// Replication asks how the database is copied; nil for SQLite.
func (s *Store) Replication(ctx context.Context) (*Replication, error) {
	e, ok := s.engine.(*postgresEngine)
	if !ok || e == nil {
		return nil, nil
	}
	var r Replication
	var seen int
	// A subscriber of logical replication is no standby.
	err := s.query(ctx, func(rows *sql.Rows) error { return rows.Scan(&r.Standbys, &seen, &r.Synchronous, &r.Waits) },
		`SELECT count(*), count(sync_state), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
			current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
		FROM pg_stat_replication p
		WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = p.pid AND s.slot_type = 'logical')`)
	if err != nil {
		return nil, s.fail(ctx, "ask for the standbys", err)
	}
	if seen < r.Standbys {
		r.Synchronous = -1
	}
	return &r, nil
}

// CommitAlone says whether a commit is durable in the primary alone, and waits for no standby.
func (s *Store) CommitAlone(alone bool) {
	if e, ok := s.engine.(*postgresEngine); ok {
		e.alone.Store(alone)
	}
}
