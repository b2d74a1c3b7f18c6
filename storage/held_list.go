// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A heldCursor is where a page begins: behind an item, or behind all of that time where id is "".
type heldCursor struct{ at, id string }

func (c heldCursor) String() string { return c.at + "~" + c.id }

// behind is the condition for what follows c.
func (q *heldQuery) behind(c heldCursor) condition {
	switch {
	case c.at == "":
		return condition{}
	case c.id == "" && q.oldest:
		return where("at > ?", c.at)
	case c.id == "":
		return where("at < ?", c.at)
	case q.oldest:
		return where("(at, id) > (?, ?)", c.at, c.id)
	}
	return where("(at, id) < (?, ?)", c.at, c.id)
}

// heldAfter reads Filter.After.
func (s *Store) heldAfter(ctx context.Context, after string) (c heldCursor, err error) {
	if at, id, ok := strings.Cut(after, "~"); ok {
		_, err := ParseStamp(at)
		if err != nil || at == "" || id != "" && !hold.ValidID(id) {
			return c, hold.ErrNotFound
		}
		return heldCursor{at, id}, nil
	}
	if after == "" {
		return c, nil
	}
	c.id = after
	err = s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&c.at) }, `SELECT at FROM held WHERE id = ?`, after)
	if err == nil && c.at == "" {
		return c, hold.ErrNotFound
	}
	return c, s.Fail(ctx, "list held", err)
}

// How much a page looks through where conditions are left that no index finds.
const (
	mostWindow = 4000
	windowTime = 15 * time.Millisecond // after which no further window is looked through
)

var firstWindow = 1000 // items, and twice as many in each further window

// ListHeld implements hold.Searcher.
func (s *Store) ListHeld(ctx context.Context, f hold.Filter, now time.Time) (hold.Page, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = hold.DefaultPage
	}
	limit = min(limit, hold.MaxPage)
	page := hold.Page{Items: []hold.Item{}}
	at, err := s.heldAfter(ctx, f.After)
	if err != nil {
		return page, err
	}
	q := newHeldQuery(&f, now)
	if s.engine.longRows() { // held_rows is by state
		q.branches = heldBranches(f.State, false, now)
	}
	began := time.Now()
	for window := firstWindow; ; window = min(2*window, mostWindow) {
		within, end := condition{}, heldCursor{}
		if q.rest.sql != "" {
			if end, err = s.heldWindow(ctx, &q, at, window); err != nil {
				break
			}
			within = q.upTo(end)
		}
		query, args := q.rows(limit+1-len(page.Items), s.engine.longRows(), q.behind(at), within)
		last := heldCursor{}
		err = s.queryBuilt(ctx, func(r *sql.Rows) error {
			if len(page.Items) == limit {
				page.Next = last.String()
				return nil
			}
			it, err := scanHeld(r, now)
			last = heldCursor{Stamp(it.Held), it.ID}
			page.Items = append(page.Items, it)
			return err
		}, query, args...)
		if err != nil || page.Next != "" || end.at == "" {
			break
		}
		if at = end; len(page.Items) == limit || time.Since(began) > windowTime {
			page.Next = at.String()
			break
		}
	}
	return page, s.Fail(ctx, "list held", err)
}

// heldWindow is the time up to which the next items lie that drive the query, about n of them; "" where there
// are no more.
func (s *Store) heldWindow(ctx context.Context, q *heldQuery, at heldCursor, n int) (end heldCursor, err error) {
	one := *q
	for _, b := range q.branches {
		one.branches = []heldBranch{b}
		query, args := one.places(n, q.behind(at))
		err := s.queryBuilt(ctx, func(r *sql.Rows) error {
			var c heldCursor
			err := r.Scan(&c.at, &c.id)
			c.id = ""
			if end.at == "" || (c.at > end.at) != q.oldest {
				end = c
			}
			return err
		}, query, args...)
		if err != nil {
			return end, err
		}
	}
	return end, nil
}

// upTo is the condition for what lies in front of the end of a window, with all of its time.
func (q *heldQuery) upTo(end heldCursor) condition {
	switch {
	case end.at == "":
		return condition{}
	case q.oldest:
		return where("at <= ?", end.at)
	}
	return where("at >= ?", end.at)
}
