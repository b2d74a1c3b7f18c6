// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"math"
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
	switch {
	case len(on) == 2 && f.Code != "" && f.Server != "": // an index has both
		q.drives, on = and(on...), nil
	case len(on) > 0:
		q.drives, on = on[0], on[1:]
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

// A heldCursor is where a page begins: behind an item, or behind all of that time where id is "".
type heldCursor struct{ at, id string }

func (c heldCursor) String() string { return c.at + "~" + c.id }

// behind is the condition for what follows c.
func (q *heldQuery) behind(c heldCursor) heldCondition {
	switch {
	case c.at == "":
		return heldCondition{}
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
		_, err := parseStamp(at)
		if err != nil || at == "" || id != "" && !hold.ValidID(id) {
			return c, hold.ErrNotFound
		}
		return heldCursor{at, id}, nil
	}
	if after == "" {
		return c, nil
	}
	c.id = after
	err = s.query(ctx, func(r *sql.Rows) error { return r.Scan(&c.at) }, `SELECT at FROM held WHERE id = ?`, after)
	if err == nil && c.at == "" {
		return c, hold.ErrNotFound
	}
	return c, s.fail(ctx, "list held", err)
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
	began := time.Now()
	for window := firstWindow; ; window = min(2*window, mostWindow) {
		within, end := heldCondition{}, heldCursor{}
		if q.rest.sql != "" {
			if end, err = s.heldWindow(ctx, &q, at, window); err != nil {
				break
			}
			within = q.upTo(end)
		}
		query, args := q.union(heldColumns, limit+1-len(page.Items), 0, q.behind(at), within, q.rest)
		last := heldCursor{}
		err = s.query(ctx, func(r *sql.Rows) error {
			if len(page.Items) == limit {
				page.Next = last.String()
				return nil
			}
			it, err := scanHeld(r, now)
			last = heldCursor{stamp(it.Held), it.ID}
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
	return page, s.fail(ctx, "list held", err)
}

// heldWindow is the time up to which the next items lie that drive the query, about n of them; "" where there
// are no more.
func (s *Store) heldWindow(ctx context.Context, q *heldQuery, at heldCursor, n int) (end heldCursor, err error) {
	one := *q
	for _, b := range q.branches {
		one.branches = []heldCondition{b}
		query, args := one.union("at, id", 1, n, q.behind(at))
		err := s.query(ctx, func(r *sql.Rows) error {
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
func (q *heldQuery) upTo(end heldCursor) heldCondition {
	switch {
	case end.at == "":
		return heldCondition{}
	case q.oldest:
		return where("at <= ?", end.at)
	}
	return where("at >= ?", end.at)
}

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
		q.drives = heldCondition{}
	}
	q.branches = heldBranches(f.State, true, now)
	end, err := s.heldWindow(ctx, &q, heldCursor{}, hold.MaxGrouped)
	if err != nil {
		return out, s.fail(ctx, "count held", err)
	}
	if end.at != "" {
		if out.Until, err = parseStamp(end.at); err != nil {
			return out, s.fail(ctx, "count held", err)
		}
	}
	columns := groupColumns[by]
	q.branches = heldBranches(f.State, false, now)
	within := and(q.upTo(end), q.rest)
	parts, args := make([]string, 0, len(q.branches)), []any{}
	for _, b := range q.branches {
		c := and(b, q.times, within)
		// In the order of the index that has all columns, no row is read. Without it the engine takes an index by group.
		parts = append(parts, "SELECT * FROM (SELECT "+columns+", at, id, principal AS who FROM held WHERE "+c.sql+q.order+" LIMIT ?) AS part")
		args = append(append(args, c.args...), math.MaxInt32)
	}
	query := "SELECT " + columns + ", count(*) AS n, count(DISTINCT NULLIF(who, '')) AS people, min(at) AS oldest, max(at || ' ' || id) AS newest FROM (" +
		strings.Join(parts, " UNION ALL ") + ") AS items GROUP BY " + columns
	err = s.query(ctx, func(r *sql.Rows) error {
		g, err := scanGroup(r, by, &out.Total, &out.N)
		out.Groups = append(out.Groups, g)
		return err
	}, "WITH groups AS MATERIALIZED ("+query+") SELECT *, (SELECT count(*) FROM groups), (SELECT CAST(sum(n) AS BIGINT) FROM groups) FROM groups ORDER BY "+groupOrders[sort]+", "+columns+" LIMIT ? OFFSET ?",
		append(args[:len(args):len(args)], limit, skip)...)
	if err == nil && len(out.Groups) == 0 && skip > 0 {
		err = s.query(ctx, func(r *sql.Rows) error { return r.Scan(&out.Total, &out.N) },
			"SELECT count(*), CAST(coalesce(sum(n), 0) AS BIGINT) FROM ("+query+") AS groups", args...)
	}
	if err == nil {
		err = s.newestHeld(ctx, out.Groups, now)
	}
	return out, s.fail(ctx, "count held", err)
}

// newestHeld reads the newest item of each group, of which the group has the id.
func (s *Store) newestHeld(ctx context.Context, groups []hold.Group, now time.Time) error {
	if len(groups) == 0 {
		return nil
	}
	of := map[string]*hold.Group{}
	ids := make([]any, len(groups))
	for i := range groups {
		ids[i], of[groups[i].Last.ID] = groups[i].Last.ID, &groups[i]
	}
	ids = pad(ids, ids[0])
	return s.query(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		if g := of[it.ID]; err == nil && g != nil {
			g.Last = it
		}
		return err
	}, "SELECT "+heldColumns+" FROM held WHERE id IN ("+marks(len(ids))+")", ids...)
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
	if g.Oldest, err = parseStamp(oldest); err == nil {
		g.Newest, err = parseStamp(newest)
	}
	return g, err
}

// selectHeld is the query of SelectHeld. It reads the index that has all columns, and no row: a row is long where a body
// is. A digest selects few items, so they are found by it.
func selectHeld(f hold.Filter, now time.Time) (query string, args []any) {
	f.Oldest = false
	q := newHeldQuery(&f, now)
	if f.Digest == (hold.Digest{}) {
		if q.drives.sql != "" {
			q.rest = and(where("("+q.drives.sql+") IS TRUE", q.drives.args...), q.rest)
			q.drives = heldCondition{}
		}
		q.branches = heldBranches(f.State, false, now)
	}
	var parts []string
	for _, b := range q.branches {
		c := and(b, q.drives, q.times, q.rest)
		parts = append(parts, "SELECT * FROM (SELECT server, tool, principal, at FROM held WHERE "+c.sql+q.order+" LIMIT ?) AS part")
		args = append(append(args, c.args...), math.MaxInt32)
	}
	return "SELECT count(*), count(DISTINCT NULLIF(principal, '')), count(DISTINCT server || '/' || tool), coalesce(min(at), ''), coalesce(max(at), '') FROM (" +
		strings.Join(parts, " UNION ALL ") + ") AS items", args
}

// SelectHeld implements hold.Searcher.
func (s *Store) SelectHeld(ctx context.Context, f hold.Filter, now time.Time) (out hold.Selection, err error) {
	query, args := selectHeld(f, now)
	var oldest, newest string
	err = s.query(ctx, func(r *sql.Rows) error {
		return r.Scan(&out.N, &out.Principals, &out.Sources, &oldest, &newest)
	}, query, args...)
	if err == nil {
		if out.Oldest, err = parseStamp(oldest); err == nil {
			out.Newest, err = parseStamp(newest)
		}
	}
	return out, s.fail(ctx, "count held", err)
}

// decideBatch bounds the items that one transaction of a decision about a selection decides.
const decideBatch = 200

// ageFile is how a body begins that is encrypted to reviewers.
var ageFile = []byte("age-encryption.org/v1\n")

// DecideManyHeld implements hold.Store.
func (s *Store) DecideManyHeld(ctx context.Context, f hold.Filter, d hold.Choice) (out hold.Batch, err error) {
	at, err := s.heldAfter(ctx, f.After)
	if err != nil {
		return out, err
	}
	f.State, f.Oldest = hold.Held, true
	q := newHeldQuery(&f, d.Now)
	query, args := q.union(heldColumns+", CASE WHEN substr(body, 1, 22) = ? THEN 1 ELSE 0 END", decideBatch, 0, q.behind(at), q.rest)
	args = append([]any{ageFile}, args...)
	count, countArgs := q.union("id", d.Most+1, 0, q.rest)
	var refused error
	err = s.update(ctx, "decide", func(t *tx) error {
		out, refused = hold.Batch{}, nil
		var todo decideAll
		n, last := 0, heldCursor{}
		err := t.query(ctx, func(r *sql.Rows) error {
			sealed := 0
			it, err := scanHeld(r, d.Now, &sealed)
			if err != nil {
				return err
			}
			n, last = n+1, heldCursor{stamp(it.Held), it.ID}
			return todo.add(&it, sealed != 0, &d, &out.Decided)
		}, query, args...)
		if err != nil {
			return err
		}
		if n == decideBatch {
			out.Next = last.String()
			if f.After == "" { // the first transaction counts all that fits; the later ones decide no more than that
				err = t.query(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, "SELECT count(*) FROM ("+count+") AS fits", countArgs...)
			}
		}
		if err != nil {
			return err
		}
		if n > d.Most {
			out, refused = hold.Batch{}, hold.ErrMore
			return nil
		}
		return todo.write(ctx, t, &d)
	})
	if err = errors.Join(err, refused); err != nil {
		return hold.Batch{}, err
	}
	if d.To == hold.Denied && out.Done > 0 && out.Next == "" {
		s.wipe(ctx)
	}
	return out, nil
}

// decideAll is what one transaction is to write.
type decideAll struct {
	decide, propose []any
	records         [][]byte
}

// add says what becomes of an item.
func (a *decideAll) add(it *hold.Item, sealed bool, d *hold.Choice, sum *hold.Decided) error {
	to, list, count := d.To, &a.decide, &sum.Done
	switch {
	case d.To == hold.Denied:
	case sealed:
		sum.Sealed++
		return nil
	case it.People > 1 && it.Proposer == "":
		to, list, count = hold.Proposed, &a.propose, &sum.Proposed
	case it.People > 1 && it.Proposer == d.By:
		sum.Second++
		return nil
	}
	if d.Evidence != nil {
		it.State, it.By, it.Decided = to, d.By, d.Now.UTC()
		record, err := d.Evidence(*it)
		if err != nil {
			return err
		}
		a.records = append(a.records, record)
	}
	*list = append(*list, it.ID)
	*count++
	return nil
}

func (a *decideAll) write(ctx context.Context, t *tx, d *hold.Choice) error {
	if err := t.pend(ctx, a.records...); err != nil {
		return err
	}
	if len(a.decide) > 0 {
		set := `state = ?, decider = ?, decided = ?`
		if d.To == hold.Denied {
			set += `, ` + destroyed
		}
		ids := pad(a.decide, a.decide[0])
		err := t.exec(ctx, `UPDATE held SET `+set+` WHERE id IN (`+marks(len(ids))+`)`, append([]any{string(d.To), d.By, stamp(d.Now)}, ids...)...)
		if err != nil {
			return err
		}
	}
	if len(a.propose) == 0 {
		return nil
	}
	ids := pad(a.propose, a.propose[0])
	return t.exec(ctx, `UPDATE held SET proposer = ?, proposed = ? WHERE id IN (`+marks(len(ids))+`)`, append([]any{d.By, stamp(d.Now)}, ids...)...)
}

// ProposeHeld implements hold.Store.
func (s *Store) ProposeHeld(ctx context.Context, id, by string, now time.Time, evidence []byte) error {
	var refused error
	err := s.update(ctx, "propose", func(t *tx) error {
		it, err := t.heldItem(ctx, id, now, &refused)
		switch {
		case err != nil || refused != nil:
			return err
		case it.Proposer == by:
			refused = hold.ErrSecond
			return nil
		case it.Proposer != "": // at the same moment: this person can confirm it now
			refused = &hold.DecidedError{What: "item", State: string(hold.Proposed), At: it.Proposed, By: it.Proposer}
			return nil
		}
		if err := t.pend(ctx, evidence); err != nil {
			return err
		}
		return t.exec(ctx, `UPDATE held SET proposer = ?, proposed = ? WHERE id = ?`, by, stamp(now), id)
	})
	if err == nil {
		err = refused
	}
	return err
}

// heldItem returns an item that is held; else refused says why it is not.
func (t *tx) heldItem(ctx context.Context, id string, now time.Time, refused *error) (was hold.Item, err error) {
	*refused = hold.ErrNotFound
	err = t.query(ctx, func(r *sql.Rows) error {
		it, err := scanHeld(r, now)
		was, *refused = it, nil
		return err
	}, `SELECT `+heldColumns+` FROM held WHERE id = ?`, id)
	switch {
	case err != nil || *refused != nil:
	case was.State == hold.Expired:
		*refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Until}
	case was.State != hold.Held:
		*refused = &hold.DecidedError{What: "item", State: string(was.State), At: was.Decided, By: was.By}
	}
	return was, err
}
