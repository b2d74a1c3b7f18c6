// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"fmt"
	"testing"
)

// LimitPages keeps an SQLite file from growing beyond n pages, as a full disk would.
func (s *Store) LimitPages(t *testing.T, n int) {
	if _, err := s.write.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", n)); err != nil {
		t.Fatal(err)
	}
}

// Exec runs a statement.
func (s *Store) Exec(ctx context.Context, statement string) error {
	_, err := s.write.ExecContext(ctx, statement)
	return err
}

// SetWindow has a page look through n items first, until the test ends.
func SetWindow(t *testing.T, n int) {
	was := firstWindow
	firstWindow = n
	t.Cleanup(func() { firstWindow = was })
}

// SetMaxTasks bounds the tasks of one server and principal, until the test ends.
func SetMaxTasks(t *testing.T, n int) {
	was := maxTasks
	maxTasks = n
	t.Cleanup(func() { maxTasks = was })
}
