// SPDX-License-Identifier: Apache-2.0

package residue

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Print writes the report as a table for a person.
func (r *Report) Print(dst io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(dst)
	r.table(w, p)
	r.verdicts(w, p)
	return w.Flush()
}

// table writes a line for each family, and one for all.
func (r *Report) table(w io.Writer, p terminal.Palette) {
	const columns = "%-38s %6s  %11s %11s %11s  %6s %6s %7s %6s"
	line := func(f *Family, name string) string {
		arrow := func(before, after int) string { return fmt.Sprintf("%d > %d", before, after) }
		return fmt.Sprintf(columns, name, fmt.Sprint(f.Rows),
			arrow(f.Hidden, f.HiddenAfter), arrow(f.Tokens, f.TokensAfter), arrow(f.Messages, f.MessagesAfter),
			fmt.Sprint(f.FaithfulTokens), fmt.Sprint(f.FaithfulMessages), fmt.Sprint(f.FaithfulChanged), fmt.Sprint(f.FaithfulSame))
	}
	fmt.Fprintf(w, "%-38s %6s  %-35s  %s\n", "", "", "rows with …, before > after mcp", "after faithful: rows with … left,")
	fmt.Fprintf(w, columns+"\n", "", "rows", "hidden", "tokens", "messages", "token", "mess.", "changed", "same")
	last := ""
	for i := range r.Families {
		f := &r.Families[i]
		if f.Collection != last {
			fmt.Fprintf(w, "%s\n", p.Bold(terminal.Inline(f.Collection)))
			last = f.Collection
		}
		fmt.Fprintln(w, line(f, "  "+terminal.Inline(f.Family)))
	}
	total := r.total()
	fmt.Fprintln(w, p.Bold(line(&total, "all")))
}

// verdicts writes which targets were reached, and the rows that missed one.
func (r *Report) verdicts(w io.Writer, p terminal.Palette) {
	fmt.Fprintln(w)
	for _, t := range r.Targets {
		verdict := p.Green("reached")
		if !t.Met {
			verdict = p.Red("MISSED ")
		}
		fmt.Fprintf(w, "%s  %-56s %s, wanted %s\n", verdict, t.Name, t.Got, t.Want)
	}
	if len(r.Misses) > 0 {
		fmt.Fprintf(w, "rows that missed: %s\n", terminal.Printable(strings.Join(r.Misses, " ")))
	}
}
