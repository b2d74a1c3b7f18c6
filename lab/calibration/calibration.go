// SPDX-License-Identifier: Apache-2.0

// Package calibration measures how reliably a model repeats its own tool calls.
package calibration

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ErrNoAnswer says that the model has not answered.
var ErrNoAnswer = errors.New("calibrate: the model has not answered")

// Answers are the answers to one context.
type Answers struct {
	policy *counterfactual.Privileges
	list   []*counterfactual.Answer
}

// Ask asks for n answers to the context as it is, and writes into f which model has
// answered. tick is called after each answer.
func Ask(ctx context.Context, client llm.Client, q *analysis.Question, n int, f *analysis.CalibrationFile, tick func()) (*Answers, error) {
	all := &Answers{policy: q.Policy}
	raw, _, err := run.Question(q.Assembly.Format, q.Assembly.Source(), 0)
	if err != nil {
		return nil, fmt.Errorf("calibrate: %w", err)
	}
	for range n {
		r, err := client.Complete(ctx, llm.Request{Raw: raw})
		tick()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
		}
		answer, err := counterfactual.ParseAnswer(q.Assembly.Format, r.Answer)
		if err != nil {
			return nil, fmt.Errorf("calibrate: %w", err)
		}
		model := counterfactual.ModelDigest(r.Model, r.Fingerprint)
		if f.Model != "" && f.Model != model {
			return nil, errors.New("calibrate: the model, or its fingerprint, has changed meanwhile: measure again")
		}
		f.Model, f.Name = model, finding.Quote(r.Model)
		all.list = append(all.list, answer)
	}
	return all, nil
}

// Count adds to cal which proposals recur: in another answer to the same context, and in the
// answers to other contexts.
func Count(cal *counterfactual.Calibration, all []Answers) {
	metrics := counterfactual.Metrics()
	for i, one := range all {
		for j, a := range one.list {
			targets := one.policy.Targets(a)
			// Each answer beside the next one: all pairs of a few answers would count the
			// same luck several times.
			next := one.list[(j+1)%len(one.list)]
			for t := range targets {
				cal.Add(true, recursIn(&targets[t], one.policy, next))
			}
			for _, b := range one.list[j+1:] {
				for _, m := range metrics {
					addNull(cal, m.ID, m.Divergence(one.policy, a, b))
				}
			}
			for other := range all {
				if other == i {
					continue
				}
				for t := range targets {
					cal.Add(false, recursIn(&targets[t], one.policy, all[other].list[j]))
				}
			}
		}
	}
}

// addNull records the value of a metric between two answers to the same request. A negative
// value was not measured.
func addNull(cal *counterfactual.Calibration, metric string, value int) {
	if value < 0 {
		return
	}
	if cal.Null == nil {
		cal.Null = map[string][]int{}
	}
	list := cal.Null[metric]
	at, _ := slices.BinarySearch(list, value)
	cal.Null[metric] = slices.Insert(list, at, value)
}

func recursIn(target *counterfactual.Proposal, p *counterfactual.Privileges, a *counterfactual.Answer) bool {
	for _, x := range p.Proposals(a) {
		if counterfactual.Recurs(target, &x, counterfactual.DefaultTheta) {
			return true
		}
	}
	return false
}
