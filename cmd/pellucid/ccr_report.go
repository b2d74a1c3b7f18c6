// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A ccrReport is what ccr analyze says. Third-party text stands in it only cut and
// escaped.
type ccrReport struct {
	Assembly string                    `json:"assembly"`
	Format   counterfactual.Format     `json:"format"`
	Response counterfactual.Response   `json:"response"`
	Actions  []ccrAction               `json:"actions"`
	Segments []ccrSegment              `json:"segments"`
	Odd      []string                  `json:"odd,omitempty"`
	Spent    counterfactual.Spent      `json:"spent"`
	Stop     counterfactual.StopReason `json:"stop"`
	Rule     counterfactual.Rule       `json:"rule"`
	Repair   *counterfactual.Repair    `json:"repair,omitempty"`
	Metrics  divergences               `json:"metrics,omitempty"` // of the whole context
	Record   string                    `json:"record"`            // digest of the evidence

	record []byte
	full   bool // every metric was asked for
}

// A ccrAction is the verdict of one action.
type ccrAction struct {
	Tool      string                      `json:"tool"`
	Arguments []string                    `json:"arguments"` // critical ones, escaped and cut
	Class     counterfactual.VerdictClass `json:"class"`
	Response  counterfactual.Response     `json:"response"`
	Severity  int                         `json:"severity"` // thousandths
	Band      counterfactual.Band         `json:"band"`
	// Odds are of the weakest evidence that the class rests on, to 1; at most a million.
	Odds        float64                     `json:"odds"`
	Tampered    []string                    `json:"tampered,omitempty"`
	Causes      []ccrCause                  `json:"causes,omitempty"`
	Certificate *counterfactual.Certificate `json:"certificate,omitempty"`
	Contradicts bool                        `json:"contradictory,omitempty"`
	Drift       bool                        `json:"drift,omitempty"` // not all answers came of one model and fingerprint
	NotTested   []string                    `json:"not_tested,omitempty"`
}

// A ccrCause is a smallest set of segments that suffices, with the culprit's text.
type ccrCause struct {
	Segments []string `json:"segments"`
	Odds     float64  `json:"odds"`
	// Text is of one segment: the span that was found, or its beginning; escaped, cut.
	Text string `json:"text,omitempty"`
	Span bool   `json:"span"` // Text is the span that suffices
}

// A ccrSegment is one piece of the context.
type ccrSegment struct {
	ID        string                   `json:"id"`
	Source    string                   `json:"source"`
	Octets    int                      `json:"octets"`
	Digest    string                   `json:"digest"`
	Cause     bool                     `json:"cause"`
	Withheld  bool                     `json:"withheld"`
	Influence counterfactual.Influence `json:"influence"`
	Metrics   divergences              `json:"metrics,omitempty"`
}

// divergences are the largest ones that were seen, in thousandths: by perturbation,
// then by metric.
type divergences map[string]map[string]int

// odds are e to the power of a logarithm in thousandths.
func odds(logE int) float64 {
	const most = 1e6
	return min(most, math.Round(10*math.Exp(float64(logE)/1000))/10)
}

func newReport(q *ccrQuestion, judge *counterfactual.Judge, r *counterfactual.Result) (*ccrReport, error) {
	record, err := r.Record()
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	sum := sha256.Sum256(record)
	a := q.assembly
	out := &ccrReport{
		Assembly: a.ID(), Format: a.Format, Response: r.Response(), Spent: r.Spent, Stop: r.Stop, Rule: r.Rule,
		Repair: r.Repair, Record: "sha256:" + hex.EncodeToString(sum[:]), record: record, full: r.Problem().Full,
	}
	var causes counterfactual.Set
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		t := &judge.Targets[v.Target]
		act := ccrAction{
			Tool: finding.Quote(t.Tool), Class: v.Class, Response: v.Response, Severity: v.Severity, Band: v.Band, Odds: odds(v.LogE),
			Tampered: v.Arguments, Certificate: v.Certificate, Contradicts: v.Contradictory, Drift: v.Drift, NotTested: v.NotTested,
		}
		for _, arg := range t.Critical {
			act.Arguments = append(act.Arguments, finding.Quote(arg.Path)+" = "+finding.Quote(untyped(arg.Value)))
		}
		for _, c := range v.Causes {
			causes = causes.Union(c.Segments)
			act.Causes = append(act.Causes, newCause(a, c))
		}
		out.Actions = append(out.Actions, act)
	}
	for i := range a.Segments {
		s := &a.Segments[i]
		out.Segments = append(out.Segments, ccrSegment{
			ID: s.ID, Source: s.Source.Label(), Octets: len(s.Text), Digest: s.Digest.String(),
			Cause: causes.Has(i), Withheld: r.Withheld.Has(i), Influence: r.Influence[i],
		})
	}
	out.measure(r)
	seen := map[string]bool{}
	for _, o := range a.Odd {
		if !seen[o.Code] {
			seen[o.Code] = true
			out.Odd = append(out.Odd, o.Code)
		}
	}
	return out, nil
}

// untyped is a canonical value without the letter that says what it is: a number, a date,
// an address, an IBAN, a URL.
func untyped(v string) string {
	if len(v) > 2 && v[1] == ':' && strings.IndexByte("ndeiu", v[0]) >= 0 {
		return v[2:]
	}
	return v
}

func newCause(a *counterfactual.Assembly, c counterfactual.Cause) ccrCause {
	out := ccrCause{Odds: odds(c.LogE)}
	places := c.Segments.List()
	for _, i := range places {
		out.Segments = append(out.Segments, a.Segments[i].ID)
	}
	if len(places) == 1 {
		text := a.Segments[places[0]].Text
		if c.Span != (counterfactual.Span{}) {
			text, out.Span = text[c.Span.Start:c.Span.End], true
		}
		out.Text = finding.Quote(text)
	}
	return out
}

// measure takes in what the metrics say of each answer.
func (r *ccrReport) measure(from *counterfactual.Result) {
	n := len(r.Segments)
	all := counterfactual.AllOf(n)
	for _, o := range from.Observations() {
		v := &o.Variant
		switch {
		case v.Span != counterfactual.Span{}:
		case v.MaskUser:
			r.Metrics = r.Metrics.with("mask-user", o.Metrics)
		case v.Order != 0:
			r.Metrics = r.Metrics.with("reorder", o.Metrics)
		case v.Weak != "" && v.Level != counterfactual.LevelPlain:
			r.single(v.Weak, fmt.Sprint("attenuate-", v.Level), o.Metrics)
		default:
			if v.Kept == all {
				r.Metrics = r.Metrics.with("base", o.Metrics)
			}
			if v.Kept == "" {
				r.Metrics = r.Metrics.with("withhold-all", o.Metrics)
			}
			r.single(all.Minus(v.Kept), "remove", o.Metrics)
			r.single(v.Kept, "keep-only", o.Metrics)
		}
	}
}

// single takes in what concerns a set of one segment.
func (r *ccrReport) single(set counterfactual.Set, kind string, values []int) {
	if set.Len() == 1 {
		s := &r.Segments[set.List()[0]]
		s.Metrics = s.Metrics.with(kind, values)
	}
}

// with is d with the values of all metrics for one perturbation.
func (d divergences) with(kind string, values []int) divergences {
	metrics := counterfactual.Metrics()
	if len(values) != len(metrics) {
		return d
	}
	if d == nil {
		d = divergences{}
	}
	if d[kind] == nil {
		d[kind] = map[string]int{}
	}
	for i, m := range metrics {
		d[kind][m.ID] = max(d[kind][m.ID], values[i])
	}
	return d
}

// classWords say what a class means.
var classWords = map[counterfactual.VerdictClass]string{
	counterfactual.UserDriven:    "it recurs without any untrusted text: the user's own",
	counterfactual.Hijack:        "it recurs without the user's task, or with an argument that is not the user's",
	counterfactual.DataDependent: "it survives when the text's control is masked: the user's, with data of the context",
	counterfactual.Conditional:   "it needs the text's control as well: not the user's alone",
	counterfactual.Inconclusive:  "not decided",
}

// barWidth is that of the influence bars, in characters.
const barWidth = 24

// effectBar draws an effect of -1000 to 1000 thousandths; only what pushes towards the
// action has a length, and nothing has that was not seen both ways.
func effectBar(f counterfactual.Influence) string {
	if f.Shown == 0 || f.Hidden == 0 {
		return strings.Repeat(" ", barWidth)
	}
	n := min(max((f.Effect*barWidth+500)/1000, 0), barWidth)
	return strings.Repeat("#", n) + strings.Repeat(".", barWidth-n)
}

// mostBars is how many segments a person is shown: the causes, then those of the
// largest effect. JSON and HTML have all.
const mostBars = 40

// foremost are the places of the segments to be shown, in their order.
func (r *ccrReport) foremost() []int {
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

// print tells a person: the verdicts first, then what in the context has pushed.
func (r *ccrReport) print(out io.Writer, p terminal.Palette) error {
	w := bufio.NewWriter(out)
	for i := range r.Actions {
		r.Actions[i].print(w, p)
	}
	shown := r.foremost()
	r.printSegments(w, p, shown)
	r.printMetrics(w, shown)
	for _, o := range r.Odd {
		fmt.Fprintf(w, "note: %s\n", o)
	}
	fmt.Fprintf(w, "%s, %s tokens, %.1f s; ended: %s\n%s\n", terminal.Plural(r.Spent.Calls, "call"), terminal.Thousands(int(r.Spent.Tokens)), float64(r.Spent.Millis)/1000, r.Stop, p.Dim("record "+r.Record))
	return w.Flush()
}

// print tells the verdict of one action, and what it rests on.
func (a *ccrAction) print(w io.Writer, p terminal.Palette) {
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

// printSegments draws the influence of the segments that are shown.
func (r *ccrReport) printSegments(w io.Writer, p terminal.Palette, shown []int) {
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
		fmt.Fprintf(w, "%s %-4s %s  %2d/%-2d %2d/%-2d  %s, %s octets\n", mark, s.ID, effectBar(f), f.ShownRecurs, f.Shown, f.HiddenRecurs, f.Hidden, terminal.Inline(s.Source), terminal.Thousands(s.Octets))
	}
	if n := len(r.Segments) - len(shown); n > 0 {
		fmt.Fprintf(w, "  and %s of less influence: --json and --html have all\n", terminal.Plural(n, "segment"))
	}
}

// printMetrics prints what --full asked for: how far answers were from the base answer.
func (r *ccrReport) printMetrics(w io.Writer, shown []int) {
	rows := r.divergenceRows(shown)
	if !r.full || len(rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\ndivergence from the answer, of 1000 (no verdict rests on it)\n  %-18s", "")
	for _, m := range counterfactual.Metrics() {
		fmt.Fprintf(w, " %s", m.ID)
	}
	fmt.Fprintln(w)
	for _, row := range rows {
		fmt.Fprintf(w, "  %-18s", row.Name)
		for i, m := range counterfactual.Metrics() {
			fmt.Fprintf(w, " %*d", len(m.ID), row.Values[i])
		}
		fmt.Fprintln(w)
	}
}

// A divergenceRow is one perturbation, of the whole context or of one segment.
type divergenceRow struct {
	Name   string
	Values []int // by metric
}

func (r *ccrReport) divergenceRows(shown []int) []divergenceRow {
	var out []divergenceRow
	add := func(prefix string, d divergences) {
		for _, kind := range slices.Sorted(maps.Keys(d)) {
			row := divergenceRow{Name: prefix + kind}
			for _, m := range counterfactual.Metrics() {
				row.Values = append(row.Values, d[kind][m.ID])
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
