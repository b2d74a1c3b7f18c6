// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A heldCondition is a part of a query with its arguments.
type heldCondition struct {
	sql  string
	args []any
}

func where(sql string, args ...any) heldCondition { return heldCondition{sql, args} }

// and joins conditions.
func and(list ...heldCondition) (out heldCondition) {
	for _, c := range list {
		if c.sql == "" {
			continue
		}
		if out.sql != "" {
			out.sql += " AND "
		}
		out.sql += c.sql
		out.args = append(out.args, c.args...)
	}
	if out.sql == "" {
		out.sql = "1 = 1"
	}
	return out
}

// A heldQuery is a Filter as conditions. What an index finds in the order of the list drives the query; the
// other conditions are tried on what it finds, within a window, so that no page takes long however little fits.
type heldQuery struct {
	branches []heldCondition // by state: an item is in one of them
	drives   heldCondition   // "" or on one column with an index
	rest     heldCondition   // "": nothing else
	times    heldCondition
	order    string
	oldest   bool
}

func newHeldQuery(f *hold.Filter, now time.Time) heldQuery {
	q := heldQuery{order: " ORDER BY at DESC, id DESC", oldest: f.Oldest}
	if f.Oldest {
		q.order = " ORDER BY at, id"
	}
	var on []heldCondition
	for _, c := range []struct {
		column, value string
	}{{"principal", f.Principal}, {"tool", f.Tool}, {"rule", f.Rule}, {"code", string(f.Code)}, {"server", f.Server}} {
		if c.value != "" {
			on = append(on, where(c.column+" = ?", c.value))
		}
	}
	if f.Digest != (hold.Digest{}) {
		on = append([]heldCondition{where("digest = ?", f.Digest[:])}, on...)
	}
	if f.ID != "" {
		on = append([]heldCondition{where("id = ?", f.ID)}, on...)
	}
	switch {
	case len(on) == 2 && f.Code != "" && f.Server != "": // an index has both
		q.drives, on = and(on...), nil
	case len(on) > 0:
		q.drives, on = on[0], on[1:]
	}
	if f.NoTool {
		on = append(on, where("tool = ''"))
	}
	if f.NoPrincipal {
		on = append(on, where("principal = ''"))
	}
	if f.Servers != nil {
		on = append(on, where("server IN ("+marks(len(f.Servers)+1)+")", append(anys(f.Servers), nil)...))
	}
	if f.Found != "" {
		on = append(on, where(`found LIKE ? ESCAPE '\'`, `%"code":"`+likeText(string(f.Found))+`"%`))
	}
	if f.Text != "" {
		// What has expired has no text any more, though it may not be swept yet.
		on = append(on, where(`lower(hidden) LIKE ? ESCAPE '\' AND until > ?`, `%`+likeText(hold.LowerASCII(f.Text))+`%`, stamp(now)))
	}
	if q.rest = and(on...); len(on) == 0 {
		q.rest = heldCondition{}
	} else {
		q.rest.sql = "(" + q.rest.sql + ") IS TRUE" // no index is looked for
	}
	var times []heldCondition
	if !f.Since.IsZero() {
		times = append(times, where("at >= ?", stamp(f.Since)))
	}
	if !f.AsOf.IsZero() {
		times = append(times, where("at <= ?", stamp(f.AsOf)))
	}
	q.times = and(times...)
	q.branches = heldBranches(f.State, q.drives.sql == "" || strings.HasPrefix(q.drives.sql, "server") || strings.HasPrefix(q.drives.sql, "tool"), now)
	return q
}

// likeText is s in a pattern of LIKE.
func likeText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// heldBranches are conditions of which each item of the state fulfils one. One condition for all of them would
// have the engine read the whole table. all: an index finds items of every state.
func heldBranches(state hold.State, all bool, now time.Time) []heldCondition {
	switch state {
	case hold.Held, hold.Released:
		return []heldCondition{where("state = ? AND until > ?", string(state), stamp(now))}
	case hold.Expired:
		return []heldCondition{where("state = 'expired'"), where("state IN ('held', 'released') AND until <= ?", stamp(now))}
	case "":
		if all {
			return []heldCondition{{}}
		}
		return []heldCondition{where("state = 'held'"), where("state = 'released'"), where("state = 'taken'"), where("state = 'denied'"), where("state = 'expired'")}
	}
	return []heldCondition{where("state = ?", string(state))}
}

// union is the query for columns of what fits, in its order; at most limit rows from the offset on.
func (q *heldQuery) union(columns string, limit, offset int, more ...heldCondition) (string, []any) {
	var parts []string
	var args []any
	for _, b := range q.branches {
		c := and(append([]heldCondition{b, q.drives, q.times}, more...)...)
		parts = append(parts, "SELECT "+columns+" FROM held WHERE "+c.sql+q.order+" LIMIT ?")
		args = append(append(args, c.args...), limit+offset)
	}
	if len(parts) == 1 {
		args[len(args)-1] = limit
		return parts[0] + " OFFSET ?", append(args, offset)
	}
	for i, p := range parts {
		parts[i] = "SELECT * FROM (" + p + ") AS part"
	}
	return "SELECT * FROM (" + strings.Join(parts, " UNION ALL ") + ") AS whole" + q.order + " LIMIT ? OFFSET ?", append(args, limit, offset)
}
