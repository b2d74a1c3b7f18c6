// SPDX-License-Identifier: Apache-2.0

package storage

import "context"

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
	err := e.apart.QueryRowContext(ctx, `SELECT count(*), count(sync_state), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
			current_setting('synchronous_standby_names') <> '' AND current_setting('synchronous_commit') NOT IN ('off', 'local')
		FROM pg_stat_replication p
		WHERE NOT EXISTS (SELECT 1 FROM pg_replication_slots s WHERE s.active_pid = p.pid AND s.slot_type = 'logical')`).
		Scan(&r.Standbys, &seen, &r.Synchronous, &r.Waits)
	if err != nil {
		return nil, s.Fail(ctx, "ask for the standbys", err)
	}
	if seen < r.Standbys {
		r.Synchronous = -1
	}
	return &r, nil
}

// CommitAlone says whether a commit is durable in the primary alone, and waits for no standby. With true it also ends the
// wait of commits that wait for one already: a change that began just before may still do so, hence it is to be called again.
func (s *Store) CommitAlone(ctx context.Context, alone bool) error {
	e, ok := s.engine.(*postgresEngine)
	if !ok {
		return nil
	}
	if e.alone.Store(alone); !alone {
		return nil
	}
	// Postgres ends the wait only: the transaction is committed.
	_, err := e.apart.ExecContext(ctx, `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND application_name = $1 AND wait_event = 'SyncRep'`, applicationName)
	return s.Fail(ctx, "end the wait for a standby", err)
}
