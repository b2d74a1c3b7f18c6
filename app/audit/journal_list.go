// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// AsRow returns the decision as an index would have it.
func (r *JournalRow) AsRow() index.Row {
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

// JournalOfMachine yields the decisions of Journal, of the state directory of this machine, as an index would have them.
func JournalOfMachine(text string) iter.Seq2[index.Row, error] {
	return func(yield func(index.Row, error) bool) {
		dir, err := local.OpenState()
		if err != nil {
			yield(index.Row{}, err)
			return
		}
		for r, err := range Journal(dir, text) {
			if !yield(r.AsRow(), err) {
				return
			}
		}
	}
}

// HasJournal reports whether the journal of a state directory has a decision.
func HasJournal(dir *state.Dir) (bool, error) {
	for _, err := range Journal(dir, "") {
		return err == nil, err
	}
	return false, nil
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
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.UTC().Format(time.RFC3339), r.Kind, source(r.Server, r.Tool), r.Verdict, codesCell(r.AsRow().Codes), id)
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
