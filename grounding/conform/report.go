// SPDX-License-Identifier: Apache-2.0

package conform

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/pellucid-mcp/pellucid/grounding/corpus"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// A Fault is what an adapter did other than the corpus expects: a clause of the
// RFC and constant text.
type Fault struct {
	Clause string `json:"clause"`
	What   string `json:"what"`
}

// A Result is the outcome of one vector.
type Result struct {
	ID      string   `json:"id"`
	Family  string   `json:"family"`
	Clauses []string `json:"clauses"`
	Level   string   `json:"level"`
	Status  string   `json:"status"` // pass, fail or skip
	Why     string   `json:"why,omitempty"`
	Faults  []Fault  `json:"faults,omitempty"`
	Notes   []string `json:"notes,omitempty"`

	judged  []string // clauses that the answer was judged by
	version string
}

func (t *trial) result() Result {
	r := Result{
		ID: t.vector.ID(), Family: t.vector.Family, Clauses: t.vector.Clauses, Level: t.vector.Level(),
		Status: "pass", Why: t.skip, Faults: t.faults, Notes: t.notes, version: t.version,
	}
	switch {
	case t.skip != "":
		r.Status = "skip"
	case len(t.faults) > 0:
		r.Status = "fail"
	}
	for i, c := range corpus.Clauses {
		if t.checked[i] || slices.Contains(t.vector.Clauses, c) {
			r.judged = append(r.judged, c)
		}
	}
	return r
}

// A Progress counts results while a Runner runs.
type Progress struct{ run, failed atomic.Int64 }

// Add counts a result, and returns how many there are.
func (p *Progress) Add(r *Result) int64 {
	if r.Status == "fail" {
		p.failed.Add(1)
	}
	return p.run.Add(1)
}

// String tells a person how far the Runner is. It may be called at any time.
func (p *Progress) String() string {
	return fmt.Sprintf("%s, %d failed", terminal.Plural(int(p.run.Load()), "vector"), p.failed.Load())
}

// look notes that the answer was judged by these clauses.
func (t *trial) look(clauses ...string) {
	for _, c := range clauses {
		t.checked[slices.Index(corpus.Clauses, c)] = true
	}
}

const numClauses = 11 // len(corpus.Clauses), which a test holds

// A Tally counts the vectors of a family, or those judged by a clause.
type Tally struct {
	Name         string `json:"name"`
	Must         int    `json:"must"`
	MustPassed   int    `json:"must_passed"`
	Should       int    `json:"should"`
	ShouldPassed int    `json:"should_passed"`
}

func (t *Tally) count(must, passed bool) {
	n, p := &t.Should, &t.ShouldPassed
	if must {
		n, p = &t.Must, &t.MustPassed
	}
	*n++
	if passed {
		*p++
	}
}

// A Requirement is one line of RFC 8.1's list.
type Requirement struct {
	Text string `json:"text"`
	Met  bool   `json:"met"`
	Must int    `json:"must"`   // vectors it rests on
	Fail int    `json:"failed"` // … that failed
}

// A Report is the score of one adapter. Nothing in it is third-party text.
type Report struct {
	Corpus       string        `json:"corpus_version"`
	Scope        string        `json:"scope"`
	Policy       Confusables   `json:"policy"`
	Conforms     bool          `json:"conforms"` // every MUST vector passed
	Passed       int           `json:"passed"`
	Failed       int           `json:"failed"` // of both levels
	Skipped      int           `json:"skipped"`
	Requirements []Requirement `json:"requirements"`
	Families     []Tally       `json:"families"`
	Clauses      []Tally       `json:"clauses"`
	Deviations   []Deviation   `json:"deviations"`
	Vectors      []Result      `json:"vectors"`
}

func (r *Report) add(res Result) { r.Vectors = append(r.Vectors, res) }

// finish counts.
func (r *Report) finish() {
	r.Conforms = true
	for _, f := range corpus.Families {
		r.Families = append(r.Families, Tally{Name: f})
	}
	for _, c := range corpus.Clauses {
		r.Clauses = append(r.Clauses, Tally{Name: c})
	}
	for i := range r.Vectors {
		v := &r.Vectors[i]
		passed, must := v.Status == "pass", v.Level == "MUST"
		switch v.Status {
		case "skip":
			r.Skipped++
			continue
		case "pass":
			r.Passed++
		default:
			r.Failed++
			r.Conforms = r.Conforms && !must
		}
		r.Families[slices.Index(corpus.Families, v.Family)].count(must, passed)
		for _, c := range v.judged {
			own := !slices.ContainsFunc(v.Faults, func(f Fault) bool { return f.Clause == c })
			r.Clauses[slices.Index(corpus.Clauses, c)].count(must, own && (passed || !slices.Contains(v.Clauses, c)))
		}
	}
	r.Conforms = r.Conforms && r.Passed > 0
	r.Deviations = r.deviations()
	for _, h := range head {
		r.Requirements = append(r.Requirements, r.require(h))
	}
}

func (r *Report) require(h requirement) Requirement {
	q := Requirement{Text: h.text}
	for i := range r.Vectors {
		v := &r.Vectors[i]
		judged := len(h.clauses) == 0 || slices.ContainsFunc(v.judged, func(c string) bool { return slices.Contains(h.clauses, c) })
		if v.Status == "skip" || v.Level != "MUST" || !judged {
			continue
		}
		q.Must++
		if h.fails != nil && h.fails(v) || h.fails == nil && v.faulty(h.clauses) {
			q.Fail++
		}
	}
	q.Met = q.Must > 0 && q.Fail == 0
	return q
}

// deviations lists the faults with the number of vectors each occurred in, the
// commonest first.
func (r *Report) deviations() []Deviation {
	all := []Deviation{}
	for _, v := range r.Vectors {
		for _, f := range v.Faults {
			i := slices.IndexFunc(all, func(d Deviation) bool { return d.Fault == f && d.Level == v.Level })
			if i < 0 {
				i, all = len(all), append(all, Deviation{Fault: f, Level: v.Level, Example: v.ID})
			}
			all[i].Vectors++
		}
	}
	slices.SortStableFunc(all, func(a, b Deviation) int { return b.Vectors - a.Vectors })
	return all
}

// A Deviation is a Fault and how often it occurred.
type Deviation struct {
	Fault
	Level   string `json:"level"`
	Vectors int    `json:"vectors"`
	Example string `json:"example"` // ID of a vector
}

// WriteText writes the report for people: RFC 8.1's list first.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	verdict := "does not conform"
	if r.Conforms {
		verdict = "conforms"
	}
	fmt.Fprintf(&b, "The adapter %s: %d vectors passed, %d failed, %d not meant for it (corpus %s, scope %s, policy %s).\n\n",
		verdict, r.Passed, r.Failed, r.Skipped, r.Corpus, r.Scope, r.Policy)
	for _, q := range r.Requirements {
		mark := "no "
		if q.Met {
			mark = "yes"
		}
		fmt.Fprintf(&b, "  %s  %s (%d of %d)\n", mark, q.Text, q.Must-q.Fail, q.Must)
	}
	writeTallies(&b, "family", r.Families)
	writeTallies(&b, "clause", r.Clauses)
	if len(r.Deviations) > 0 {
		b.WriteString("\ndeviations\n")
		for _, d := range r.Deviations {
			fmt.Fprintf(&b, "  %-6s %-4s %4d  %s (%s)\n", d.Level, d.Clause, d.Vectors, d.What, d.Example)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeTallies(b *strings.Builder, name string, ts []Tally) {
	fmt.Fprintf(b, "\n%-20s %13s %13s\n", name, "MUST", "SHOULD")
	for _, t := range ts {
		fmt.Fprintf(b, "%-20s %13s %13s\n", t.Name, rate(t.MustPassed, t.Must), rate(t.ShouldPassed, t.Should))
	}
}

func rate(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d", n, of)
}
