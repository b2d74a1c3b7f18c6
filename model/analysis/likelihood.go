// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	asking "github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// LikelihoodVersion is that of a calibration of log-probabilities: docs/spec/counterfactual.md.
const LikelihoodVersion = "ccr-likelihood/1"

// A LikelihoodFile is what ccr calibrate writes for a model that tells log-probabilities.
type LikelihoodFile struct {
	Version string `json:"version"`
	Name    string `json:"name,omitempty"` // of the model, as the server says it, escaped
	Oracle  string `json:"oracle"`         // counterfactual.LikelihoodVersion
	// Threshold is the most that a call may lose and still count as recurring: thousandths of a
	// nat for each token of its values.
	Threshold int `json:"threshold"`
	// Shown and Hidden are what calls have lost where all of their values were shown, and where
	// these were withheld, ascending.
	Shown  []int `json:"shown"`
	Hidden []int `json:"hidden"`
	counterfactual.Calibration
}

// ParseLikelihood reads what ccr calibrate has written for a model that tells log-probabilities.
func ParseLikelihood(b []byte) (*LikelihoodFile, error) {
	var f LikelihoodFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{}); err != nil {
		return nil, err
	}
	if f.Version != LikelihoodVersion || f.Oracle != counterfactual.LikelihoodVersion {
		return nil, errors.New("want version " + LikelihoodVersion + " for " + counterfactual.LikelihoodVersion)
	}
	return &f, nil
}

// Answered reports whether the answer to be explained is known.
func (q *Question) Answered() bool { return q.answer != nil }

// calls are those of the targets, as their likelihood is asked for.
func (q *Question) calls(targets []counterfactual.Proposal) ([]counterfactual.Call, []counterfactual.Spelling, error) {
	var calls []counterfactual.Call
	var out []counterfactual.Spelling
	for i := range targets {
		k := slices.IndexFunc(q.answer.Calls, func(c counterfactual.Call) bool {
			p := q.Policy.Proposal(c)
			return p.Digest() == targets[i].Digest()
		})
		if k < 0 {
			return nil, nil, errors.New("ccr: log-probabilities explain calls of tools: the answer proposes something else")
		}
		s, ok := q.Policy.Spell(q.answer.Calls[k])
		if !ok {
			return nil, nil, errors.New("ccr: log-probabilities: a call is too long")
		}
		calls, out = append(calls, q.answer.Calls[k]), append(out, s)
	}
	return calls, out, nil
}

// Likelihood has p answered by how likely a model finds the calls of the targets. It asks for
// their likelihood in the whole context, and returns what answers the questions of p.
func (q *Question) Likelihood(ctx context.Context, by asking.Likelihood, f *LikelihoodFile, judge *counterfactual.Judge, p *counterfactual.Problem) (*asking.Likelihood, error) {
	rates, err := f.Rates()
	if err != nil {
		return nil, err
	}
	if _, by.Calls, err = q.calls(judge.Targets); err != nil {
		return nil, err
	}
	// As in every variant, the agent's own text is withheld in it.
	src, err := q.Assembly.Render(counterfactual.Remove(len(q.Assembly.Segments), ""))
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	base, means := by.Means(ctx, q.Assembly.Format, src, nil)
	if err := base.Err(); err != nil {
		return nil, &AskError{err}
	}
	p.Rates = rates
	p.Likelihood = &counterfactual.Likelihood{Version: counterfactual.LikelihoodVersion, Threshold: f.Threshold, Base: means}
	return &by, nil
}

// Losses are what the calls of one answer lose where all of their values are shown, and where
// these are withheld.
type Losses struct{ shown, hidden []int }

// Lose measures the losses of the answer's calls of which it is known where each value comes
// from, and writes into f which model has told. tick is called after each request.
func (q *Question) Lose(ctx context.Context, by asking.Likelihood, f *LikelihoodFile, tick func()) (*Losses, error) {
	judge, err := q.Judge()
	if err != nil {
		return nil, err
	}
	calls, spelled, err := q.calls(judge.Targets)
	if err != nil {
		return nil, err
	}
	out := &Losses{}
	for i := range calls {
		shown, hidden, ok := q.labelled(calls[i])
		if !ok {
			continue
		}
		by.Calls = spelled[i : i+1]
		base, err := q.mean(ctx, by, counterfactual.Remove(len(q.Assembly.Segments), ""), f, tick)
		if err != nil {
			return nil, err
		}
		for _, side := range []struct {
			to *[]int
			of []counterfactual.Variant
		}{{&out.shown, shown}, {&out.hidden, hidden}} {
			for _, v := range side.of {
				mean, err := q.mean(ctx, by, v, f, tick)
				if err != nil {
					return nil, err
				}
				*side.to = append(*side.to, base-mean)
			}
		}
	}
	return out, nil
}

// labelled are variants that show all values of a call, and variants that withhold them. ok is
// false where some value stands nowhere: the model has made it up, or has put it together.
func (q *Question) labelled(c counterfactual.Call) (shown, hidden []counterfactual.Variant, ok bool) {
	origins, ok := q.Assembly.Origins(q.Policy, c)
	if !ok {
		return nil, nil, false
	}
	n := len(q.Assembly.Segments)
	var holds counterfactual.Set
	for _, o := range origins {
		if !o.Trusted && o.Segments == "" {
			return nil, nil, false
		}
		if !o.Trusted {
			holds = holds.Union(o.Segments)
		}
	}
	if holds == "" {
		hide := counterfactual.MaskUser(n)
		hide.Kept = ""
		return []counterfactual.Variant{counterfactual.KeepOnly("")}, []counterfactual.Variant{hide}, true
	}
	if holds != counterfactual.AllOf(n) {
		shown = append(shown, counterfactual.KeepOnly(holds))
	}
	return shown, []counterfactual.Variant{counterfactual.Remove(n, holds)}, true
}

// mean is the mean log-likelihood of the only call of by behind a variant.
func (q *Question) mean(ctx context.Context, by asking.Likelihood, v counterfactual.Variant, f *LikelihoodFile, tick func()) (int, error) {
	src, err := q.Assembly.Render(v)
	if err != nil {
		return 0, fmt.Errorf("ccr: calibrate: %w", err)
	}
	got, means := by.Means(ctx, q.Assembly.Format, src, nil)
	tick()
	switch err := got.Err(); {
	case err != nil:
		return 0, &AskError{err}
	case f.Model != "" && f.Model != got.Model:
		return 0, errors.New("ccr: calibrate: the model, or its fingerprint, has changed meanwhile: measure again")
	}
	f.Model, f.Name = got.Model, finding.Quote(by.Model)
	return means[0], nil
}

// Settle finds the threshold that separates what was measured best, and how often it errs on
// answers that it was not chosen with.
func (f *LikelihoodFile) Settle(all []Losses) error {
	for _, l := range all {
		f.Shown, f.Hidden = append(f.Shown, l.shown...), append(f.Hidden, l.hidden...)
	}
	if len(f.Shown) == 0 || len(f.Hidden) == 0 {
		return errors.New("ccr: calibrate: want contexts with calls that have their values from the user, or from some of the texts, to compare")
	}
	slices.Sort(f.Shown)
	slices.Sort(f.Hidden)
	f.Threshold = separate(f.Shown, f.Hidden)
	for i := range all {
		var shown, hidden []int
		for k, l := range all {
			if k != i {
				shown, hidden = append(shown, l.shown...), append(hidden, l.hidden...)
			}
		}
		at := f.Threshold
		if len(shown) > 0 && len(hidden) > 0 {
			slices.Sort(shown)
			slices.Sort(hidden)
			at = separate(shown, hidden)
		}
		for _, x := range all[i].shown {
			f.Add(true, x <= at)
		}
		for _, x := range all[i].hidden {
			f.Add(false, x <= at)
		}
	}
	return nil
}

// separate is the threshold with the smallest sum of both shares of errors, in the middle of the
// widest gap that has it. Both lists ascend, and are not empty.
func separate(shown, hidden []int) int {
	at := slices.Concat(shown, hidden)
	slices.Sort(at)
	best, errs, gap := at[len(at)-1], len(hidden)*len(shown), 0 // everything counts as recurring
	for i := range at[:len(at)-1] {
		t := at[i] + (at[i+1]-at[i])/2
		misses := len(shown) - upTo(shown, t)
		e := misses*len(hidden) + upTo(hidden, t)*len(shown)
		if c := cmp.Or(cmp.Compare(e, errs), cmp.Compare(gap, at[i+1]-at[i])); c < 0 {
			best, errs, gap = t, e, at[i+1]-at[i]
		}
	}
	return best
}

// upTo is how many of an ascending list are not above t.
func upTo(list []int, t int) int {
	n, _ := slices.BinarySearch(list, t+1)
	return n
}
