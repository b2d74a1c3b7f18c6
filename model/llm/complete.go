// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// unseen is what a provider adds to a request, at most, in tokens: roles, and the
// text by which it explains tools to the model.
const unseen = 1024

// A completion is one request with all its attempts.
type completion struct {
	e       *Endpoint
	req     *Request
	body    []byte
	output  int64 // tokens, at most
	budgets budgets
	most    price // of one attempt
	begun   bool  // a piece was handed over

	attempts int
	waits    backoff.Waits
	r        Response
	err      *Error
}

var _ Client = (*Endpoint)(nil)

// Complete asks for one turn of the assistant, again where that may help. The
// error is an *Error.
func (e *Endpoint) Complete(ctx context.Context, req Request) (Response, error) {
	c := &completion{e: e, req: &req, budgets: slices.Concat(e.o.Budgets, req.Budgets),
		waits: backoff.Waits{First: e.o.Backoff, Most: e.o.MaxWait}}
	if err := c.encode(); err != nil {
		return Response{}, &Error{Code: CodeRequest, err: err}
	}
	c.price()
	policy := retrypolicy.NewBuilder[any]().
		HandleIf(func(any, error) bool { return c.again() }).
		ReturnLastFailure().
		WithMaxRetries(e.o.Retries).
		WithDelayFunc(func(failsafe.ExecutionAttempt[any]) time.Duration { return c.wait() }).
		Build()
	// What the policy returns is what the last attempt left in c, unless the context
	// ended while nothing was under way.
	_ = failsafe.With(policy).WithContext(ctx).Run(func() error {
		c.attempt(ctx)
		if c.err != nil {
			return c.err
		}
		return nil
	})
	if c.err == nil && c.attempts > 0 {
		c.r.Attempts = c.attempts
		return c.r, nil
	}
	if c.err == nil || ctx.Err() != nil && c.err.Code != CodeCanceled {
		c.err = &Error{Code: CodeCanceled, err: context.Cause(ctx)}
	}
	c.err.Attempts = c.attempts
	return Response{}, c.err
}

// encode writes the request and finds the bound of its answer.
func (c *completion) encode() (err error) {
	if c.req.InputTokens < 0 {
		return errors.New("InputTokens is negative")
	}
	if c.req.Raw != nil {
		c.body = c.req.Raw
		c.output, err = c.e.rawBound(c.req)
	} else {
		c.body, c.output, err = c.e.spell(c.req)
	}
	if err == nil && len(c.body) > c.e.o.MaxRequest {
		err = errors.New("the request is too long")
	}
	return err
}

// spell writes a request, and returns the most tokens that its answer may have.
func (e *Endpoint) spell(r *Request) (body []byte, bound int64, err error) {
	ask := format.Request{
		Model: e.o.Model, System: r.System, Messages: r.Messages, Tools: r.Tools, Choice: r.Choice,
		MaxTokens: int64(r.MaxTokens), Temperature: &r.Temperature, Seed: r.Seed, CachePrefix: r.CachePrefix,
		Stream: r.Stream != nil, MaxCompletionTokens: e.o.MaxCompletionTokens,
	}
	if ask.MaxTokens == 0 {
		ask.MaxTokens = 4096
	}
	if e.o.NoTemperature {
		ask.Temperature = nil
	}
	if err := ask.Check(); err != nil {
		return nil, 0, err
	}
	body, err = e.format.AppendRequest(nil, &ask)
	return body, ask.MaxTokens, err
}

// rawBound checks a request that the caller has written, and returns the most tokens
// that its answer may have.
func (e *Endpoint) rawBound(r *Request) (bound int64, err error) {
	var d strictjson.Doc
	if d.Reset(r.Raw, strictjson.Limits{}) != nil || d.Root().Kind() != '{' {
		return 0, errors.New("the raw body is no strict JSON object")
	}
	asked := e.format.Asks(d.Root())
	switch {
	case asked.Wrong != "":
		return 0, errors.New("the raw body: " + asked.Wrong)
	case asked.Bound < 0:
		return 0, errors.New("the raw body has a wrong bound of the answer, or two")
	case asked.Bound == 0:
		return 0, errors.New("the raw body does not bound the answer")
	case asked.Model == "" && r.Path == "" && !asked.InPath:
		return 0, errors.New("the raw body names no model")
	case !asked.InPath && asked.Stream != (r.Stream != nil):
		return 0, errors.New("the raw body and Stream do not agree on a stream")
	}
	return asked.Bound, nil
}

// price is what an attempt may cost.
func (c *completion) price() {
	input := int64(c.req.InputTokens)
	if input == 0 {
		input = int64(len(c.body)) + unseen
	}
	c.most = price{calls: 1, tokens: input + c.output}
}

func (c *completion) again() bool {
	return c.err != nil && c.err.again() && !c.begun && c.err.RetryAfter <= c.e.o.MaxWait
}

// wait is how long to wait before the next attempt: not less than the provider has
// asked for.
func (c *completion) wait() time.Duration {
	return max(c.waits.Next(), backoff.Spread(c.err.RetryAfter))
}

// attempt makes one attempt and leaves in c how it went.
func (c *completion) attempt(ctx context.Context) {
	key, release, err := c.admit(ctx)
	if err != nil {
		c.r, c.err = Response{}, err
		c.observe(Attempt{Number: c.attempts + 1, start: time.Now(), Code: err.Code, Request: c.body})
		return
	}
	c.attempts++
	x := &exchange{e: c.e, req: c.req, body: c.body}
	if c.req.Stream != nil {
		x.emit = func(d Delta) error {
			c.begun = true
			return c.req.Stream(d)
		}
	}
	start := time.Now()
	r, err := x.do(ctx, key)
	if err == nil {
		err = r.settle(c.req)
	}
	if err != nil {
		r = Response{Usage: r.Usage}
	}
	took := time.Since(start)
	release(err)
	c.settle(r.Usage, x, err)
	r.Request, r.Answer, r.Duration = c.body, x.answer, took
	a := Attempt{
		Number: c.attempts, start: start, duration: took, Sent: true, Status: x.status, usage: r.Usage,
		model: r.Model, Fingerprint: r.Fingerprint, Request: c.body, Answer: x.answer,
	}
	if c.r, c.err = r, err; err != nil {
		a.Code = err.Code
	}
	c.observe(a)
}

// admit lets an attempt begin: it has a slot, its turn, the budgets' and the
// circuit breaker's consent. release ends it.
func (c *completion) admit(ctx context.Context) (key string, release func(*Error), err *Error) {
	if key, err = c.e.o.Key.reveal(); err != nil {
		return "", nil, err
	}
	select {
	case c.e.slots <- struct{}{}:
	case <-ctx.Done():
		return "", nil, &Error{Code: CodeCanceled, err: ctx.Err()}
	}
	defer func() {
		if err != nil {
			<-c.e.slots
		}
	}()
	if ctx.Err() != nil {
		return "", nil, canceledBy(ctx)
	}
	if ceiling := c.budgets.reserve(c.most); ceiling != "" {
		return "", nil, &Error{Code: CodeBudget, Ceiling: ceiling}
	}
	if b := c.e.breaker; b != nil && !b.TryAcquirePermit() {
		c.budgets.settle(c.most, settleFree, false, format.Usage{})
		return "", nil, &Error{Code: CodeCircuitOpen, RetryAfter: b.RemainingDelay()}
	}
	return key, c.release, nil
}

// canceledBy is the end of the caller's context, or one that is foreseen: a turn
// that would come after its deadline.
func canceledBy(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: CodeCanceled, err: err}
	}
	return &Error{Code: CodeCanceled, err: context.DeadlineExceeded}
}

func (c *completion) release(err *Error) {
	<-c.e.slots
	b := c.e.breaker
	switch {
	case b == nil:
	case err != nil && err.broken():
		b.RecordFailure()
	case err == nil || err.Code != CodeCanceled && err.Code != CodeAborted && err.Code != CodeRateLimited:
		b.RecordSuccess()
	case b.State() == circuitbreaker.HalfOpenState:
		b.RecordFailure() // the trial has shown nothing: its permit must not be lost
	}
}

// settle charges the budgets.
func (c *completion) settle(u format.Usage, x *exchange, err *Error) {
	how := settleGuessed
	switch {
	case u.Known && u.Input+u.Output > 0: // some servers say 0 where they have not counted
		how = settleUsage
	case err != nil && (x.status >= 300 || x.unsent || err.Code == CodeCertificate):
		how = settleFree // an error costs nothing, but an answer that was cut does
	}
	c.budgets.settle(c.most, how, !x.unsent, u)
}

func (c *completion) observe(a Attempt) {
	for _, f := range []func(Attempt){c.e.o.Observe, c.req.Observe} {
		if f != nil {
			f(a)
		}
	}
}
