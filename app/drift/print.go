// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// Write prints the report for a person.
func (r *Report) Write(w io.Writer) error {
	var b strings.Builder
	if len(r.Rows) == 0 {
		b.WriteString("No classifier has judged a result in the last 7 days.\n")
	} else {
		fmt.Fprintf(&b, "Results that classifiers have flagged: from %s on, and in the 28 days before.\n\n", r.Split.Format("2006-01-02"))
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "SERVER\tCLASSIFIER\tLAST 7 DAYS\tOF\tBEFORE\tOF\tCHANGE")
		for i := range r.Rows {
			row := &r.Rows[i]
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", frame.Label(row.Server), frame.Label(row.Classifier), row.Later, terminal.Thousands(int(row.Later.Judged)),
				row.Before, terminal.Thousands(int(row.Before.Judged)), row.Change)
		}
		t.Flush()
		fmt.Fprintf(&b, "\nA share counts as changed if it has doubled or halved and the two intervals (95 %%) do not overlap. Fewer than %d\nresults are not compared.\n", Enough)
	}
	if r.Unindexed > 0 {
		fmt.Fprintf(&b, "%s are not in the index yet, and not counted.\n", terminal.Plural(int(r.Unindexed), "record"))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// String writes a share with its interval in per cent.
func (s Share) String() string { return interval.Format(int(s.Flagged), int(s.Judged)) }
