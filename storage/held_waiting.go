// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"
)

// A HeldSum is how many results of a server wait for a reviewer, and since when the oldest does.
type HeldSum struct {
	Server string
	N      int
	Oldest time.Time
}

// heldSums reads held_facts alone. Grouped by the column itself, SQLite takes an index by server and reads the row of
// each item for the time when it expires, which lies behind a body that may be long.
const heldSums = `SELECT name, count(*), min(at) FROM (SELECT server || '' AS name, at FROM held WHERE state = 'held' AND until > ?) AS waits GROUP BY name ORDER BY name`

// HeldSums counts what waits at the time now, by server.
func (s *Store) HeldSums(ctx context.Context, now time.Time) (out []HeldSum, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		var one HeldSum
		var oldest string
		err := r.Scan(&one.Server, &one.N, &oldest)
		if err == nil {
			one.Oldest, err = ParseStamp(oldest)
		}
		out = append(out, one)
		return err
	}, heldSums, Stamp(now))
	return out, s.Fail(ctx, "count held", err)
}
