// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A heldQuery is a Filter as conditions. What an index finds in the order of the list drives the query; the
// other conditions are tried on what it finds, within a window, so that no page takes long however little fits.
type heldQuery struct {
	branches []heldBranch // an item is in one of them
	drives   condition    // "" or on one column with an index
	rest     condition    // "": nothing else
	times    condition
	order    string
	oldest   bool
}

// A heldBranch is the items of one column state of which the row says more: until when they wait.
type heldBranch struct{ state, row condition }

func (b *heldBranch) all() condition { return and(b.state, b.row) }

func newHeldQuery(f *hold.Filter, now time.Time) heldQuery {
	q := heldQuery{order: " ORDER BY at DESC, id DESC", oldest: f.Oldest}
	if f.Oldest {
		q.order = " ORDER BY at, id"
	}
	var on []condition
	for _, c := range []struct {
		column, value string
	}{{"principal", f.Principal}, {"tool", f.Tool}, {"rule", f.Rule}, {"code", string(f.Code)}, {"server", f.Server}} {
		if c.value != "" {
			on = append(on, where(c.column+" = ?", c.value))
		}
	}
	if f.Digest != (hold.Digest{}) {
		on = append([]condition{where("digest = ?", f.Digest[:])}, on...)
	}
	if f.ID != "" {
		on = append([]condition{where("id = ?", f.ID)}, on...)
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
		on = append(on, where("server IN ("+Marks(len(f.Servers)+1)+")", append(Anys(f.Servers), nil)...))
	}
	if f.Found != "" {
		on = append(on, where(`found LIKE ? ESCAPE '\'`, `%"code":"`+likeText(string(f.Found))+`"%`))
	}
	if f.Text != "" {
		// What has expired has no text any more, though it may not be swept yet.
		on = append(on, where(`lower(hidden) LIKE ? ESCAPE '\' AND until > ?`, `%`+likeText(hold.LowerASCII(f.Text))+`%`, Stamp(now)))
	}
	if q.rest = and(on...); q.rest.sql != "" {
		q.rest.sql = "(" + q.rest.sql + ") IS TRUE" // no index is looked for
	}
	var times []condition
	if !f.Since.IsZero() {
		times = append(times, where("at >= ?", Stamp(f.Since)))
	}
	if !f.AsOf.IsZero() {
		times = append(times, where("at <= ?", Stamp(f.AsOf)))
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
func heldBranches(state hold.State, all bool, now time.Time) (out []heldBranch) {
	add := func(state hold.State, row condition) {
		out = append(out, heldBranch{where("state = ?", string(state)), row})
	}
	switch state {
	case hold.Held, hold.Released:
		add(state, where("until > ?", Stamp(now)))
	case hold.Expired:
		add(hold.Expired, condition{})
		add(hold.Held, where("until <= ?", Stamp(now)))
		add(hold.Released, where("until <= ?", Stamp(now)))
	case "":
		if all {
			return []heldBranch{{}}
		}
		for _, one := range []hold.State{hold.Held, hold.Released, hold.Taken, hold.Denied, hold.Expired} {
			add(one, condition{})
		}
	default:
		add(state, condition{})
	}
	return out
}

// places is the query for the times and ids of what drives the query within a span, in its order: one row, behind offset
// others. It reads indices alone, so that items count whose time is over.
func (q *heldQuery) places(offset int, within condition) (string, []any) {
	return q.union("at, id", 1, offset, func(b *heldBranch) (string, condition) { return "held", and(b.state, q.drives, q.times, within) })
}

// rows is the query for the rows of what fits within a span, in its order; at most limit rows.
func (q *heldQuery) rows(limit int, apart bool, within ...condition) (string, []any) {
	return q.union(heldColumns, limit, 0, func(b *heldBranch) (string, condition) {
		keys := and(append([]condition{b.state, q.drives, q.times}, within...)...)
		if !apart {
			return "held", and(keys, b.row, q.rest)
		}
		from := "(SELECT state AS key_state, at AS key_at, id AS key_id FROM held WHERE " + keys.text() + ") CROSS JOIN held INDEXED BY held_rows"
		c := and(where("state = key_state AND at = key_at AND id = key_id"), b.row, q.rest)
		c.args = append(keys.args, c.args...)
		return from, c
	})
}

// union is the query for columns of each branch together, in the order of the list; of gives the tables of a branch and
// the condition.
func (q *heldQuery) union(columns string, limit, offset int, of func(*heldBranch) (string, condition)) (string, []any) {
	var parts []string
	var args []any
	for i := range q.branches {
		from, c := of(&q.branches[i])
		order := q.order
		if from != "held" {
			order = strings.NewReplacer("at", "key_at", "id", "key_id").Replace(order)
		}
		parts = append(parts, "SELECT "+columns+" FROM "+from+" WHERE "+c.text()+order+" LIMIT ?")
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
