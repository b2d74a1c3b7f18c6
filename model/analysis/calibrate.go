// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// CalibrationVersion is that of docs/spec/counterfactual.md, "Calibration files".
const CalibrationVersion = "ccr-calibration/1"

// A CalibrationFile is what ccr calibrate writes.
type CalibrationFile struct {
	Version string `json:"version"`
	Name    string `json:"name,omitempty"` // of the model, as the provider says it, escaped
	counterfactual.Calibration
}

// ParseCalibration reads what ccr calibrate has written.
func ParseCalibration(b []byte) (*counterfactual.Calibration, error) {
	var f CalibrationFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{}); err != nil {
		return nil, err
	}
	if f.Version != CalibrationVersion {
		return nil, errors.New("want version " + CalibrationVersion)
	}
	return &f.Calibration, nil
}

// Answers are those to one context.
type Answers struct {
	policy *counterfactual.Privileges
	list   []*counterfactual.Answer
}

// Repeat asks for n answers to the context as it is, and writes into f which model has
// answered. tick is called after each answer.
func (q *Question) Repeat(ctx context.Context, client llm.Client, n int, f *CalibrationFile, tick func()) (*Answers, error) {
	one := &Answers{policy: q.policy}
	for range n {
		r, err := ask(ctx, client, q.Assembly, q.Assembly.Source())
		tick()
		if err == nil && f.Model != "" && f.Model != r.model {
			err = errors.New("ccr: calibrate: the model, or its fingerprint, has changed meanwhile: measure again")
		}
		if err != nil {
			return nil, err
		}
		f.Model, f.Name = r.model, finding.Quote(r.name)
		one.list = append(one.list, r.answer)
	}
	return one, nil
}

// Tally adds what recurs where to cal.
func Tally(cal *counterfactual.Calibration, all []Answers) {
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
			for k, b := range one.list {
				if k > j {
					var values []int
					for _, m := range metrics {
						values = append(values, m.Divergence(one.policy, a, b))
					}
					cal.AddNull(metrics, values)
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

func recursIn(target *counterfactual.Proposal, p *counterfactual.Privileges, a *counterfactual.Answer) bool {
	for _, x := range p.Proposals(a) {
		if counterfactual.Recurs(target, &x, counterfactual.DefaultTheta) {
			return true
		}
	}
	return false
}
