// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Variant is a request that has been rendered, and what may be spent on its answer.
type Variant struct {
	Format format.Name
	Source []byte // as Question takes it
	Answer int64  // tokens, as Question takes it
	Bound  int64  // tokens of the request and the answer, at most; 0: not known
	Path   string // where it is asked: see llm.Request
	Header http.Header
	Budget *llm.Budget
}

// An Answered is what came of a request. Where Failure is set, there is no answer.
type Answered struct {
	Failure  counterfactual.Failure
	Stop     counterfactual.StopReason // a ceiling that was found only on the way
	Said     *counterfactual.Answer
	Body     []byte
	Request  string // digest of its bytes
	Response string // the same of the answer
	Model    string // digest of the model and fingerprint that answered
	Tokens   int64  // uncached; 0: not known
	Cached   int64
	Attempts int
}

// Ask sends one request. An answer that was cut off does not say what the model would have
// done, and is a failure.
func Ask(ctx context.Context, client llm.Client, v *Variant) (a Answered) {
	raw, output, err := Question(v.Format, v.Source, v.Answer)
	if err != nil {
		a.Failure = counterfactual.FailRejected
		return a
	}
	a.Request = digest(raw)
	req := llm.Request{Raw: raw, Path: v.Path, Header: v.Header, Budgets: []*llm.Budget{v.Budget}}
	if in := v.Bound - output; in > 0 {
		req.InputTokens = int(in)
	}
	a.complete(ctx, client, req, func(body []byte, _ *llm.Response) (*counterfactual.Answer, error) {
		return counterfactual.ParseAnswer(v.Format, body)
	})
	return a
}

// Request is Ask for a request that the client writes itself. Of its answer the text counts.
func Request(ctx context.Context, client llm.Client, req llm.Request) (a Answered) {
	a.complete(ctx, client, req, func(_ []byte, r *llm.Response) (*counterfactual.Answer, error) {
		return &counterfactual.Answer{Text: r.Text, Refusal: r.Refusal}, nil
	})
	return a
}

func (a *Answered) complete(ctx context.Context, client llm.Client, req llm.Request, read func([]byte, *llm.Response) (*counterfactual.Answer, error)) {
	r, err := client.Complete(ctx, req)
	a.Attempts = r.Attempts
	if err != nil {
		a.failed(ctx, err)
		return
	}
	if a.Response = digest(r.Answer); a.Request == "" {
		a.Request = digest(r.Request)
	}
	if r.Usage.Known {
		a.Tokens, a.Cached = r.Usage.Input+r.Usage.Output, r.Usage.Cached
	}
	said, err := read(r.Answer, &r)
	if err != nil || r.Stop == format.StopLength || r.Stop == format.StopPause {
		a.Failure = counterfactual.FailBroken
		return
	}
	a.Said, a.Body, a.Model = said, r.Answer, counterfactual.ModelDigest(r.Model, r.Fingerprint)
}

// failures are what llm's codes are to a plan.
var failures = map[llm.Code]counterfactual.Failure{
	llm.CodeRequest: counterfactual.FailRejected, llm.CodeKey: counterfactual.FailDenied, llm.CodeRejected: counterfactual.FailRejected,
	llm.CodeUnauthorized: counterfactual.FailDenied, llm.CodeContext: counterfactual.FailRejected, llm.CodeFiltered: counterfactual.FailRejected,
	llm.CodeRateLimited: counterfactual.FailLimited, llm.CodeQuota: counterfactual.FailLimited, llm.CodeCircuitOpen: counterfactual.FailLimited,
	llm.CodeTimeout: counterfactual.FailTimeout, llm.CodeUnreachable: counterfactual.FailServer, llm.CodeCertificate: counterfactual.FailServer,
	llm.CodeServer: counterfactual.FailServer, llm.CodeRedirect: counterfactual.FailServer, llm.CodeCanceled: counterfactual.FailCanceled,
	llm.CodeBudget: counterfactual.FailBudget,
}

// failed says why there is no answer. Where a ceiling has cut it off, the plan is
// told so: what it has counted itself is one call for each question.
func (a *Answered) failed(ctx context.Context, err error) {
	a.Failure = counterfactual.FailBroken
	var e *llm.Error
	if !errors.As(err, &e) {
		return
	}
	a.Attempts = e.Attempts
	if f := failures[e.Code]; f != "" {
		a.Failure = f
	}
	switch {
	case e.Code == llm.CodeBudget && e.Ceiling == llm.CeilingCalls:
		a.Stop = counterfactual.StopCalls
	case e.Code == llm.CodeBudget:
		a.Stop = counterfactual.StopTokens
	case e.Code == llm.CodeCanceled && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.Failure, a.Stop = counterfactual.FailTimeout, counterfactual.StopTime
	}
}

// ask puts one question of a plan.
func (w *work) ask(ctx context.Context, p counterfactual.Probe) reply {
	a := reply{probe: p, obs: counterfactual.Observation{Variant: p.Variant, Replicate: p.Replicate}}
	src, err := w.job.Assembly.Render(p.Variant)
	if err != nil {
		a.obs.Failure = counterfactual.FailBroken
		return a
	}
	v := &Variant{Format: w.job.Assembly.Format, Source: src, Answer: w.answer, Path: w.job.Path, Header: w.job.Header, Budget: w.budget}
	if w.plan.Problem().Budget.Tokens > 0 {
		v.Bound = p.Tokens
	}
	got := Ask(ctx, w.r.o.Client, v)
	if got.Said != nil {
		a.obs = w.job.Judge.Observe(p, got.Said)
		if w.r.o.Stable {
			said, _ := json.Marshal(got.Said) // texts and bytes alone: it cannot fail
			got.Response = digest(said)
		}
	}
	a.is(&got)
	return a
}

// is takes over how a question went.
func (a *reply) is(got *Answered) {
	a.obs.Failure, a.obs.Request, a.obs.Response, a.obs.Model, a.obs.Tokens = got.Failure, got.Request, got.Response, got.Model, got.Tokens
	a.body, a.attempts, a.cached, a.stop = got.Body, got.Attempts, got.Cached, got.Stop
}
