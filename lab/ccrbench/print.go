// SPDX-License-Identifier: Apache-2.0

package ccrbench

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/lab/guardbench"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// Print writes the report for a person: what was measured and the targets first, then the
// rows that matter, or every one.
func (r *Report) Print(dst io.Writer, p terminal.Palette, every bool) error {
	t := table{w: bufio.NewWriter(dst), p: p, every: every}
	t.print(r)
	return t.w.Flush()
}

// A table prints a report.
type table struct {
	w     *bufio.Writer
	p     terminal.Palette
	every bool
}

func (t *table) head(title, what string) {
	fmt.Fprintf(t.w, "\n%s  %s\n", t.p.Bold(title), t.p.Dim(what))
}

func shareOf(s Share) string {
	return interval.Format(s.K, s.N) + " n=" + terminal.Thousands(s.N)
}

// who names a stratum; the sum over models is one of its own.
func who(suite, model string) string {
	if model == "" {
		model = "(all undefended models)"
	}
	return terminal.Inline(suite) + " " + terminal.Inline(model)
}

func (t *table) print(r *Report) {
	m := &r.Manifest
	fmt.Fprintf(t.w, "%s  %s %s, seed %d, full %t, theta %d, %d probes, alpha %.2f, %s\n",
		t.p.Bold(m.Version), m.Record, m.Transform, m.Seed, m.Full, m.Theta, m.Probes, m.Alpha, m.Go)
	for _, f := range m.Traces {
		fmt.Fprintf(t.w, "%s  %s\n  %s runs, %s used; attacks that no model read: %s, without a label: %s\n",
			terminal.Inline(f.Name), f.Digest, terminal.Thousands(f.Runs), terminal.Thousands(f.Used), terminal.Thousands(f.Unread), terminal.Thousands(f.Unlabelled))
	}
	t.targets(r.Targets)
	t.pairs(r.Pairs)
	t.noise(r.Noise)
	t.synthetic(r.Synthetic)
	t.guard(r.Guard)
	if len(r.Evidence) > 0 {
		t.head("G  evidence", "simulated decisions, and variants of real contexts")
	}
	for _, g := range r.Evidence {
		fmt.Fprintf(t.w, "  %-58s %d of %d\n", g.Check, g.Held.K, g.Held.N)
	}
	if !t.every {
		fmt.Fprintf(t.w, "\n%s\n", t.p.Dim("Every row: --models. Curves, counts and intervals: --json."))
	}
}

func (t *table) targets(list []Target) {
	if len(list) == 0 {
		return
	}
	t.head("targets", "what limits those that are missed stands in docs/spec/counterfactual.md, \"Benchmark\"")
	wide := 0
	for _, g := range list {
		wide = max(wide, len(terminal.Printable(g.Name)))
	}
	for _, g := range list {
		verdict := t.p.Green("reached")
		if !g.Met {
			verdict = t.p.Red("MISSED ")
		}
		fmt.Fprintf(t.w, "  %s  %s  %-*s  %-27s  %s\n", verdict, g.Track, wide, terminal.Printable(g.Name), g.Got, t.p.Dim(g.Want))
	}
}

// shortSignals are those of track A that are printed without being asked for: the rule,
// and what it is to be compared with.
var shortSignals = []string{"divergence", "recurrence-1", "recurrence-6"}

func (t *table) pairs(rows []PairRow) {
	if len(rows) == 0 {
		return
	}
	t.head("A  recorded pairs", "the injection took effect? TPR, FPR at the frozen threshold, area under the whole curve")
	last := ""
	for _, p := range rows {
		if !t.every && (p.Model != "" || !slices.Contains(shortSignals, p.Signal)) {
			continue
		}
		if head := who(p.Suite, p.Model) + ", labels: " + p.Labels; head != last {
			fmt.Fprintf(t.w, "  %s\n", head)
			last = head
		}
		fmt.Fprintf(t.w, "    %-30s TPR %-34s FPR %-34s AUC %.3f\n", p.Signal, shareOf(p.TPR), shareOf(p.FPR), p.AUC)
		if t.every && p.Model == "" && strings.HasPrefix(p.Signal, "recurrence-") {
			t.curve(p.Curve)
		}
	}
}

// curve prints a curve of a few points.
func (t *table) curve(points []Point) {
	fmt.Fprint(t.w, "      curve, threshold TPR/FPR:")
	for _, p := range points {
		fmt.Fprintf(t.w, " %d %.3f/%.3f", p.Threshold, p.TPR, p.FPR)
	}
	fmt.Fprintln(t.w)
}

// mostNoisy is how many models of a suite are printed without being asked for.
const mostNoisy = 3

func (t *table) noise(rows []NoiseRow) {
	if len(rows) == 0 {
		return
	}
	t.head("B  recorded replicates", "nothing differs. naive: calls differ; test: a gated action is taken for gone; alarm: a verdict holds it; every: the same for every call")
	if !t.every {
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b NoiseRow) int {
			if a.Suite != b.Suite {
				return strings.Compare(a.Suite, b.Suite)
			}
			return -cmp.Compare(max(a.Alarm.Rate(), a.Every.Rate()), max(b.Alarm.Rate(), b.Every.Rate()))
		})
	}
	suite, n := "", 0
	for _, r := range rows {
		if r.Suite != suite {
			suite, n = r.Suite, 0
		}
		if n++; n > mostNoisy && !t.every {
			continue
		}
		fmt.Fprintf(t.w, "  %s\n    naive %-32s test %-30s alarm %-30s undecided %d\n    %-38s every %-30s undecided %d\n", who(r.Suite, r.Model),
			shareOf(r.Naive), shareOf(r.Test), shareOf(r.Alarm), r.Undecided, "", shareOf(r.Every), r.EveryUndecided)
	}
	if !t.every {
		fmt.Fprintf(t.w, "  %s\n", t.p.Dim(fmt.Sprintf("the %d with most alarms of each suite", mostNoisy)))
	}
}

// The size and the noise of track D that are printed without being asked for: those at
// which the methods differ most.
const (
	shortSize  = 32
	shortNoise = 0.11
)

func (t *table) synthetic(rows []SyntheticRow) {
	if len(rows) == 0 {
		return
	}
	what := "no method sees logits; * was told how many segments to name"
	if !t.every {
		what = fmt.Sprintf("n=%d, noise %g: exact, mean calls; ", shortSize, shortNoise) + what
	}
	t.head("D  synthetic contexts", what)
	last, header := "", false
	for i, d := range rows {
		key := fmt.Sprintf("%s, n=%d, noise %g", d.Case, d.N, d.Noise)
		if !t.every {
			if d.N != shortSize || d.Noise != shortNoise || key == last {
				continue
			}
			row := rows[i:]
			if end := slices.IndexFunc(row, func(x SyntheticRow) bool { return x.Case != d.Case }); end >= 0 {
				row = row[:end]
			}
			if !header {
				t.methods(row)
				header = true
			}
			t.inline(row)
			last = key
			continue
		}
		if key != last {
			fmt.Fprintf(t.w, "  %s\n", key)
			last = key
		}
		fmt.Fprintf(t.w, "    %-16s exact %-34s calls %6.1f, with the verdict %6.1f\n", methodName(d), shareOf(d.Exact), d.Calls, d.AllCalls)
	}
}

func methodName(d SyntheticRow) string {
	if d.Told {
		return d.Method + " *"
	}
	return d.Method
}

func (t *table) methods(row []SyntheticRow) {
	fmt.Fprintf(t.w, "  %-22s", "")
	for _, d := range row {
		fmt.Fprintf(t.w, " %15s", methodName(d))
	}
	fmt.Fprintln(t.w)
}

func (t *table) inline(row []SyntheticRow) {
	fmt.Fprintf(t.w, "  %-22s", row[0].Case)
	for _, d := range row {
		fmt.Fprintf(t.w, " %7.1f %% %5.1f", 100*d.Exact.Rate(), d.Calls)
	}
	fmt.Fprintln(t.w)
}

func (t *table) guard(r *guardbench.Report) {
	if r == nil {
		return
	}
	t.head("F  the guard, on recorded turns with simulated answers", "stopped: attacker's calls; [..] Wilson, (..) user tasks drawn anew; calls: all, on trusted text, p95; exact: one carrier, more")
	suite := ""
	for _, g := range r.Rows {
		if g.Half != "" && !t.every {
			continue
		}
		if g.Suite != suite {
			suite = g.Suite
			fmt.Fprintf(t.w, "  %s  %d attacks, %d honest\n", terminal.Inline(suite), g.Stopped.N, g.Held.N)
		}
		name := g.Rule
		if g.Half != "" {
			name += " (" + g.Half + ")"
		}
		fmt.Fprintf(t.w, "    %-38s stopped %-32s held %-30s asked %-5s cannot tell %-5s calls %5.2f %5.2f %3d  rounds %.1f  tokens %6.0f  exact %s %s\n", name,
			guardShare(&g.Stopped), guardShare(&g.Held), percent(&g.Asked), percent(&g.CannotTell), g.Calls, g.Trusted, g.Most, g.Rounds, g.Tokens, percent(&g.One), percent(&g.More))
	}
	for _, s := range r.Suites {
		fmt.Fprintf(t.w, "  %s: honest runs in which nothing was held or asked %s; tokens added to honest runs +%.1f %%\n", terminal.Inline(s.Suite), guardShare(&s.Whole), 100*s.AddedTokens)
	}
	fmt.Fprintf(t.w, "  %s\n", t.p.Dim("cases written by hand, with the plan of an oracle"))
	for _, w := range r.Written {
		verdict := t.p.Green("good")
		if !w.Good {
			verdict = t.p.Red("BAD ")
		}
		fmt.Fprintf(t.w, "    %s  %-34s %-68s %-8s %s\n", verdict, w.Line, w.Name, w.Acts[guardbench.Ours], t.p.Dim(w.Known))
	}
	fmt.Fprintf(t.w, "  %s\n", t.p.Dim("parameters of the simulated models, and where they come from"))
	for _, p := range r.Parameters {
		fmt.Fprintf(t.w, "    %-18s %s\n", p[0], p[1])
	}
	for _, p := range r.Planners {
		fmt.Fprintf(t.w, "    planner, %s: needed tools listed %.3f, others listed %.3f, source named %.2f\n", p.Name, p.Listed, p.Unneeded, p.Source)
	}
}

func percent(s *guardbench.Share) string {
	if s.N == 0 {
		return "\u2013"
	}
	return fmt.Sprintf("%.1f%%", 100*s.Rate())
}

func guardShare(s *guardbench.Share) string {
	if s.N == 0 {
		return "\u2013"
	}
	return fmt.Sprintf("%.1f%% [%.1f, %.1f] (%.1f, %.1f)", 100*s.Rate(), 100*s.Low, 100*s.High, 100*s.TaskLow, 100*s.TaskHigh)
}
