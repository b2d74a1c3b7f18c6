// SPDX-License-Identifier: Apache-2.0

package storage

import "slices"

// A condition is a part of a query with its arguments: all that was joined in it must hold. The zero value always holds.
type condition struct {
	sql  string
	args []any
}

func where(sql string, args ...any) condition { return condition{sql, args} }

// and joins conditions.
func and(list ...condition) (out condition) {
	for _, c := range list {
		out.and(c.sql, c.args...)
	}
	return out
}

func (c *condition) and(sql string, args ...any) {
	if sql == "" {
		return
	}
	if c.sql != "" {
		c.sql += " AND "
	}
	c.sql += sql
	c.args = append(slices.Clip(c.args), args...)
}

// text is the condition behind WHERE.
func (c *condition) text() string {
	if c.sql == "" {
		return "1 = 1"
	}
	return c.sql
}
