// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var _ index.Store = (*Ledger)(nil)

// Span implements index.Store.
func (l *Ledger) Span(ctx context.Context, first int64, n int) ([]sequence.Entry, error) {
	var out []sequence.Entry
	err := l.s.EachRow(ctx, func(r *sql.Rows) error {
		e, err := scanEntry(r)
		out = append(out, e)
		return err
	}, `SELECT `+entryColumns+` WHERE e.idx >= ? ORDER BY e.idx LIMIT ?`, first, n)
	return out, l.s.Fail(ctx, "read records", err)
}

// Indexed implements index.Store.
func (l *Ledger) Indexed(ctx context.Context) (n int64, err error) {
	err = l.s.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&n) }, `SELECT size FROM decision_index`)
	return n, l.s.Fail(ctx, "read how far the index is", err)
}

// Index implements index.Store.
func (l *Ledger) Index(ctx context.Context, at int64, rows []index.Row) error {
	if len(rows) == 0 {
		return nil
	}
	moved := false
	err := l.update(ctx, "index records", func(t *Tx) (err error) {
		if q := l.s.engine.derived(); q != "" {
			if err := t.Execute(ctx, q); err != nil {
				return err
			}
		}
		// The row of the position excludes other indexers, and those who erase openings.
		if moved, err = t.moveIndex(ctx, at, at+int64(len(rows))); moved || err != nil {
			return err
		}
		key := l.s.indexKey()
		if err := t.keyUsed(ctx, key.ID()); err != nil {
			return err
		}
		return t.addRows(ctx, key, rows)
	})
	if err == nil && moved {
		err = index.ErrMoved
	}
	return err
}

func (t *Tx) moveIndex(ctx context.Context, from, to int64) (moved bool, err error) {
	n, err := t.change(ctx, `UPDATE decision_index SET size = ? WHERE size = ?`, to, from)
	return n == 0, err
}

// keyUsed takes note of the key under which rows are added.
func (t *Tx) keyUsed(ctx context.Context, id string) error {
	var keys string
	if err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&keys) }, `SELECT keys FROM decision_index`); err != nil {
		return err
	}
	list := strings.Split(keys, ",")
	if slices.Contains(list, id) && keys != "" {
		return nil
	}
	if keys != "" {
		id = keys + "," + id
	}
	return t.Execute(ctx, `UPDATE decision_index SET keys = ?`, id)
}

// A group is the records of one kind, server, tool and verdict.
type group struct{ kind, server, tool, verdict string }

func groupOf(r *index.Row) group { return group{string(r.Kind), r.Server, r.Tool, r.Verdict} }

// groupIDs returns the ids of the groups, and makes those that are new.
func (t *Tx) groupIDs(ctx context.Context, need map[group]int64) error {
	last := int64(0)
	if err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&last) }, `SELECT COALESCE(MAX(id), 0) FROM decision_groups`); err != nil {
		return err
	}
	var fresh []any
	for _, g := range slices.SortedFunc(maps.Keys(need), compareGroups) {
		id := int64(0)
		err := t.QueryRowContext(ctx, t.engine.rebind(`SELECT id FROM decision_groups WHERE kind = ? AND server = ? AND tool = ? AND verdict = ?`),
			g.kind, g.server, g.tool, g.verdict).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			last++
			id, err = last, nil
			fresh = append(fresh, id, g.kind, g.server, g.tool, g.verdict)
		}
		if err != nil {
			return err
		}
		need[g] = id
	}
	return t.InsertRows(ctx, "decision_groups (id, kind, server, tool, verdict)", 5, "", fresh)
}

func compareGroups(a, b group) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.server, b.server), cmp.Compare(a.tool, b.tool), cmp.Compare(a.verdict, b.verdict))
}

// addRows inserts consecutive rows.
func (t *Tx) addRows(ctx context.Context, key *index.Key, rows []index.Row) error {
	need := map[group]int64{}
	for i := range rows {
		need[groupOf(&rows[i])] = 0
	}
	if err := t.groupIDs(ctx, need); err != nil {
		return err
	}
	erased, err := t.erased(ctx, rows[0].Index, rows[0].Index+int64(len(rows)))
	if err != nil {
		return err
	}
	var main, keys []any
	for i := range rows {
		r := &rows[i]
		at, grp := index.Micros(r.Time), need[groupOf(r)]
		main = append(main, r.Index, at, grp, r.ID[:], aboutOf(r), r.Reason, codesText(r.Codes))
		values := index.Public(r)
		if !erased[r.Index] {
			values = append(values, key.Personal(r)...)
		}
		slices.Sort(values)
		for _, v := range slices.Compact(values) {
			keys = append(keys, v, at, r.Index, grp)
		}
	}
	if err := t.InsertRows(ctx, "decisions (idx, at, grp, id, about, reason, codes)", 7, "", main); err != nil {
		return err
	}
	return t.InsertRows(ctx, "decision_keys (key, at, idx, grp)", 4, "", keys)
}

// erased are the records of a span whose opening was erased, perhaps after it was read.
func (t *Tx) erased(ctx context.Context, from, to int64) (map[int64]bool, error) {
	out := map[int64]bool{}
	err := t.EachRow(ctx, func(r *sql.Rows) error {
		var i int64
		err := r.Scan(&i)
		out[i] = true
		return err
	}, `SELECT idx FROM ledger_entries WHERE idx >= ? AND idx < ? AND length(opening) = 0`, from, to)
	return out, err
}

func aboutOf(r *index.Row) []byte {
	if r.Of == (ledger.ID{}) {
		return []byte{}
	}
	return r.Of[:]
}

// codesText is "code number code number …": neither has a space.
func codesText(codes []ledger.Count) string {
	var b strings.Builder
	for i, c := range codes {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(string(c.Code) + " " + strconv.FormatInt(c.N, 10))
	}
	return b.String()
}

func parseCodes(s string) (out []ledger.Count) {
	words := strings.Fields(s)
	for i := 0; i+1 < len(words); i += 2 {
		n, _ := strconv.ParseInt(words[i+1], 10, 64)
		out = append(out, ledger.Count{Code: finding.Code(words[i]), N: n})
	}
	return out
}

// Unindex implements index.Store. The groups keep their numbers. The rows are deleted: what TRUNCATE empties is empty for
// a View of Postgres too that is open.
func (l *Ledger) Unindex(ctx context.Context) error {
	return l.update(ctx, "empty the index", func(t *Tx) error {
		if err := t.Execute(ctx, `UPDATE decision_index SET size = 0, keys = ''`); err != nil {
			return err
		}
		for _, table := range []string{"decisions", "decision_keys"} {
			if err := t.Execute(ctx, `DELETE FROM `+table); err != nil {
				return err
			}
		}
		return nil
	})
}

// unindexOpenings removes from the index what the openings of these records have told. It excludes
// indexers until t ends: what they add afterwards, they find erased.
func (t *Tx) unindexOpenings(ctx context.Context, key *index.Key, rows []sequence.Entry) error {
	if err := t.Execute(ctx, `UPDATE decision_index SET size = size`); err != nil {
		return err
	}
	missing, err := t.keyMissing(ctx, key)
	if err != nil {
		return err
	}
	if missing {
		return t.unindexUnread(ctx, rows)
	}
	for i := range rows {
		o, err := ledger.ParseOpening(rows[i].Opening)
		if err != nil {
			continue // it had no row in the index either
		}
		at := index.Micros(rows[i].Time)
		for _, v := range key.Erased(o.Subjects) {
			if err := t.Execute(ctx, `DELETE FROM decision_keys WHERE key = ? AND at = ? AND idx = ?`, v, at, rows[i].Index); err != nil {
				return err
			}
		}
	}
	return nil
}

// keyMissing reports whether the index has values under a key that is not there any more.
func (t *Tx) keyMissing(ctx context.Context, key *index.Key) (bool, error) {
	var keys string
	err := t.EachRow(ctx, func(r *sql.Rows) error { return r.Scan(&keys) }, `SELECT keys FROM decision_index`)
	return lacks(key, keys), err
}

// lacks reports whether one of the keys that the index names is not there any more.
func lacks(key *index.Key, keys string) bool {
	return keys != "" && slices.ContainsFunc(strings.Split(keys, ","), func(id string) bool { return !key.Has(id) })
}

// unindexUnread removes all values of the records but those that stand in the log. A value under a key that was
// retired cannot be computed, and the table is not sorted by record: it is read whole, once for each chunk of
// records.
func (t *Tx) unindexUnread(ctx context.Context, rows []sequence.Entry) error {
	ids := make([]int64, len(rows))
	for i := range rows {
		ids[i] = rows[i].Index
	}
	part, arg := t.engine.among("idx", ids)
	public := map[int64][]int64{}
	err := t.EachRow(ctx, func(r *sql.Rows) error {
		var row index.Row
		var about []byte
		var codes string
		err := r.Scan(&row.Index, &about, &codes)
		row.Of, row.Codes = idOf(about), parseCodes(codes)
		public[row.Index] = index.Public(&row)
		return err
	}, `SELECT idx, about, codes FROM decisions WHERE `+part, arg)
	if err != nil {
		return err
	}
	type value struct{ key, at, idx int64 }
	var gone []value
	err = t.EachRow(ctx, func(r *sql.Rows) error {
		var v value
		if err := r.Scan(&v.key, &v.at, &v.idx); err != nil {
			return err
		}
		if !slices.Contains(public[v.idx], v.key) {
			gone = append(gone, v)
		}
		return nil
	}, `SELECT key, at, idx FROM decision_keys WHERE `+part, arg)
	if err != nil {
		return err
	}
	for _, v := range gone {
		if err := t.Execute(ctx, `DELETE FROM decision_keys WHERE key = ? AND at = ? AND idx = ?`, v.key, v.at, v.idx); err != nil {
			return err
		}
	}
	return nil
}

// IndexStatus says how far the index of the log is.
func (l *Ledger) IndexStatus(ctx context.Context) (st index.Status, err error) {
	err = l.View(ctx, func(v *View) error { st = v.Status; return nil })
	return st, err
}

// A Cursor is a place in a list of records: behind the record at that time and index.
type Cursor struct {
	At    int64 // microseconds since 1970
	Index int64
}

// String is the text form of the cursor; ParseCursor reads it.
func (c Cursor) String() string {
	return strconv.FormatInt(c.At, 10) + "." + strconv.FormatInt(c.Index, 10)
}

// ParseCursor reads a cursor; false: s is not one.
func ParseCursor(s string) (c Cursor, ok bool) {
	a, b, ok := strings.Cut(s, ".")
	var errs [2]error
	c.At, errs[0] = strconv.ParseInt(a, 10, 64)
	c.Index, errs[1] = strconv.ParseInt(b, 10, 64)
	ok = ok && errs[0] == nil && errs[1] == nil && c.At >= 0 && c.Index >= 0 && c.String() == s
	if !ok {
		return Cursor{}, false
	}
	return c, true
}

func microsTime(at int64) time.Time { return time.UnixMicro(at).UTC() }
