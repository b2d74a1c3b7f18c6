// SPDX-License-Identifier: Apache-2.0

package backtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Sentence says the outcome in one line.
func (r *Report) Sentence() string {
	if r.Calls == 0 {
		return "No call of a tool is recorded in this time."
	}
	s := fmt.Sprintf("Of %s recorded calls of tools the rules would have held %s, of which %s were held by nothing else", terminal.Thousands(int(r.Calls)), terminal.Thousands(int(r.Held.N)), terminal.Thousands(int(r.Held.Only)))
	if r.Denied.N > 0 {
		s += fmt.Sprintf(", and refused %s, of which %s were withheld by nothing else", terminal.Thousands(int(r.Denied.N)), terminal.Thousands(int(r.Denied.Only)))
	}
	return s + "."
}

// Write prints the report for a person.
func (r *Report) Write(dst io.Writer) error {
	w := bufio.NewWriter(dst)
	fmt.Fprintln(w, r.Sentence())
	if r.First != "" {
		fmt.Fprintf(w, "From %s to %s; %s read.\n", r.First, r.Last, terminal.Plural(int(r.Records), "record"))
	}
	fmt.Fprintf(w, "Not evaluable: %s. Would pass, and did not: %s. Only watched: %s.\n", terminal.Thousands(int(r.NotEvaluable)), terminal.Thousands(int(r.Passes)), terminal.Thousands(int(r.Watched)))
	if r.Captured > 0 || r.Sealed > 0 {
		fmt.Fprintf(w, "Sizes from captures: %s. Captures that only reviewers can read: %s.\n", terminal.Thousands(int(r.Captured)), terminal.Thousands(int(r.Sealed)))
	}
	tables := []struct {
		title, by string
		rows      []Row
	}{
		{"Would have been held or refused", "BY", r.Rows},
		{"Would pass, and did not", "WAS HELD BY", r.Passing},
		{"Not evaluable: the rule needs what no record has", "RULE", r.Unknown},
	}
	for _, t := range tables {
		if len(t.rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", t.title)
		tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintf(tab, "  N\tONLY\tOF\t%s\tACTION\tFOR EXAMPLE\n", t.by)
		for _, row := range t.rows[:min(len(t.rows), maxPrinted)] {
			by := row.By
			if row.Lacks != "" {
				by += " (needs " + row.Lacks + ")"
			}
			fmt.Fprintf(tab, "  %d\t%d\t%s/%s\t%s\t%s\t%s\n", row.N, row.Only, row.Server, row.Tool, by, row.Action, strings.Join(row.Examples, " "))
		}
		_ = tab.Flush() // an error of w comes back when w is flushed
		if n := len(t.rows) - maxPrinted; n > 0 {
			fmt.Fprintf(w, "  and %s more: --json has all\n", terminal.Plural(n, "row"))
		}
	}
	if r.More > 0 {
		fmt.Fprintf(w, "%d decisions stand in no row, since there are too many.\n", r.More)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, n)
	}
	return w.Flush()
}

// maxPrinted is how many rows of a table a person gets.
const maxPrinted = 50

// errNothing: there is nothing to try rules on.
var errNothing = errors.New("policy: nothing is recorded yet, so there is nothing to try rules on: a ledger is kept by up, and by wrap with --evidence best-effort")

// Of tries rules on the log of a database, with the captures that it has. o.Size and o.Captures are set here.
func Of(d install.Database, o Options) (r *Report, err error) {
	err = d.WithIntegrated(func(ctx context.Context, s *storage.Store) error {
		l := s.Ledger()
		head, err := l.Head(ctx)
		if err != nil {
			return err
		}
		by, err := install.Opener()
		if err != nil {
			return err
		}
		now := time.Now()
		o.Size, o.Captures = head.Size, func(ctx context.Context, id string) (*captures.Capture, error) {
			return captures.Read(ctx, s, by, id, "", now)
		}
		r, err = Run(ctx, l, o)
		return err
	})
	if errors.Is(err, install.ErrNoStore) || errors.Is(err, sequence.ErrNoLog) {
		return nil, errNothing
	}
	return r, err
}
