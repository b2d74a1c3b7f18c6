// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A Row is a record for programs.
type Row struct {
	Index     int64          `json:"index"`
	Statement jsontext.Value `json:"statement"`
	Opening   jsontext.Value `json:"opening,omitzero"`
}

// writeRows prints records as JSON lines, with their openings where openings says so.
func writeRows(w io.Writer, list []sequence.Entry, openings bool) error {
	for i := range list {
		st, err := statement(&list[i])
		if err != nil {
			return err
		}
		row := Row{Index: list[i].Index, Statement: st.Bytes}
		if _, err := ledger.ParseOpening(list[i].Opening); openings && err == nil {
			row.Opening = list[i].Opening
		}
		if err := terminal.WriteJSON(w, row); err != nil {
			return err
		}
	}
	return nil
}

// writeTable prints records for a person; details says what each of them found, too.
func writeTable(out io.Writer, list []sequence.Entry, details bool) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	column := func(cell string) string { // what was found is a line of its own where there are details
		if details {
			return ""
		}
		return cell + "\t"
	}
	fmt.Fprintln(w, "INDEX\tTIME\tKIND\tOF\tVERDICT\t"+column("FOUND")+"ID")
	for i := range list {
		st, err := statement(&list[i])
		if err != nil {
			return err
		}
		verdict := strings.Trim(st.Verdict+" "+st.Reason, " ")
		row := index.RowOf(list[i].Index, st, nil)
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s%s\n", list[i].Index, st.Time.UTC().Format(time.RFC3339), st.Kind, source(st.Server, st.Tool), verdict, column(codesCell(row.Codes)), st.ID)
		if details {
			if err := w.Flush(); err != nil {
				return err
			}
			writeDetails(out, st)
		}
	}
	return w.Flush()
}

func statement(e *sequence.Entry) (*ledger.Statement, error) {
	st, err := ledger.UnverifiedStatement(e.Envelope)
	if err != nil {
		return nil, fmt.Errorf("record %d: %w", e.Index, err)
	}
	return st, nil
}

// source is the server of a record and its tool.
func source(server, tool string) string {
	if tool == "" {
		return server
	}
	return server + "/" + tool
}

// writeCodes prints codes with their numbers, if there are any.
func writeCodes(w io.Writer, what string, counts map[string]int64) {
	if len(counts) == 0 {
		return
	}
	var list []string
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", code, counts[code]))
	}
	fmt.Fprintf(w, "%s: %s\n", what, strings.Join(list, ", "))
}

// writeDetails prints what a record says was found.
func writeDetails(w io.Writer, st *ledger.Statement) {
	of := func(list []ledger.Count) map[string]int64 {
		m := map[string]int64{}
		for _, c := range list {
			m[string(c.Code)] += c.N
		}
		return m
	}
	writeCodes(w, "found", of(st.Findings))
	writeCodes(w, "withheld for", of(st.Withheld))
	writeCodes(w, "not inspected", of(st.NotInspected))
	if st.Rule != "" {
		fmt.Fprintf(w, "rule: %s\n", st.Rule)
	}
	if st.Of != (ledger.ID{}) {
		fmt.Fprintf(w, "about: %s\n", st.Of)
	}
}
