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

// heldFacts are columns of what f selects in the branches, at most so many of each. It reads the index that has all
// columns, and no row: a row is long where a body is. A digest or an id selects few items, so they are found by it.
func heldFacts(f hold.Filter, columns string, branches []heldBranch, most int, now time.Time) (query string, args []any) {
	f.Oldest = false
	q := newHeldQuery(&f, now)
	if f.Digest == (hold.Digest{}) && f.ID == "" && q.drives.sql != "" {
		q.rest = and(where("("+q.drives.sql+") IS TRUE", q.drives.args...), q.rest)
		q.drives = condition{}
	}
	var parts []string
	for _, b := range branches {
		c := and(b.all(), q.drives, q.times, q.rest)
		parts = append(parts, "SELECT * FROM (SELECT "+columns+" FROM held WHERE "+c.text()+q.order+" LIMIT ?) AS part")
		args = append(append(args, c.args...), most)
	}
	return strings.Join(parts, " UNION ALL "), args
}

// selectHeld is the query of SelectHeld.
func selectHeld(f hold.Filter, now time.Time) (query string, args []any) {
	query, args = heldFacts(f, "server, tool, principal, digest, at", heldBranches(f.State, false, now), math.MaxInt32, now)
	return "SELECT count(*), count(DISTINCT NULLIF(principal, '')), count(DISTINCT server || '/' || tool), count(DISTINCT digest), coalesce(min(at), ''), coalesce(max(at), '') FROM (" +
		query + ") AS items", args
}

// SelectHeld implements hold.Searcher.
func (s *Store) SelectHeld(ctx context.Context, f hold.Filter, now time.Time) (out hold.Selection, err error) {
	query, args := selectHeld(f, now)
	var oldest, newest string
	err = s.queryBuilt(ctx, func(r *sql.Rows) error {
		return r.Scan(&out.N, &out.Principals, &out.Sources, &out.Digests, &oldest, &newest)
	}, query, args...)
	if err == nil {
		if out.Oldest, err = ParseStamp(oldest); err == nil {
			out.Newest, err = ParseStamp(newest)
		}
	}
	return out, s.Fail(ctx, "count held", err)
}

// waitingHeld is the query of WaitingHeld.
func waitingHeld(f hold.Filter, at, now time.Time, most int) (query string, args []any) {
	branches := heldBranches(hold.Held, false, now)
	if !at.IsZero() {
		branches = heldBranches(hold.Held, false, at)
		for _, state := range []hold.State{hold.Released, hold.Taken, hold.Denied, hold.Expired} {
			branches = append(branches, heldBranch{where("state = ?", string(state)), where("until > ? AND (decided = '' OR decided >= ?)", Stamp(at), Stamp(at))})
		}
	}
	return heldFacts(f, "id, server, tool, principal, at", branches, most, now)
}

// WaitingHeld implements hold.Searcher.
func (s *Store) WaitingHeld(ctx context.Context, f hold.Filter, at, now time.Time, most int, each func(hold.Waiting)) error {
	query, args := waitingHeld(f, at, now, most)
	err := s.queryBuilt(ctx, func(r *sql.Rows) (err error) {
		var w hold.Waiting
		var held string
		if err := r.Scan(&w.ID, &w.Server, &w.Tool, &w.Principal, &held); err != nil {
			return err
		}
		if w.Held, err = ParseStamp(held); err == nil {
			each(w)
		}
		return err
	}, query, args...)
	return s.Fail(ctx, "select held", err)
}
