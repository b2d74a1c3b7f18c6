// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func limitText(n int) string { return strconv.Itoa(n) }

// A Count is how many records a filter selects.
type Count struct {
	N    int64
	More bool // N were counted, and there may be more
}

// Count counts the records that a filter selects. It is exact where sums are kept of what the filter asks
// for (index.Filter.Plain), however many they are; else up to Scanned records of the person or content.
func (v *View) Count(f *index.Filter) (Count, error) {
	if f.Plain() {
		sums, err := v.Sums(f, By{})
		if err != nil || len(sums) == 0 {
			return Count{}, err
		}
		return Count{N: sums[0].N}, nil
	}
	inner, outer, args, some, err := v.keyedQuery(f, &Page{})
	if err != nil || !some {
		return Count{}, v.fail(err)
	}
	var c Count
	seen := int64(0)
	err = v.query(func(r *sql.Rows) error { return r.Scan(&seen) }, `SELECT count(*) FROM (`+inner.text+`) AS d`, inner.args...)
	if err == nil {
		err = v.query(func(r *sql.Rows) error { return r.Scan(&c.N) }, `SELECT count(*) FROM (`+inner.text+`) AS d WHERE `+outer, append(slices.Clone(inner.args), args...)...)
	}
	c.More = seen == Scanned
	return c, v.fail(err)
}

// Newer counts the records that a filter selects and that are not in a list which was begun when the index
// had asOf records. It looks at Scanned records.
func (v *View) Newer(f *index.Filter, asOf int64) (Count, error) {
	from, to := f.Span()
	var c condition
	c.and(`d.idx >= ? AND d.idx < ?`, asOf, asOf+Scanned)
	c.and(`+d.at >= ? AND +d.at < ?`, from, to) // +: the range of idx is the small one
	some, err := v.amongGroups(&c, "+d.grp", f, 0)
	if err != nil || !some {
		return Count{}, v.fail(err)
	}
	if f.ID != (ledger.ID{}) {
		c.and(`d.id = ?`, f.ID[:])
	}
	values := f.Values(v.l.s.indexKey())
	if f.Code != "" {
		values = append(values, []int64{index.CodeValue(f.Code)})
	}
	for _, list := range values {
		part, arg := v.l.s.engine.among("k.key", list)
		c.and(`EXISTS (SELECT 1 FROM decision_keys k WHERE `+part+` AND k.at = d.at AND k.idx = d.idx)`, arg)
	}
	out := Count{More: v.Status.Indexed > asOf+Scanned}
	err = v.query(func(r *sql.Rows) error { return r.Scan(&out.N) }, `SELECT count(*) FROM decisions d WHERE `+c.text(), c.args...)
	return out, v.fail(err)
}

// By says what sums are apart of. The zero value is one sum of all.
type By struct {
	Kind, Server, Verdict, Code bool // Code: a record counts once for each of its codes, and not if it has none
}

// A Sum is the number of records with the same values of what they are apart by.
type Sum struct {
	Kind            ledger.Kind
	Server, Verdict string
	Code            finding.Code
	N               int64
}

// Sums counts the records that a plain filter selects, apart as by says, in no order.
func (v *View) Sums(f *index.Filter, by By) ([]Sum, error) {
	s := &summing{View: v, f: f, by: by, wide: 1, out: map[Sum]int64{}}
	if len(f.Tools) > 0 {
		s.wide = 0
	}
	if some, err := v.amongGroups(&s.cells, "d.grp", f, s.wide); err != nil || !some {
		return nil, v.fail(err)
	}
	if _, err := v.amongGroups(&s.single, "+d.grp", f, 0); err != nil {
		return nil, v.fail(err)
	}
	from, to := f.Span()
	if err := s.split(from, to, len(index.Widths)-1); err != nil {
		return nil, v.fail(err)
	}
	out := make([]Sum, 0, len(s.out))
	for k, n := range s.out {
		k.N = n
		out = append(out, k)
	}
	return out, nil
}

// A summing is the work of Sums.
type summing struct {
	*View
	f             *index.Filter
	by            By
	wide          int
	cells, single condition // the groups of sums, and of single records
	out           map[Sum]int64
}

// split counts what lies from one time to another: whole slots of a width by their sums, the rest by
// narrower ones, and what is left by the records.
func (s *summing) split(from, to int64, width int) error {
	if from >= to {
		return nil
	}
	if width < 0 {
		return s.records(from, to)
	}
	w := widthMicros(width)
	lo, hi := (from+w-1)/w, to/w
	if lo >= hi {
		return s.split(from, to, width-1)
	}
	err := s.split(from, lo*w, width-1)
	if err == nil {
		err = s.slots(width, lo, hi)
	}
	if err == nil {
		err = s.split(hi*w, to, width-1)
	}
	return err
}

// slots adds the sums of whole slots.
func (s *summing) slots(width int, lo, hi int64) error {
	c := condition{}
	c.and(`d.level = ? AND d.slot >= ? AND d.slot < ?`, sumLevel(width, s.wide), lo, hi)
	switch {
	case s.f.Code != "":
		c.and(`d.code = ?`, string(s.f.Code))
	case s.by.Code:
		c.and(`d.code <> ''`)
	default:
		c.and(`d.code = ''`)
	}
	c.and(s.cells.text(), s.cells.args...)
	return s.sum("decision_sums", "d.code", `CAST(SUM(d.n) AS bigint)`, &c, nil)
}

// records adds single records.
func (s *summing) records(from, to int64) error {
	c := condition{}
	table, code := "decisions", ""
	names := map[int64]finding.Code{}
	switch {
	case s.f.Code != "":
		table = "decision_keys"
		c.and(`d.key = ?`, index.CodeValue(s.f.Code))
		names[index.CodeValue(s.f.Code)] = s.f.Code
		code = "d.key"
	case s.by.Code:
		if err := s.codes(from, to, names); err != nil || len(names) == 0 {
			return err
		}
		var keys []int64
		for k := range names {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		part, arg := s.l.s.engine.among("d.key", keys)
		c.and(part, arg)
		table, code = "decision_keys", "d.key"
	}
	c.and(`d.at >= ? AND d.at < ?`, from, to)
	c.and(s.single.text(), s.single.args...)
	return s.sum(table, code, `count(*)`, &c, names)
}

// codes finds the codes that records from one time to another may have.
func (s *summing) codes(from, to int64, names map[int64]finding.Code) error {
	w := widthMicros(0)
	return s.query(func(r *sql.Rows) error {
		var code string
		err := r.Scan(&code)
		names[index.CodeValue(finding.Code(code))] = finding.Code(code)
		return err
	}, `SELECT DISTINCT code FROM decision_sums WHERE level = ? AND slot >= ? AND slot <= ? AND code <> ''`, sumLevel(0, 1), from/w, (to-1)/w)
}

// sum runs one query for sums.
func (s *summing) sum(table, code, n string, c *condition, names map[int64]finding.Code) error {
	var columns, groups []string
	var key Sum
	var codeKey, sum int64
	var kind, codeName string
	var into []any
	add := func(on bool, column string, dest any) {
		if on {
			columns, into = append(columns, column), append(into, dest)
			groups = append(groups, strconv.Itoa(len(columns)))
		}
	}
	add(s.by.Kind, "g.kind", &kind)
	add(s.by.Server, "g.server", &key.Server)
	add(s.by.Verdict, "g.verdict", &key.Verdict)
	if names == nil {
		add(s.by.Code, code, &codeName)
	} else {
		add(s.by.Code, code, &codeKey)
	}
	query := `SELECT ` + strings.Join(append(columns, n), ", ") + ` FROM ` + table + ` d`
	if s.by.Kind || s.by.Server || s.by.Verdict {
		query += ` JOIN decision_groups g ON g.id = d.grp`
	}
	query += ` WHERE ` + c.text()
	if len(groups) > 0 {
		query += ` GROUP BY ` + strings.Join(groups, ", ")
	} else if table == "decision_sums" {
		query = strings.Replace(query, n, `COALESCE(`+n+`, 0)`, 1)
	}
	into = append(into, &sum)
	return s.query(func(r *sql.Rows) error {
		if err := r.Scan(into...); err != nil {
			return err
		}
		k := key
		if k.Kind, k.Code = ledger.Kind(kind), finding.Code(codeName); names != nil && s.by.Code {
			k.Code = names[codeKey]
		}
		if sum > 0 {
			s.out[k] += sum
		}
		return nil
	}, query, c.args...)
}
