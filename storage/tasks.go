// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// AddTask notes that a tool has created a task, until a time. With TaskTools it is a gateway.Tasks.
func (s *Store) AddTask(ctx context.Context, task hold.Digest, tool string, _, until time.Time) error {
	return s.updating(ctx, "add task", func(t *tx) error {
		return t.exec(ctx, `INSERT INTO tasks (task, tool, until) VALUES (?, ?, ?) ON CONFLICT (task, tool) DO UPDATE SET until = excluded.until`,
			task[:], []byte(tool), stamp(until))
	}, func(*sql.Tx) error { return nil })
}

// TaskTools returns the tools that have created a task, and no more of them than most.
func (s *Store) TaskTools(ctx context.Context, task hold.Digest, now time.Time, most int) (tools []string, err error) {
	err = s.query(ctx, func(r *sql.Rows) error {
		var tool []byte
		err := r.Scan(&tool)
		tools = append(tools, string(tool))
		return err
	}, `SELECT tool FROM tasks WHERE task = ? AND until > ? ORDER BY tool LIMIT ?`, task[:], stamp(now), most)
	return tools, s.fail(ctx, "find the tools of a task", err)
}

// SweepTasks forgets the tasks whose time is over.
func (s *Store) SweepTasks(ctx context.Context, now time.Time) error {
	return s.updating(ctx, "sweep tasks", func(t *tx) error {
		return t.exec(ctx, `DELETE FROM tasks WHERE until <= ?`, stamp(now))
	}, func(*sql.Tx) error { return nil })
}
