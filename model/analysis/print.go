// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// classWords say what a class means.
var classWords = map[counterfactual.AttributionClass]string{
	counterfactual.UserDriven:    "it recurs without any untrusted text: the user's own",
	counterfactual.Hijack:        "it recurs without the user's task, or with an argument that is not the user's",
	counterfactual.DataDependent: "it survives when the text's control is masked: the user's, with data of the context",
	counterfactual.Conditional:   "it needs the text's control as well: not the user's alone",
	counterfactual.Inconclusive:  "not decided",
}

// barWidth is that of the influence bars, in characters.
const barWidth = 24

// effectBar draws an effect of -1000 to 1000 thousandths; only what pushes towards the
// proposal has a length, and nothing has that was not seen both ways.
func effectBar(f counterfactual.Influence) string {
	if f.Shown == 0 || f.Hidden == 0 {
		return strings.Repeat(" ", barWidth)
	}
	n := min(max((f.Effect*barWidth+500)/1000, 0), barWidth)
	return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
}

// mostBars is how many segments a person is shown: the causes, then those of the
// largest effect. JSON has all.
const mostBars = 40

// foremost are the places of the segments to be shown, in their order.
func (r *Report) foremost() []int {
	all := make([]int, len(r.Segments))
	for i := range all {
		all[i] = i
	}
	if len(all) <= mostBars {
		return all
	}
	weight := func(i int) int {
		s := &r.Segments[i]
		if s.Cause {
			return 10_000
		}
		return s.Influence.Effect
	}
	slices.SortStableFunc(all, func(i, j int) int { return weight(j) - weight(i) })
	all = all[:mostBars]
	slices.Sort(all)
	return all
}

// Print tells a person: the attributions first, then what in the context has pushed.
func (r *Report) Print(out io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(out)
	for i := range r.Attributions {
		r.Attributions[i].print(w, p)
	}
	for _, b := range r.Breaches {
		fmt.Fprintf(w, "%s  %s\n", p.Bold(p.Red("breach")), b.words())
	}
	shown := r.foremost()
	r.printSegments(w, p, shown)
	r.printMetrics(w, shown)
	for _, o := range r.Odd {
		fmt.Fprintf(w, "note: %s\n", o)
	}
	if e := r.Embedding; e != nil && e.Failed > 0 {
		fmt.Fprintf(w, "note: %s\n", e.words())
	}
	fmt.Fprintf(w, "%s, %s tokens, %.1f s; ended: %s\n%s\n", terminal.Plural(r.Spent.Calls, "call"), terminal.Thousands(int(r.Spent.Tokens)), float64(r.Spent.Millis)/1000, r.Stop, p.Dim("record "+r.Record))
	return w.Flush()
}

// print tells the attribution of one proposal, and what it rests on.
func (a *Attribution) print(w io.Writer, p terminal.Palette) {
	word := string(a.Response)
	switch a.Response {
	case counterfactual.Allow:
		word = p.Green(word)
	case counterfactual.Ask:
		word = p.Yellow(word)
	default:
		word = p.Red(word)
	}
	fmt.Fprintf(w, "%s  %s\n", p.Bold(word), p.Bold(a.Tool))
	for _, arg := range a.Arguments {
		fmt.Fprintf(w, "  %s\n", arg)
	}
	fmt.Fprintf(w, "  %s: %s\n", a.Class, classWords[a.Class])
	if a.Class != counterfactual.Inconclusive {
		fmt.Fprintf(w, "  evidence %g to 1, severity %.3f (%s)\n", a.Odds, float64(a.Severity)/1000, a.Band)
	}
	for _, name := range a.Tampered {
		fmt.Fprintf(w, "  argument not the user's: %s\n", terminal.Inline(name))
	}
	for _, c := range a.Causes {
		what := "begins"
		if c.Span {
			what = "span"
		}
		fmt.Fprintf(w, "  caused by %s (%g to 1)\n", strings.Join(c.Segments, " and "), c.Odds)
		if c.Text != "" {
			fmt.Fprintf(w, "    %s %s\n", what, c.Text)
		}
	}
	if c := a.Certificate; c != nil {
		fmt.Fprintf(w, "  certificate: without what was found it recurred in %d of %d answers\n", c.Positives, c.Positives+c.Negatives)
	}
	if a.Contradicts {
		fmt.Fprintln(w, "  the answers contradict each other")
	}
	if a.Drift {
		fmt.Fprintln(w, "  the answers came of more than one model or fingerprint: the stricter rule held")
	}
	if len(a.NotTested) > 0 {
		fmt.Fprintf(w, "  not tested: %s\n", strings.Join(a.NotTested, ", "))
	}
}

// words say which invariant of which capsule does not hold.
func (b *Breach) words() string {
	where := ""
	if b.Segment != "" {
		where = " in " + b.Segment
	}
	return fmt.Sprintf("capsule %s: %s%s", b.Capsule, b.Kind, where)
}

// printSegments draws the influence of the segments that are shown.
func (r *Report) printSegments(w io.Writer, p terminal.Palette, shown []int) {
	fmt.Fprintf(w, "\n%-6s %-*s  %s\n", "", barWidth, "influence", "recurs shown, hidden")
	for _, i := range shown {
		s := &r.Segments[i]
		mark := " "
		if s.Cause {
			mark = p.Red("!")
		} else if s.Withheld {
			mark = p.Yellow("?")
		}
		f := s.Influence
		fmt.Fprintf(w, "%s %-4s %s  %2d/%-2d %2d/%-2d  %s, %s bytes\n", mark, s.ID, effectBar(f), f.ShownRecurs, f.Shown, f.HiddenRecurs, f.Hidden, terminal.Inline(s.Source), terminal.Thousands(s.Bytes))
	}
	if n := len(r.Segments) - len(shown); n > 0 {
		fmt.Fprintf(w, "  and %s of less influence: --json has all\n", terminal.Plural(n, "segment"))
	}
}

// printMetrics prints what --full asked for: how far answers were from the base answer.
func (r *Report) printMetrics(w io.Writer, shown []int) {
	rows := r.divergenceRows(shown)
	if !r.full || len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\ndivergence from the answer, of 1000 (no verdict rests on it)\n  %-18s", "")
	for _, id := range r.metrics {
		fmt.Fprintf(w, " %s", id)
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		fmt.Fprintf(w, "  %-18s", row.Name)
		for i, id := range r.metrics {
			fmt.Fprintf(w, " %*s", len(id), row.Values[i])
		}
		fmt.Fprintln(w)
	}
}

// A divergenceRow is one perturbation, of the whole context or of one segment.
type divergenceRow struct {
	Name   string
	Values []string // by metric; "-": not measured
}

func (r *Report) divergenceRows(shown []int) []divergenceRow {
	var out []divergenceRow
	add := func(prefix string, d divergences) {
		for _, kind := range slices.Sorted(maps.Keys(d)) {
			row := divergenceRow{Name: prefix + kind}
			for _, id := range r.metrics {
				value := "-"
				if v, ok := d[kind][id]; ok {
					value = strconv.Itoa(v)
				}
				row.Values = append(row.Values, value)
			}
			out = append(out, row)
		}
	}
	add("", r.Metrics)
	for _, i := range shown {
		add(r.Segments[i].ID+" ", r.Segments[i].Metrics)
	}
	return out
}
