// SPDX-License-Identifier: Apache-2.0

package counterfactual

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// RecordVersion is the version of the record's format.
const RecordVersion = "ccr-evidence/2"

// A Result is what a Plan found out, complete or not.
type Result struct {
	Attributions []Attribution
	// Withheld is what has to be withheld for every attribution together.
	Withheld Set
	// Repair is an answer without what must not happen; nil if not found.
	Repair *Repair
	// Stop says why nothing more was asked.
	Stop      StopReason
	Spent     Spent
	Rule      Rule
	Influence []Influence // of each segment

	problem      Problem
	observations []Observation
	halted       StopReason
	out          Spent // of probes that never came back
}

// Influence is what was seen of one segment: in how many answers a target recurred
// while it was shown, and while it was not. It is for people; no attribution rests on it.
type Influence struct {
	Shown        int `json:"shown"`
	ShownRecurs  int `json:"shown_recurs"`
	Hidden       int `json:"hidden"`
	HiddenRecurs int `json:"hidden_recurs"`
	// Effect is the difference of the two rates in thousandths, each with one success
	// and one failure added.
	Effect int `json:"effect"`
}

// Response is the sternest response of all attributions.
func (r *Result) Response() Response {
	rank := map[Response]int{Allow: 0, Ask: 1, Hold: 2, Quarantine: 3}
	worst := Allow
	for i := range r.Attributions {
		if rank[r.Attributions[i].Response] > rank[worst] {
			worst = r.Attributions[i].Response
		}
	}
	return worst
}

// Problem is what the result is about.
func (r *Result) Problem() Problem { return r.problem }

// Observations are the answers it rests on, in the order of their arrival.
func (r *Result) Observations() []Observation { return r.observations }

// Result is what follows from the answers until now. It is valid at any time; what
// was not tested is named.
func (p *Plan) Result() *Result {
	c := p.decide(true)
	stop := cmp.Or(c.stop, StopDone)
	r := &Result{
		Attributions: c.verdicts, Withheld: c.withheld, Repair: c.repair, Stop: stop, Spent: p.spent,
		Rule: p.problem.Rule, problem: p.problem, observations: p.log, halted: p.stop,
	}
	if p.drift {
		r.Rule = r.Rule.stricter(uncalibratedRule)
	}
	for _, e := range p.memo {
		if e.obs == nil {
			r.out.Calls++
			r.out.Tokens += e.bound
		}
	}
	r.Influence = p.influence(c.verdicts)
	return r
}

// influence counts over the targets that are not the user's own, or over all if
// there are none.
func (p *Plan) influence(verdicts []Attribution) []Influence {
	var targets []int
	for t := range verdicts {
		if c := verdicts[t].Class; c != UserDriven {
			targets = append(targets, t)
		}
	}
	if targets == nil {
		for t := range verdicts {
			targets = append(targets, t)
		}
	}
	out := make([]Influence, len(p.problem.Segments))
	for k := range p.log {
		o := &p.log[k]
		v := o.Variant.same()
		v.Kept = shown(v.Kept, p.parent)
		if o.Failure != FailNone || v != (Variant{Kept: v.Kept}) {
			continue
		}
		recurs := 0
		for _, t := range targets {
			if o.Recurrences[t].Recurs {
				recurs = 1
			}
		}
		for i := range out {
			if v.Kept.Has(i) {
				out[i].Shown++
				out[i].ShownRecurs += recurs
			} else {
				out[i].Hidden++
				out[i].HiddenRecurs += recurs
			}
		}
	}
	for i := range out {
		f := &out[i]
		f.Effect = 1000*(f.ShownRecurs+1)/(f.Shown+2) - 1000*(f.HiddenRecurs+1)/(f.Hidden+2)
	}
	return out
}

// record is a Result as it is written.
type record struct {
	Version      string        `json:"version"`
	Transform    string        `json:"transform"`
	Problem      Problem       `json:"problem"`
	Observations []Observation `json:"observations"`
	Halted       StopReason    `json:"halted,omitempty"`
	Out          Spent         `json:"out,omitzero"`
	Conclusion   conclusions   `json:"conclusion"`
}

// conclusions is what follows from the rest of a record.
type conclusions struct {
	Stop      StopReason    `json:"stop"`
	Spent     Spent         `json:"spent"`
	Rule      Rule          `json:"rule"`
	Response  Response      `json:"response"`
	Verdicts  []Attribution `json:"verdicts"`
	Withheld  Set           `json:"withheld"`
	Repair    *Repair       `json:"repair,omitempty"`
	Influence []Influence   `json:"influence"`
}

// Record is the evidence: canonical JSON (RFC 8785) that holds no text of a third
// party, only digests, labels and numbers. It is the same bytes for the same
// answers.
func (r *Result) Record() ([]byte, error) {
	rec := record{
		Version: RecordVersion, Transform: TransformVersion, Problem: r.problem,
		Observations: r.observations, Halted: r.halted, Out: r.out,
		Conclusion: conclusions{
			Stop: r.Stop, Spent: r.Spent, Rule: r.Rule, Response: r.Response(),
			Verdicts: r.Attributions, Withheld: r.Withheld, Repair: r.Repair, Influence: r.Influence,
		},
	}
	return canonicalJSON(rec)
}

// canonicalJSON is v in the form of RFC 8785.
func canonicalJSON(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err == nil {
		b, err = strictjson.Canonical(nil, b, strictjson.Limits{})
	}
	if err != nil {
		return nil, fmt.Errorf("counterfactual: write record: %w", err)
	}
	return b, nil
}

// errReplay means that a record is well-formed and its conclusion does not follow
// from its observations.
var errReplay = errors.New("counterfactual: replay: the conclusion does not follow from the observations")

// Replay derives the attribution of a record again from its problem and its
// observations, with no model, and checks that it comes out byte for byte.
func Replay(b []byte) (*Result, error) {
	var rec record
	if err := strictjson.Unmarshal(b, &rec, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("counterfactual: replay: %w", err)
	}
	if rec.Version != RecordVersion || rec.Transform != TransformVersion {
		return nil, errors.New("counterfactual: replay: another version of the format")
	}
	p, err := NewPlan(rec.Problem)
	if err != nil {
		return nil, fmt.Errorf("counterfactual: replay: %w", err)
	}
	if err := p.restore(&rec); err != nil {
		return nil, err
	}
	r := p.Result()
	r.out = rec.Out
	again, err := r.Record()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(again, b) {
		return nil, errReplay
	}
	return r, nil
}

func (p *Plan) restore(rec *record) error {
	bad := errors.New("counterfactual: replay: an observation is not possible")
	p.stop = rec.Halted
	if rec.Out.Calls < 0 || rec.Out.Tokens < 0 || rec.Out.Tokens > maxCount*4 || rec.Out.Calls > 1<<20 {
		return bad
	}
	p.spent.Calls, p.spent.Tokens = rec.Out.Calls, rec.Out.Tokens
	for _, o := range rec.Observations {
		q := p.question(o.Variant, o.Replicate)
		if p.memo[q] != nil || o.Replicate < 0 || o.Tokens < 0 || o.Tokens > maxCount || !p.fits(o.Variant) {
			return bad
		}
		e := &entry{bound: o.Tokens}
		p.memo[q] = e
		p.spent.Calls++
		p.spent.Tokens += o.Tokens
		p.keep(e, o)
	}
	return nil
}

// fits reports whether v can be a variant of the plan's assembly.
func (p *Plan) fits(v Variant) bool {
	n := len(p.problem.Segments)
	all := AllOf(n)
	if !all.Contains(v.Kept) || !all.Contains(v.Weak) || v.Level > LevelWithheld {
		return false
	}
	if v.Span == (Span{}) {
		return true
	}
	return v.Span.Segment >= 0 && v.Span.Segment < n && 0 <= v.Span.Start && v.Span.Start < v.Span.End &&
		v.Span.End <= p.problem.Segments[v.Span.Segment].Bytes
}
