// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
)

// PinVersions returns the version of every pin, by server. Each gateway asks this
// every second to follow the decisions of other processes, so it reads no record.
func (s *Store) PinVersions(ctx context.Context) (map[string]int64, error) {
	versions := map[string]int64{}
	err := s.EachRow(ctx, func(r *sql.Rows) error {
		var server string
		var version int64
		err := r.Scan(&server, &version)
		versions[server] = version
		return err
	}, `SELECT server, version FROM pins WHERE record IS NOT NULL`)
	return versions, s.Fail(ctx, "list pins", err)
}
