// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// maxTasks is how many tools of tasks are kept for one server and principal. Tests change it.
var maxTasks = 20_000

var errTasksFull = errors.New("storage: too many tasks of one server and principal")

// AddTask notes that a tool has created a task, until a time. With TaskTools it is a gateway.Tasks. The other tools of
// the task are kept as long: were one forgotten before the others, its result would be treated as one of theirs.
func (s *Store) AddTask(ctx context.Context, task hold.Digest, tool string, now, until time.Time) error {
	full := false
	err := s.updating(ctx, "add task", func(t *Tx) error {
		first, last, n := task, task, 0 // of what begins with the same owner
		clear(first[hold.OwnerLen:])
		copy(last[hold.OwnerLen:], bytes.Repeat([]byte{0xff}, len(last)))
		err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) },
			`SELECT count(*) FROM (SELECT 1 FROM tasks WHERE task BETWEEN ? AND ? LIMIT ?) AS kept`, first[:], last[:], maxTasks)
		if full = n >= maxTasks; err != nil || full {
			return err
		}
		return errors.Join(t.Execute(ctx, `UPDATE tasks SET until = ? WHERE task = ? AND until > ?`, Stamp(until), task[:], Stamp(now)),
			t.Execute(ctx, `INSERT INTO tasks (task, tool, until) VALUES (?, ?, ?) ON CONFLICT (task, tool) DO UPDATE SET until = excluded.until`,
				task[:], []byte(tool), Stamp(until)))
	}, func(*sql.Tx) error { return nil })
	if err == nil && full {
		return errTasksFull
	}
	return err
}

// TaskTools returns the tools that have created a task, and no more of them than most.
func (s *Store) TaskTools(ctx context.Context, task hold.Digest, now time.Time, most int) (tools []string, err error) {
	err = s.EachRow(ctx, func(r *sql.Rows) error {
		var tool []byte
		err := r.Scan(&tool)
		tools = append(tools, string(tool))
		return err
	}, `SELECT tool FROM tasks WHERE task = ? AND until > ? ORDER BY tool LIMIT ?`, task[:], Stamp(now), most)
	return tools, s.Fail(ctx, "find the tools of a task", err)
}

// SweepTasks forgets the tasks whose time is over.
func (s *Store) SweepTasks(ctx context.Context, now time.Time) error {
	return s.updating(ctx, "sweep tasks", func(t *Tx) error {
		return t.Execute(ctx, `DELETE FROM tasks WHERE until <= ?`, Stamp(now))
	}, func(*sql.Tx) error { return nil })
}
