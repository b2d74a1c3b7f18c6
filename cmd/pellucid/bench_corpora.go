// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/measure/corpora/residue"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type benchCorporaCmd struct {
	Data string `env:"PELLUCID_DATA" default:"../shared/data" placeholder:"DIR" help:"The folder that holds corpora/ (default ${default}, or $$${env})."`
	JSON bool   `name:"json" help:"Print the same as JSON."`
}

func (benchCorporaCmd) Help() string {
	return `For each family of rows: how many hold a hidden code point, a control token or
a hidden message, before and after the profile mcp; then, under faithful, how
many have a token or a message left, how many were changed, and how many have
the same NFC as before. What is left is looked for by checks of their own, which
share no table with the scrubber. Exit codes: 0 every target was reached, 1 one
was missed, or there are no data.`
}

func (c *benchCorporaCmd) Run(e *env) error {
	progress := newProgress(e, "bench corpora")
	report, err := residue.Measure(c.Data, progress.say)
	progress.done()
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, report)
	} else {
		w := bufio.NewWriter(e.Stdout)
		printCorpora(w, terminal.PaletteFor(e.Stdout, e.Getenv), report)
		err = w.Flush()
	}
	switch {
	case err != nil:
		return fmt.Errorf("bench: write: %w", err)
	case !report.Met():
		return errors.New("bench: a target was missed")
	}
	return nil
}

func printCorpora(w *bufio.Writer, p terminal.Palette, r *residue.Report) {
	const columns = "%-38s %6s  %11s %11s %11s  %6s %6s %7s %6s"
	line := func(f *residue.Family, name string) string {
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
	total := r.Total()
	fmt.Fprintln(w, p.Bold(line(&total, "all")))
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
