// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
)

const faultIndexed ledger.Fault = "does not say what the record says: pellucid ledger show --rebuild makes the index anew"

// indexFits compares the rows of the table decisions with the records that they are derived from. An index that is made
// anew meanwhile is for the next verification.
func (a *Audit) indexFits(ctx context.Context) error {
	size := a.indexed
	bad := map[int64]ledger.Fault{}
	for first := int64(0); first < size; first += 1000 {
		n := int(min(1000, size-first))
		entries, err := a.l.Span(ctx, first, n)
		if ctx.Err() == nil && err != nil {
			a.report.NotChecked = append(a.report.NotChecked, fmt.Sprintf("the index of %d records from %d on: they cannot be read", n, first))
			continue
		}
		rows, err := a.rowTexts(ctx, first, first+int64(n))
		if err != nil {
			return err
		}
		wanted := map[indexKey]bool{}
		for i := range entries {
			want := index.RowOfEntry(&entries[i])
			if rows[want.Index] != rowText(&want) {
				bad[want.Index] = faultIndexed
			}
			for _, v := range index.Public(&want) {
				wanted[indexKey{v, index.Micros(want.Time), want.Index}] = true
			}
		}
		if err := a.dropKeys(ctx, wanted); err != nil {
			return err
		}
		for k := range wanted {
			bad[k.idx] = faultIndexed
		}
	}
	err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
		var idx int64
		err := r.Scan(&idx)
		bad[idx] = faultRow
		return err
	}, `SELECT idx FROM decisions WHERE idx < 0 OR idx >= ?`, size)
	if err != nil {
		return a.l.s.Fail(ctx, "read the index", err)
	}
	now, err := a.l.Indexed(ctx)
	if err != nil || now < size {
		return err
	}
	for _, idx := range slices.Sorted(maps.Keys(bad)) {
		if idx < size || idx >= now {
			a.Problem(fmt.Sprintf("table decisions at index %d", idx), bad[idx])
		}
	}
	return nil
}

// An indexKey is a row of the table decision_keys, by which a record is found.
type indexKey struct{ value, at, idx int64 }

// dropKeys drops those that are in the table. Keys of persons and contents are not compared: they depend on the secret of
// the index.
func (a *Audit) dropKeys(ctx context.Context, wanted map[indexKey]bool) error {
	for chunk := range slices.Chunk(slices.Collect(maps.Keys(wanted)), 1000) {
		var args []any
		for _, k := range chunk {
			args = append(args, k.value, k.at, k.idx)
		}
		err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
			var k indexKey
			err := r.Scan(&k.value, &k.at, &k.idx)
			delete(wanted, k)
			return err
		}, `SELECT key, at, idx FROM decision_keys WHERE (key, at, idx) IN (VALUES (CAST(? AS BIGINT), CAST(? AS BIGINT), CAST(? AS BIGINT))`+strings.Repeat(`, (?, ?, ?)`, len(chunk)-1)+`)`, args...)
		if err != nil {
			return a.l.s.Fail(ctx, "read the index", err)
		}
	}
	return nil
}

// rowTexts returns the exact rows of a span, each as a text of all that it says.
func (a *Audit) rowTexts(ctx context.Context, from, to int64) (map[int64]string, error) {
	out := map[int64]string{}
	err := a.l.s.EachRow(ctx, func(r *sql.Rows) error {
		row, exact, err := scanIndexRow(r)
		if exact {
			out[row.Index] = rowText(&row)
		}
		return err
	}, `SELECT `+indexRowColumns+` LEFT JOIN decision_groups g ON g.id = d.grp WHERE d.idx >= ? AND d.idx < ?`, from, to)
	return out, a.l.s.Fail(ctx, "read the index", err)
}

func rowText(r *index.Row) string {
	return fmt.Sprintf("%d %x %x %q %q %q", index.Micros(r.Time), r.ID, r.Of, r.Reason, codesText(r.Codes), []any{r.Kind, r.Server, r.Tool, r.Verdict})
}
