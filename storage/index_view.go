// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A View is one state of the index: what its methods return fits together.
type View struct {
	Status index.Status

	ctx context.Context
	tx  *sql.Tx
	l   *Ledger
}

// View calls do with the index as it is now. The view ends with do.
func (l *Ledger) View(ctx context.Context, do func(*View) error) error {
	options, first := l.s.engine.snapshot()
	t, err := l.s.read.BeginTx(ctx, options)
	if err != nil {
		return l.s.Fail(ctx, "read the index", err)
	}
	defer t.Rollback() // nothing was written
	for _, q := range first {
		if _, err := t.ExecContext(ctx, q); err != nil {
			return l.s.Fail(ctx, "read the index", err)
		}
	}
	v := &View{ctx: ctx, tx: t, l: l}
	var keys string
	err = v.query(func(r *sql.Rows) error { return r.Scan(&v.Status.Indexed, &keys, &v.Status.Log) },
		`SELECT i.size, i.keys, COALESCE((SELECT size FROM ledger_head), 0) FROM decision_index i`)
	if err != nil {
		return l.s.Fail(ctx, "read the index", err)
	}
	v.Status.KeyMissing = lacks(l.s.indexKey(), keys)
	return do(v)
}

func (v *View) query(scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := v.tx.QueryContext(v.ctx, v.l.s.engine.rebind(query), args...)
	return each(rows, err, scan)
}

func (v *View) fail(err error) error { return v.l.s.Fail(v.ctx, "search the index", err) }

// selectedGroups returns the ids of the groups that the filter selects.
func (v *View) selectedGroups(f *index.Filter) (ids []int64, err error) {
	of := condition{}
	in := func(column string, values []string) {
		if len(values) > 0 {
			args := Pad(Anys(values), any(values[0]))
			of.and(column+` IN (`+Marks(len(args))+`)`, args...)
		}
	}
	var kinds []string
	for _, k := range f.Kinds {
		kinds = append(kinds, string(k))
	}
	in("kind", kinds)
	in("server", f.Servers)
	in("tool", f.Tools)
	in("verdict", f.Verdicts)
	err = v.query(func(r *sql.Rows) error {
		var id int64
		err := r.Scan(&id)
		ids = append(ids, id)
		return err
	}, `SELECT id FROM decision_groups WHERE `+of.text(), of.args...)
	return ids, err
}

// A Page says which part of a list is wanted.
type Page struct {
	After Cursor // what comes behind it; zero: from the newest on
	Limit int    // 0 stands for 100, the most is 1,000
}

func (p *Page) limit() int {
	if p.Limit <= 0 {
		return 100
	}
	return min(p.Limit, 1000)
}

// A List is a part of the records that a filter selects, the newest first: by their time, and records of
// one time by their index.
type List struct {
	Rows []index.Row
	Next Cursor // for what comes behind; zero: nothing does
	// Partial: the search has ended before the page was full, after Scanned records. Next goes on.
	Partial bool
}

// Scanned is how many records of a person, content or code one query looks at, where the filter asks for more
// than that: a bound of its time.
const Scanned = 10_000

// A foundRecord is a record in the index.
type foundRecord struct{ at, idx, grp int64 }

// List returns records that the filter selects.
func (v *View) List(f *index.Filter, p Page) (List, error) {
	var got []foundRecord
	var out List
	var err error
	need := p.limit() + 1
	if len(f.Values(v.l.s.indexKey())) == 0 && f.ID == (ledger.ID{}) {
		got, err = v.findByTime(f, &p, need)
	} else {
		got, out.Next, err = v.findByKey(f, &p, need)
		out.Partial = out.Next != (Cursor{})
	}
	if err != nil {
		return List{}, v.fail(err)
	}
	if len(got) == need {
		got = got[:need-1]
		out.Next, out.Partial = Cursor{got[need-2].at, got[need-2].idx}, false
	}
	out.Rows, err = v.readRows(got)
	return out, v.fail(err)
}

// findByTime finds records by their time, kind, server, tool and verdict.
func (v *View) findByTime(f *index.Filter, p *Page, need int) (out []foundRecord, err error) {
	from, to := f.Span()
	var c condition
	c.and(`d.at >= ? AND d.at < ?`, from, to)
	p.leaveOut(&c)
	source, args := `decisions d WHERE `+c.text(), c.args
	if f.Grouped() {
		ids, err := v.selectedGroups(f)
		if err != nil || len(ids) == 0 {
			return nil, err
		}
		_, list := v.l.s.engine.among("", ids)
		source, args = v.l.s.engine.newestOfEach(c.text(), need)+` d`, append([]any{list}, c.args...)
	}
	return v.newestOf(source, need, args)
}

// newestOf returns the newest rows d of a source.
func (v *View) newestOf(source string, need int, args []any) (out []foundRecord, err error) {
	err = v.query(func(r *sql.Rows) error {
		var one foundRecord
		err := r.Scan(&one.at, &one.idx, &one.grp)
		out = append(out, one)
		return err
	}, `SELECT d.at, d.idx, d.grp FROM `+source+` ORDER BY d.at DESC, d.idx DESC LIMIT ?`, append(args, need)...)
	return out, err
}

// leaveOut adds what comes before the page to a condition.
func (p *Page) leaveOut(c *condition) {
	if p.After != (Cursor{}) {
		c.and(`(d.at, d.idx) < (?, ?)`, p.After.At, p.After.Index)
	}
}

// findByKey finds records by a value that few have. next is where a search that has looked at Scanned records
// goes on.
func (v *View) findByKey(f *index.Filter, p *Page, need int) (out []foundRecord, next Cursor, err error) {
	inner, outer, args, some, err := v.keyedQuery(f, p)
	if err != nil || !some {
		return nil, next, err
	}
	out, err = v.newestOf(`(`+inner.text+`) AS d WHERE `+outer, need, append(slices.Clone(inner.args), args...))
	if err != nil || len(out) == need {
		return out, next, err
	}
	err = v.query(func(r *sql.Rows) error { return r.Scan(&next.At, &next.Index) },
		`SELECT d.at, d.idx FROM (`+inner.text+`) AS d ORDER BY d.at DESC, d.idx DESC LIMIT 1 OFFSET `+strconv.Itoa(Scanned-1), inner.args...)
	return out, next, err
}

type subquery struct {
	text string
	args []any
}

// keyedQuery is a query for the newest records that have the most selective value of the filter, and the
// condition that those are selected.
func (v *View) keyedQuery(f *index.Filter, p *Page) (inner subquery, outer string, args []any, some bool, err error) {
	from, to := f.Span()
	values := f.Values(v.l.s.indexKey())
	var c condition
	c.and(`d.at >= ? AND d.at < ?`, from, to)
	p.leaveOut(&c)
	const order = ` ORDER BY d.at DESC, d.idx DESC LIMIT `
	if f.ID != (ledger.ID{}) {
		inner = subquery{`SELECT d.at, d.idx, d.grp FROM decisions d WHERE d.idx = (SELECT idx FROM ledger_entries WHERE id = ?) AND ` + c.text(),
			append([]any{f.ID[:]}, c.args...)}
	} else {
		var parts []string
		for _, value := range values[0] {
			parts = append(parts, `SELECT * FROM (SELECT d.at, d.idx, d.grp FROM decision_keys d WHERE d.key = ? AND `+c.text()+order+strconv.Itoa(Scanned)+`) AS one`)
			inner.args = append(append(inner.args, value), c.args...)
		}
		inner.text = strings.Join(parts, ` UNION ALL `)
		if len(parts) > 1 {
			inner.text = `SELECT * FROM (` + inner.text + `) AS d` + order + strconv.Itoa(Scanned)
		}
		values = values[1:]
	}
	var also condition
	if f.Grouped() {
		ids, err := v.selectedGroups(f)
		if err != nil || len(ids) == 0 {
			return inner, "", nil, false, err
		}
		part, arg := v.l.s.engine.among("d.grp", ids)
		also.and(part, arg)
	}
	for _, list := range values {
		part, arg := v.l.s.engine.among("k.key", list)
		also.and(`EXISTS (SELECT 1 FROM decision_keys k WHERE `+part+` AND k.at = d.at AND k.idx = d.idx)`, arg)
	}
	return inner, also.text(), also.args, true, nil
}

const indexRowColumns = `d.idx, d.at, d.id, d.about, d.reason, d.codes, COALESCE(g.kind, ''), COALESCE(g.server, ''), COALESCE(g.tool, ''), COALESCE(g.verdict, '') FROM decisions d`

// scanIndexRow reads indexRowColumns. A row is not exact if it is stored in another way than this package would store it.
func scanIndexRow(r *sql.Rows) (row index.Row, exact bool, err error) {
	var at int64
	var id, about []byte
	var codes string
	if err := r.Scan(&row.Index, &at, &id, &about, &row.Reason, &codes, &row.Kind, &row.Server, &row.Tool, &row.Verdict); err != nil {
		return row, false, err
	}
	row.Time, row.ID, row.Of, row.Codes = microsTime(at), idOf(id), idOf(about), parseCodes(codes)
	return row, bytes.Equal(row.ID[:], id) && bytes.Equal(aboutOf(&row), about) && codesText(row.Codes) == codes, nil
}

// readRows reads what the index has of records, in their order.
func (v *View) readRows(list []foundRecord) ([]index.Row, error) {
	if len(list) == 0 {
		return nil, nil
	}
	ids, place := make([]int64, len(list)), map[int64]int{}
	for i := range list {
		ids[i], place[list[i].idx] = list[i].idx, i
	}
	out := make([]index.Row, len(list))
	part, arg := v.l.s.engine.among("d.idx", ids)
	n := 0
	err := v.query(func(r *sql.Rows) error {
		row, _, err := scanIndexRow(r)
		if err == nil {
			out[place[row.Index]] = row
			n++
		}
		return err
	}, `SELECT `+indexRowColumns+` JOIN decision_groups g ON g.id = d.grp WHERE `+part, arg)
	if err == nil && n != len(list) {
		err = errors.New("store: a row of the index is missing")
	}
	return out, err
}

// These returns the records of the log with these indices, with their openings, in their order.
func (l *Ledger) These(ctx context.Context, indices []int64) ([]sequence.Entry, error) {
	place := map[int64]int{}
	for i, n := range indices {
		place[n] = i
	}
	out, n := make([]sequence.Entry, len(indices)), 0
	if len(indices) == 0 {
		return out, nil
	}
	part, arg := l.s.engine.among("e.idx", indices)
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		e, err := scanEntry(r)
		if err == nil {
			out[place[e.Index]] = e
			n++
		}
		return err
	}, `SELECT `+entryColumns+` WHERE `+part, arg)
	if err == nil && n != len(indices) {
		err = ledger.ErrNotFound
	}
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, err
	}
	return out, l.s.Fail(ctx, "read records", err)
}
