// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"
)

// maxSince bounds what HeldSince counts.
const maxSince = 10_000

// HeldSince returns how many items were held after a moment; it counts to 10,000.
func (s *Store) HeldSince(ctx context.Context, since time.Time) (n int64, err error) {
	err = s.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
		`SELECT count(*) FROM (SELECT 1 FROM held WHERE at > ? LIMIT ?) AS newer`, stamp(since), maxSince)
	return n, s.fail(ctx, "count held items", err)
}
