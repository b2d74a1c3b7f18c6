// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Likelihood answers the questions of a plan with how likely a model finds the calls of its
// targets. It asks one request for each call.
type Likelihood struct {
	Scorer *llm.Scorer
	Calls  []counterfactual.Spelling // in the targets' order
	// Model is the name of the model, where a server does not say it.
	Model string
}

// requests is how many one question of a plan takes.
func (l *Likelihood) requests() int64 {
	if l == nil {
		return 1
	}
	return int64(len(l.Calls))
}

// Means are the mean log-likelihoods of the tokens of the calls' values behind a rendered variant,
// in thousandths of a nat; none where the first value says why.
func (l *Likelihood) Means(ctx context.Context, f format.Name, src []byte, budget *llm.Budget) (a Answered, means []int) {
	prompt, err := counterfactual.Transcript(f, src)
	if err != nil {
		a.Failure = counterfactual.FailRejected
		return a, nil
	}
	var requests, answers []byte
	for _, call := range l.Calls {
		s, err := l.Scorer.Score(ctx, prompt, call.Text, budget)
		if err != nil {
			attempts := a.Attempts
			a.failed(ctx, err)
			a.Attempts += attempts
			return a, nil
		}
		a.Attempts += s.Attempts
		if s.Usage.Known {
			a.Tokens, a.Cached = a.Tokens+s.Usage.Input+s.Usage.Output, a.Cached+s.Usage.Cached
		}
		requests, answers = append(requests, s.Request...), append(answers, s.Answer...)
		name := s.Model
		if name == "" {
			name = l.Model
		}
		a.Model = counterfactual.ModelDigest(name, s.Fingerprint)
		mean, ok := s.Mean(func(start, end int) bool {
			return slices.ContainsFunc(call.Values, func(r counterfactual.Range) bool { return start < r.End && end > r.Start })
		})
		if !ok {
			a.Failure = counterfactual.FailBroken
			return a, nil
		}
		means = append(means, int(math.Round(1000*mean)))
	}
	a.Request, a.Response = digest(requests), digest(answers)
	return a, means
}

// Err says why there are no means; nil if there are.
func (a *Answered) Err() error {
	if a.Failure == counterfactual.FailNone {
		return nil
	}
	return errors.New("run: " + string(a.Failure))
}
