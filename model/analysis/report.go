// SPDX-License-Identifier: Apache-2.0

// Package analysis explains an answer of a model: what in a saved context has caused it, how
// sure that is, and whether a record of it holds.
package analysis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// A Report is what ccr analyze says. Third-party text stands in it only cut and
// escaped.
type Report struct {
	Assembly     string                    `json:"assembly"`
	Format       format.Name               `json:"format"`
	Response     counterfactual.Response   `json:"response"`
	Attributions []Attribution             `json:"actions"`
	Segments     []Segment                 `json:"segments"`
	Odd          []string                  `json:"odd,omitempty"`
	Spent        counterfactual.Spent      `json:"spent"`
	Stop         counterfactual.StopReason `json:"stop"`
	Rule         counterfactual.Rule       `json:"rule"`
	Repair       *counterfactual.Repair    `json:"repair,omitempty"`
	Metrics      divergences               `json:"metrics,omitempty"` // of the whole context
	// PValues are those of Metrics and of the segments' metrics, named like "remove" and "s2
	// remove", against the values between equal requests.
	PValues   map[string]map[string]float64 `json:"p_values,omitempty"`
	Embedding *Embedding                    `json:"embedding,omitempty"` // by which meanings were compared
	Breaches  []Breach                      `json:"breaches,omitempty"`
	Record    string                        `json:"record"` // digest of the evidence

	record  []byte
	full    bool // every metric was asked for
	metrics []string
}

// Evidence is the record of the run, from which counterfactual.Replay derives the attribution
// again.
func (r *Report) Evidence() []byte { return r.record }

// An Attribution is a counterfactual.Attribution as a report says it.
type Attribution struct {
	Tool      string                          `json:"tool"`
	Arguments []string                        `json:"arguments"` // critical ones, escaped and cut
	Class     counterfactual.AttributionClass `json:"class"`
	Response  counterfactual.Response         `json:"response"`
	Severity  int                             `json:"severity"` // thousandths
	Band      counterfactual.Band             `json:"band"`
	// Odds are of the weakest evidence that the class rests on, to 1; at most a million.
	Odds        float64                     `json:"odds"`
	Tampered    []string                    `json:"tampered,omitempty"`
	Causes      []Cause                     `json:"causes,omitempty"`
	Certificate *counterfactual.Certificate `json:"certificate,omitempty"`
	Contradicts bool                        `json:"contradictory,omitempty"`
	Drift       bool                        `json:"drift,omitempty"` // not all answers came of one model and fingerprint
	NotTested   []string                    `json:"not_tested,omitempty"`
}

// A Cause is a smallest set of segments that suffices, with the culprit's text.
type Cause struct {
	Segments []string `json:"segments"`
	Odds     float64  `json:"odds"`
	// Text is of one segment: the span that was found, or its beginning; escaped, cut.
	Text string `json:"text,omitempty"`
	Span bool   `json:"span"` // Text is the span that suffices
}

// A Segment is one piece of the context.
type Segment struct {
	ID        string                   `json:"id"`
	Source    string                   `json:"source"`
	Trust     int                      `json:"trust"` // thousandths
	Capsule   string                   `json:"capsule,omitempty"`
	From      []string                 `json:"from,omitempty"` // segments that it came of
	Bytes     int                      `json:"bytes"`
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

// Allows reports whether the answer may be carried out: every proposal, and no capsule is broken.
func (r *Report) Allows() bool { return r.Response == counterfactual.Allow && len(r.Breaches) == 0 }

// NewReport makes it of the outcome of a run.
func NewReport(q *Question, judge *counterfactual.Judge, r *counterfactual.Result) (*Report, error) {
	record, err := r.Record()
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	sum := sha256.Sum256(record)
	a := q.Assembly
	out := &Report{
		Assembly: a.ID(), Format: a.Format, Response: r.Response(), Spent: r.Spent, Stop: r.Stop, Rule: r.Rule,
		Repair: r.Repair, Record: "sha256:" + hex.EncodeToString(sum[:]), record: record, full: r.Problem().Full,
		metrics: r.Problem().Metrics, Embedding: q.embedding(),
	}
	if out.metrics == nil {
		out.metrics = counterfactual.MetricIDs(counterfactual.Metrics())
	}
	var causes counterfactual.Set
	for i := range r.Attributions {
		v := &r.Attributions[i]
		t := &judge.Targets[v.Target]
		act := Attribution{
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
		out.Attributions = append(out.Attributions, act)
	}
	from := make([][]string, len(a.Segments))
	for _, e := range a.Edges {
		if id := a.Segments[e.From].ID; !slices.Contains(from[e.To], id) {
			from[e.To] = append(from[e.To], id)
		}
	}
	for i := range a.Segments {
		s := &a.Segments[i]
		out.Segments = append(out.Segments, Segment{
			ID: s.ID, Source: s.Source.Label(), Trust: s.Trust, Capsule: s.Capsule, From: from[i], Bytes: len(s.Text), Digest: s.Digest.String(),
			Cause: causes.Has(i), Withheld: r.Withheld.Has(i), Influence: r.Influence[i],
		})
	}
	out.measure(r)
	out.compare(q.Null)
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

func newCause(a *counterfactual.Assembly, c counterfactual.Cause) Cause {
	out := Cause{Odds: odds(c.LogE)}
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
func (r *Report) measure(from *counterfactual.Result) {
	n := len(r.Segments)
	all := counterfactual.AllOf(n)
	for _, o := range from.Observations() {
		v := &o.Variant
		switch {
		case v.Span != counterfactual.Span{}:
		case v.MaskUser:
			r.Metrics = r.Metrics.with(r.metrics, "mask-user", o.Metrics)
		case v.Order != 0:
			r.Metrics = r.Metrics.with(r.metrics, "reorder", o.Metrics)
		case v.Weak != "" && v.Level != counterfactual.LevelPlain:
			r.single(v.Weak, fmt.Sprint("attenuate-", v.Level), o.Metrics)
		default:
			if v.Kept == all {
				r.Metrics = r.Metrics.with(r.metrics, "base", o.Metrics)
			}
			if v.Kept == "" {
				r.Metrics = r.Metrics.with(r.metrics, "withhold-all", o.Metrics)
			}
			r.single(all.Minus(v.Kept), "remove", o.Metrics)
			r.single(v.Kept, "keep-only", o.Metrics)
		}
	}
}

// single takes in what concerns a set of one segment.
func (r *Report) single(set counterfactual.Set, kind string, values []int) {
	if set.Len() == 1 {
		s := &r.Segments[set.List()[0]]
		s.Metrics = s.Metrics.with(r.metrics, kind, values)
	}
}

// with is d with the values of all metrics for one perturbation.
func (d divergences) with(metrics []string, kind string, values []int) divergences {
	if len(values) != len(metrics) {
		return d
	}
	if d == nil {
		d = divergences{}
	}
	if d[kind] == nil {
		d[kind] = map[string]int{}
	}
	for i, id := range metrics {
		if values[i] >= 0 {
			d[kind][id] = max(d[kind][id], values[i])
		}
	}
	return d
}

// compare adds the p-values of what was measured against the values between equal requests.
func (r *Report) compare(null map[string][]int) {
	add := func(prefix string, d divergences) {
		for kind, values := range d {
			for id, v := range values {
				if len(null[id]) == 0 {
					continue
				}
				if r.PValues == nil {
					r.PValues = map[string]map[string]float64{}
				}
				if r.PValues[prefix+kind] == nil {
					r.PValues[prefix+kind] = map[string]float64{}
				}
				r.PValues[prefix+kind][id] = float64(counterfactual.Conformal(null[id], v)) / 1e6
			}
		}
	}
	add("", r.Metrics)
	for i := range r.Segments {
		add(r.Segments[i].ID+" ", r.Segments[i].Metrics)
	}
}
