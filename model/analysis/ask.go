// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	asking "github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// An AskError says that the model has not answered.
type AskError struct{ err error }

func (e *AskError) Error() string { return "ccr: ask: " + e.err.Error() }
func (e *AskError) Unwrap() error { return e.err }

// Base asks for the answer to be explained where it was not given.
func (q *Question) Base(ctx context.Context, client llm.Client) error {
	if q.answer != nil {
		return nil
	}
	r, err := ask(ctx, client, q.Assembly, q.Assembly.Source())
	if err == nil {
		q.answer = r.answer
	}
	return err
}

// A reply is one answer of the model, with who gave it.
type reply struct {
	answer *counterfactual.Answer
	model  string // ModelDigest
	name   string // third-party text
	tokens int64  // 0 = not known
}

// ask puts one request. Where the model does not answer, the error is an AskError.
func ask(ctx context.Context, client llm.Client, a *counterfactual.Assembly, src []byte) (*reply, error) {
	raw, _, err := asking.Question(a.Format, src, 0)
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	r, err := client.Complete(ctx, llm.Request{Raw: raw})
	if err != nil {
		return nil, &AskError{err}
	}
	answer, err := counterfactual.ParseAnswer(a.Format, r.Answer)
	if err != nil {
		return nil, fmt.Errorf("ccr: ask: %w", err)
	}
	out := &reply{answer: answer, model: counterfactual.ModelDigest(r.Model, r.Fingerprint), name: r.Model}
	if r.Usage.Known {
		out.tokens = r.Usage.Input + r.Usage.Output
	}
	return out, nil
}

// ErrNothing says that an answer has nothing to be explained.
var ErrNothing = errors.New("ccr: the answer proposes nothing that needs an explanation: see --privileged")

// Judge compares answers with the one to be explained.
func (q *Question) Judge() (*counterfactual.Judge, error) {
	targets := q.Policy.Targets(q.answer)
	if len(targets) == 0 {
		return nil, ErrNothing
	}
	trusted := q.Assembly.Task + "\n" + q.Assembly.Instructions
	policy := *q.Policy
	policy.Ruling = func(c counterfactual.Call) string {
		if p := policy.Proposal(c); p.Privilege > 0 && p.GivenIn(trusted) {
			return "stated"
		}
		return ""
	}
	return &counterfactual.Judge{Policy: &policy, Targets: targets, Base: q.answer, Trusted: trusted, Metrics: q.metrics()}, nil
}

// A Budget is what an analysis may cost. The zero value is the default of each.
type Budget struct {
	Full        bool // ask for every segment under every perturbation as well
	Calls       int
	Tokens      int64
	Time        time.Duration
	Concurrency int
	Seed        uint64
	Strategy    counterfactual.Strategy
	Severity    counterfactual.Bands  // zero: the usual ones
	Rates       *counterfactual.Rates // of the model; nil: not measured
}

// Problem is what is to be found out, within b.
func (q *Question) Problem(judge *counterfactual.Judge, b Budget) counterfactual.Problem {
	p := q.Assembly.Problem(judge.Targets, 0)
	calls, times := 12, int64(3)
	if b.Full {
		calls, times = 200, 100
		p.Full = true
	}
	p.Refine = true // after the attribution and its certificate, if calls are left
	p.Seed, p.Strategy, p.Severity = b.Seed, b.Strategy, b.Severity
	p.Budget.Calls, p.Budget.Tokens = b.Calls, b.Tokens
	if b.Calls == 0 {
		p.Budget.Calls = calls
	}
	p.Budget.AnswerTokens = answerTokens
	if b.Tokens == 0 {
		p.Budget.Tokens = times * (p.Budget.BaseTokens + int64(p.Budget.Calls)*answerTokens/times)
	}
	p.Budget.Millis, p.Budget.Concurrency = b.Time.Milliseconds(), max(b.Concurrency, 1)
	if q.meaning != nil {
		p.Metrics = counterfactual.MetricIDs(judge.Metrics)
	}
	if b.Rates != nil {
		p.Rates = *b.Rates
	}
	return p
}

// answerTokens bounds one answer: a tool call is short, and only that is compared.
const answerTokens = 4096
