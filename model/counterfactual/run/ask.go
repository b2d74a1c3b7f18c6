// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"

	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// ask puts one question.
func (w *work) ask(ctx context.Context, p counterfactual.Probe) reply {
	a := reply{probe: p, obs: counterfactual.Observation{Variant: p.Variant, Replicate: p.Replicate}}
	src, err := w.job.Assembly.Render(p.Variant)
	if err != nil {
		a.obs.Failure = counterfactual.FailBroken
		return a
	}
	raw, output, err := Question(w.job.Assembly.Format, src, w.answer)
	if err != nil {
		a.obs.Failure = counterfactual.FailRejected
		return a
	}
	a.obs.Request = digest(raw)
	req := llm.Request{Raw: raw, Header: w.job.Header, Budgets: []*llm.Budget{w.budget}}
	if in := p.Tokens - output; in > 0 && w.plan.Problem().Budget.Tokens > 0 {
		req.InputTokens = int(in)
	}
	r, err := w.r.o.Client.Complete(ctx, req)
	a.attempts = r.Attempts
	if err != nil {
		w.failed(ctx, &a, err)
		return a
	}
	w.answered(&a, &r)
	return a
}

// answered reads an answer.
func (w *work) answered(a *reply, r *llm.Response) {
	a.obs.Response = digest(r.Answer)
	said, err := counterfactual.ParseAnswer(w.job.Assembly.Format, r.Answer)
	if err != nil {
		a.obs.Failure = counterfactual.FailBroken
		return
	}
	// An answer that was cut off does not say what the model would have done.
	if r.Stop == format.StopLength || r.Stop == format.StopPause {
		a.obs.Failure = counterfactual.FailBroken
	} else {
		request, response := a.obs.Request, a.obs.Response
		a.obs = w.job.Judge.Observe(a.probe, said)
		a.obs.Request, a.obs.Response = request, response
		a.obs.Model = counterfactual.ModelDigest(r.Model, r.Fingerprint)
		a.body = r.Answer
	}
	if r.Usage.Known {
		a.obs.Tokens, a.cached = r.Usage.Input+r.Usage.Output, r.Usage.Cached
	}
}

// failures are what llm's codes are to a plan.
var failures = map[llm.Code]counterfactual.Failure{
	llm.CodeRequest: counterfactual.FailRejected, llm.CodeKey: counterfactual.FailRejected, llm.CodeRejected: counterfactual.FailRejected,
	llm.CodeUnauthorized: counterfactual.FailRejected, llm.CodeContext: counterfactual.FailRejected, llm.CodeFiltered: counterfactual.FailRejected,
	llm.CodeRateLimited: counterfactual.FailLimited, llm.CodeQuota: counterfactual.FailLimited, llm.CodeCircuitOpen: counterfactual.FailLimited,
	llm.CodeTimeout: counterfactual.FailTimeout, llm.CodeUnreachable: counterfactual.FailServer, llm.CodeCertificate: counterfactual.FailServer,
	llm.CodeServer: counterfactual.FailServer, llm.CodeRedirect: counterfactual.FailServer, llm.CodeCanceled: counterfactual.FailCanceled,
	llm.CodeBudget: counterfactual.FailBudget,
}

// failed says why there is no answer. Where a ceiling has cut it off, the plan is
// told so: what it has counted itself is one call for each question.
func (w *work) failed(ctx context.Context, a *reply, err error) {
	a.obs.Failure = counterfactual.FailBroken
	var e *llm.Error
	if !errors.As(err, &e) {
		return
	}
	a.attempts = e.Attempts
	if f := failures[e.Code]; f != "" {
		a.obs.Failure = f
	}
	switch {
	case e.Code == llm.CodeBudget && e.Ceiling == llm.CeilingCalls:
		a.stop = counterfactual.StopCalls
	case e.Code == llm.CodeBudget:
		a.stop = counterfactual.StopTokens
	case e.Code == llm.CodeCanceled && errors.Is(ctx.Err(), context.DeadlineExceeded):
		a.obs.Failure, a.stop = counterfactual.FailTimeout, counterfactual.StopTime
	}
}
