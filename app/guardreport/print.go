// SPDX-License-Identifier: Apache-2.0

package guardreport

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pellucid-mcp/pellucid/model/delegation"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Print tells a person.
func (r *Report) Print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "Decisions of the guard from %s to %s: %d, of them %d in audit mode.\n", terminal.Minute(r.Since), terminal.Minute(r.Until), r.Decisions, r.Audit)
	r.lost(w)
	if r.Decisions == 0 {
		return w.Flush()
	}
	fmt.Fprintln(w)
	r.headline(w)
	r.advice(w)
	if err := r.tables(w); err != nil {
		return err
	}
	if len(r.Held) > 0 {
		fmt.Fprintln(w, "\nHeld calls, the newest first:")
	}
	for i := range r.Held {
		r.Held[i].print(w)
	}
	if r.More > 0 {
		fmt.Fprintf(w, "\n%s not listed: --limit lists up to 1,000.\n", terminal.Plural(r.More, "held call"))
	}
	return w.Flush()
}

// tense says whether the calls were held, or would have been.
func (r *Report) tense() string {
	switch r.Audit {
	case 0:
		return "The guard has held"
	case r.Decisions:
		return "The guard would have held"
	}
	return "The guard has held, or would have held,"
}

// headline says what the figures are.
func (r *Report) headline(w io.Writer) {
	c := &r.Calls
	fmt.Fprintf(w, "%s %d of %s: %s (the brackets are the 95 %% interval).\n",
		r.tense(), c.Held, terminal.Plural(c.N, "privileged call"), interval.Format(c.Held, c.N))
	if r.Readers.N > 0 {
		fmt.Fprintf(w, "  %d of the %d are calls of read-only tools, of which %d were decided because they go to an address that is not the user's.\n",
			r.Readers.Held, c.Held, r.Readers.N)
	}
	if c.Held > 0 {
		fmt.Fprintf(w, "  %d by repair: the model answers again without the text that led to the call.\n", r.Repaired)
		fmt.Fprintf(w, "  %d by refusal: a reviewer can release the call.\n", c.Held-r.Repaired)
	}
	if r.Beside > 0 {
		fmt.Fprintf(w, "  %d would have passed alone: another call of the same answer was held.\n", r.Beside)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.Reasons)) {
		fmt.Fprintf(w, "  %d could not be decided on: %s.\n", r.Reasons[reason], terminal.Inline(reason))
	}
	fmt.Fprintf(w, "%d pass, %d of them with a mark", c.N-c.Held, r.Marked)
	if r.Approved > 0 {
		fmt.Fprintf(w, ", %d by an approval", r.Approved)
	}
	if r.Open > 0 {
		fmt.Fprintf(w, ", %d although they could not be decided on (fail: open)", r.Open)
	}
	fmt.Fprintln(w, ".")
	if r.Released > 0 {
		fmt.Fprintf(w, "%s passed because a reviewer had released the call; this is not counted here.\n", terminal.Plural(r.Released, "more answer"))
	}
	fmt.Fprintf(w, "Extra calls of the model: %d, which is %.2f for each decision, at most %d for 95 %% of them and %d for all.\n",
		r.Asked.Total, r.Asked.Mean, r.Asked.P95, r.Asked.Most)
}

// enough is the number of calls from which the report does not say that they are few.
const enough = 100

// advice says what the figures mean for the mode enforce.
func (r *Report) advice(w io.Writer) {
	c := &r.Calls
	if r.Audit > 0 {
		fmt.Fprintln(w, "\nMay you switch to enforce?")
	} else {
		fmt.Fprintln(w, "\nWhat this means:")
	}
	if c.Held == 0 {
		fmt.Fprintf(w, "  None of these calls is held. If later ones are like them, up to %.1f %% of them are held.\n", 100*c.High)
	} else {
		fmt.Fprintf(w, "  If later calls are like these, %.1f to %.1f %% of them are held. Read each held call below.\n", 100*c.Low, 100*c.High)
		fmt.Fprintln(w, "  If the user wanted the call, the guard stops honest work: a value rule, an example for the planner or another")
		fmt.Fprintln(w, "  response to the verdict changes that (docs/guard.md). If the user did not want it, the guard does what it is for.")
	}
	if passed := c.N - c.Held; c.Held > 0 && passed > 0 {
		_, high := interval.Wilson(0, passed)
		fmt.Fprintf(w, "  If users wanted no held call, up to %.1f %% of the calls that they want are held (so far 0 of %d).\n", 100*high, passed)
	}
	if c.N < enough {
		fmt.Fprintf(w, "  These are fewer than %d calls, so the interval is wide: go on in audit mode.\n", enough)
	}
	fmt.Fprintln(w, "  Calls in a context without third-party text are not decided on, and not counted. Audits that were skipped are not")
	fmt.Fprintln(w, `  counted either: pellucid_guard_requests_total{result="audit-skipped"} at /metrics has their number.`)
}

// lost says which decisions the report lacks.
func (r *Report) lost(w io.Writer) {
	m := &r.Missing
	if m.Waiting > 0 {
		fmt.Fprintf(w, "%s of the last moments not in the log yet: ask again for their decisions.\n", terminal.Plural(m.Waiting, "record"))
	}
	n := m.Absent + m.Version + m.Changed + m.Unread
	if n == 0 {
		return
	}
	fmt.Fprintf(w, "%s more in the ledger, and not counted, since the statement cannot be used; the ledger says that %d of them were held.\n",
		terminal.Plural(n, "decision"), m.Held)
	for _, x := range []struct {
		n   int
		why string
	}{
		{m.Absent, "the file is not in the state directory: it is on another machine, or was deleted"},
		{m.Version, "another version of this program wrote it"},
		{m.Changed, "it does not replay, or is not the one that the ledger has recorded"},
		{m.Unread, "the file cannot be read"},
	} {
		if x.n > 0 {
			fmt.Fprintf(w, "  %d: %s\n", x.n, x.why)
		}
	}
}

func (r *Report) tables(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nVERDICT\tCALLS\tHELD\tSHARE\tMEANING")
	for _, row := range r.Verdicts {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\n", terminal.Inline(row.Name), row.N, row.Held, interval.Format(row.Held, row.N), delegation.Meaning(delegation.Verdict(row.Name)))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nTOOL\tCALLS\tHELD\tSHARE")
	for _, row := range r.Tools {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", terminal.Inline(row.Name), row.N, row.Held, interval.Format(row.Held, row.N))
	}
	return w.Flush()
}

func (x *HeldCall) print(w io.Writer) {
	why := string(x.Response)
	switch {
	case x.Reason != "":
		why += ", could not be decided on: " + string(x.Reason)
	case x.Beside:
		why += ", held for another call of the same answer"
	case len(x.Rules) > 0:
		why += ", as the rule says: " + strings.Join(x.Rules, ", ")
	}
	reads := ""
	if x.Reader {
		reads = " (read-only)"
	}
	fmt.Fprintf(w, "\n%s  %s  %s%s  %s: %s\n", terminal.Minute(x.Time), x.ID, terminal.Inline(x.Tool), reads, x.Verdict, terminal.Inline(why))
	for _, v := range x.Arguments {
		fmt.Fprintf(w, "    %s (%s): %s\n", terminal.Inline(v.Argument), terminal.Inline(v.Form), v.words())
	}
	for _, command := range x.Show {
		fmt.Fprintf(w, "    %s\n", command)
	}
}

// words say where the value comes from.
func (v *Value) words() string {
	switch v.From {
	case "user":
		return "the user's or the operator's words"
	case "composed":
		return "adds to a host that stands in " + strings.Join(v.Segments, ", ")
	case "data":
		return "from " + strings.Join(v.Segments, ", ")
	}
	return "stands nowhere"
}
