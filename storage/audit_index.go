// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

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
		rows, err := a.decisions(ctx, first, first+int64(n))
		if err != nil {
			return err
		}
		for i := range entries {
			want := index.RowOfEntry(&entries[i])
			if is, ok := rows[want.Index]; !ok || is != rowText(&want, want.Kind, want.Server, want.Tool, want.Verdict) {
				bad[want.Index] = faultIndexed
			}
		}
	}
	err := a.l.s.query(ctx, func(r *sql.Rows) error {
		var idx int64
		err := r.Scan(&idx)
		bad[idx] = faultRow
		return err
	}, `SELECT idx FROM decisions WHERE idx < 0 OR idx >= ?`, size)
	if err != nil {
		return a.l.s.fail(ctx, "read the index", err)
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

// decisions returns the rows of a span, each as a text of all that it says.
func (a *Audit) decisions(ctx context.Context, from, to int64) (map[int64]string, error) {
	out := map[int64]string{}
	err := a.l.s.query(ctx, func(r *sql.Rows) error {
		var row index.Row
		var at int64
		var id, about []byte
		var codes string
		if err := r.Scan(&row.Index, &at, &id, &about, &row.Reason, &codes, &row.Kind, &row.Server, &row.Tool, &row.Verdict); err != nil {
			return err
		}
		row.ID, row.Of, row.Time, row.Codes = idOf(id), idOf(about), microsTime(at), parseCodes(codes)
		if !bytes.Equal(row.ID[:], id) || !bytes.Equal(aboutOf(&row), about) || codesText(row.Codes) != codes {
			row.ID = ledger.ID{}
		}
		out[row.Index] = rowText(&row, row.Kind, row.Server, row.Tool, row.Verdict)
		return nil
	}, `SELECT d.idx, d.at, d.id, d.about, d.reason, d.codes, COALESCE(g.kind, ''), COALESCE(g.server, ''), COALESCE(g.tool, ''), COALESCE(g.verdict, '')
		FROM decisions d LEFT JOIN decision_groups g ON g.id = d.grp WHERE d.idx >= ? AND d.idx < ?`, from, to)
	return out, a.l.s.fail(ctx, "read the index", err)
}

func rowText(r *index.Row, group ...any) string {
	return fmt.Sprintf("%d %x %x %q %q %q", index.Micros(r.Time), r.ID, r.Of, r.Reason, codesText(r.Codes), group)
}
