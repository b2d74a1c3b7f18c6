// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// asRow is the decision as an index would have it.
func (r *JournalRow) asRow() index.Row {
	row := index.Row{Time: r.Time, Kind: ledger.Message, Server: r.Server, Tool: r.Tool, Verdict: r.Verdict}
	row.ID, _ = ledger.ParseID(r.ID)
	codes := maps.Clone(r.Withheld)
	if codes == nil {
		codes = map[string]int64{}
	}
	maps.Copy(codes, r.Findings)
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		row.Codes = append(row.Codes, ledger.Count{Code: finding.Code(code), N: codes[code]})
	}
	return row
}

// journaled are the decisions of the journal that the filter selects, the newest first, as many as are
// wanted. there is false where the journal has no decision at all.
func (q *Query) journaled(dir *state.Dir) (list []JournalRow, there bool, err error) {
	newest := func(a, b JournalRow) int { return -cmp.Compare(a.Time.UnixNano(), b.Time.UnixNano()) }
	for record, err := range dir.Records("decisions.jsonl") {
		if err != nil {
			return nil, false, err
		}
		var r JournalRow
		if json.Unmarshal(record, &r) != nil {
			continue
		}
		there = true
		row := r.believed().asRow()
		if !q.Filter.Match(&row) {
			continue
		}
		if list = append(list, r); len(list) >= 2*q.limit() {
			slices.SortStableFunc(list, newest)
			list = list[:q.limit()]
		}
	}
	slices.SortStableFunc(list, newest)
	return list[:min(len(list), q.limit())], there, nil
}

// writeJournal prints decisions of the journal for a person.
func writeJournal(out io.Writer, list []JournalRow) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tKIND\tOF\tVERDICT\tFOUND\tID")
	for i := range list {
		r := &list[i]
		id := r.ID
		if _, err := ledger.ParseID(id); err != nil {
			id = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.UTC().Format(time.RFC3339), r.Kind, source(r.Server, r.Tool), r.Verdict, codesCell(r.asRow().Codes), id)
	}
	return w.Flush()
}

// codesCell is what was found, in a cell of a table.
func codesCell(codes []ledger.Count) string {
	if len(codes) == 0 {
		return "-"
	}
	var list []string
	for _, c := range codes {
		list = append(list, fmt.Sprintf("%s %d", c.Code, c.N))
	}
	return strings.Join(list, ", ")
}

// has reports whether the text form of a filter has a term of that name.
func has(text, name string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(s string) bool { return strings.HasPrefix(s, name+":") })
}
