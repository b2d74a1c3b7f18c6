// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"math"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// groupColumns are what items of a group have in common.
var groupColumns = map[hold.GroupBy]string{hold.ByDigest: "digest", hold.ByServer: "server", hold.ByTool: "server, tool", hold.ByCode: "code", hold.ByPrincipal: "principal"}

var groupOrders = map[hold.GroupSort]string{hold.MostFirst: "n DESC, newest DESC", hold.NewestFirst: "newest DESC", hold.OldestFirst: "oldest"}

// GroupHeld implements hold.Searcher.
func (s *Store) GroupHeld(ctx context.Context, f hold.Filter, by hold.GroupBy, sort hold.GroupSort, skip int, now time.Time) (out hold.Counted, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, hold.MaxPage)
	f.Oldest = false
	q := newHeldQuery(&f, now)
	if q.drives.sql != "" { // the index that has all columns finds the newest items, and all is tried on them
		q.rest = and(where("("+q.drives.sql+") IS TRUE", q.drives.args...), q.rest)
		q.drives = condition{}
	}
	q.branches = heldBranches(f.State, true, now)
	end, err := s.heldWindow(ctx, &q, heldCursor{}, hold.MaxGrouped)
	if err != nil {
		return out, s.Fail(ctx, "count held", err)
	}
	if end.at != "" {
		if out.Until, err = ParseStamp(end.at); err != nil {
			return out, s.Fail(ctx, "count held", err)
		}
	}
	columns := groupColumns[by]
	q.branches = heldBranches(f.State, false, now)
	within := and(q.upTo(end), q.rest)
	parts, args := make([]string, 0, len(q.branches)), []any{}
	for _, b := range q.branches {
		c := and(b.all(), q.times, within)
		// In the order of the index that has all columns, no row is read. Without it the engine takes an index by group.
		parts = append(parts, "SELECT * FROM (SELECT "+columns+", at, id, state, principal AS who FROM held WHERE "+c.text()+q.order+" LIMIT ?) AS part")
		args = append(append(args, c.args...), math.MaxInt32)
	}
	query := "SELECT " + columns + ", count(*) AS n, count(DISTINCT NULLIF(who, '')) AS people, min(at) AS oldest, max(at || ' ' || id || ' ' || state) AS newest FROM (" +
		strings.Join(parts, " UNION ALL ") + ") AS items GROUP BY " + columns
	err = s.queryBuilt(ctx, func(r *sql.Rows) error {
		g, err := scanGroup(r, by, &out.Total, &out.N)
		out.Groups = append(out.Groups, g)
		return err
	}, "WITH groups AS MATERIALIZED ("+query+") SELECT *, (SELECT count(*) FROM groups), (SELECT CAST(sum(n) AS BIGINT) FROM groups) FROM groups ORDER BY "+groupOrders[sort]+", "+columns+" LIMIT ? OFFSET ?",
		append(args[:len(args):len(args)], limit, skip)...)
	if err == nil && len(out.Groups) == 0 && skip > 0 {
		err = s.queryBuilt(ctx, func(r *sql.Rows) error { return r.Scan(&out.Total, &out.N) },
			"SELECT count(*), CAST(coalesce(sum(n), 0) AS BIGINT) FROM ("+query+") AS groups", args...)
	}
	if err == nil {
		err = s.newestHeld(ctx, out.Groups, now)
	}
	return out, s.Fail(ctx, "count held", err)
}

// newestHeld reads the newest item of each group, of which the group has the id.
func (s *Store) newestHeld(ctx context.Context, groups []hold.Group, now time.Time) error {
	if len(groups) == 0 {
		return nil
	}
	of := map[string]*hold.Group{}
	var args []any
	for i := range groups {
		of[groups[i].Last.ID] = &groups[i]
		if args = append(args, groups[i].Last.ID); s.engine.longRows() {
			args = append(args, Stamp(groups[i].Newest), string(groups[i].Last.State))
		}
	}
	query := "SELECT " + heldColumns + " FROM held WHERE id IN (" + Marks(len(args)) + ")"
	if s.engine.longRows() {
		query = "SELECT " + heldColumns + " FROM (VALUES " + tuples(len(groups), 3) + ") CROSS JOIN held INDEXED BY held_rows WHERE state = column3 AND at = column2 AND id = column1"
	}
	return s.queryBuilt(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		if g := of[it.ID]; err == nil && g != nil {
			g.Last = it
		}
		return err
	}, query, args...)
}

func scanGroup(r *sql.Rows, by hold.GroupBy, sums ...any) (g hold.Group, err error) {
	var digest []byte
	var oldest, newest string
	to := map[hold.GroupBy][]any{hold.ByDigest: {&digest}, hold.ByServer: {&g.Server}, hold.ByTool: {&g.Server, &g.Tool}, hold.ByCode: {&g.Code}, hold.ByPrincipal: {&g.Principal}}[by]
	if err := r.Scan(append(append(to, &g.N, &g.Principals, &oldest, &newest), sums...)...); err != nil {
		return g, err
	}
	copy(g.Digest[:], digest)
	newest, g.Last.ID, _ = strings.Cut(newest, " ")
	id, state, _ := strings.Cut(g.Last.ID, " ")
	g.Last.ID, g.Last.State = id, hold.State(state)
	if g.Oldest, err = ParseStamp(oldest); err == nil {
		g.Newest, err = ParseStamp(newest)
	}
	return g, err
}
