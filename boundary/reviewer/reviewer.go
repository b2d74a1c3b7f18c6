// SPDX-License-Identifier: Apache-2.0

// Package reviewer has a language model review what servers say of themselves.
package reviewer

import (
	"context"
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Model makes pass 2 by one language model or judge of the operator's own, for any number of servers at the same time.
// Its owner closes it.
type Model struct {
	of       *rules.Review
	endpoint *llm.Endpoint // of a language model
	judge    ownJudge      // of the operator's own
	cache    surface.Cache
	progress func(server string, s surface.Step)
}

// New returns the model that r asks for. cache may be nil, and so may progress, which is
// told before each question; server is third-party text there.
func New(r *rules.Review, cache surface.Cache, progress func(server string, s surface.Step)) (*Model, error) {
	v := &Model{of: r, cache: cache, progress: progress}
	if !r.IsOwnJudge() {
		var err error
		v.endpoint, err = r.Endpoint()
		return v, err
	}
	var err error
	v.judge, err = r.OwnJudge()
	return v, err
}

// Of returns the rules that it was made of.
func (v *Model) Of() *rules.Review { return v.of }

// Close lets go of idle connections.
func (v *Model) Close() {
	if v.endpoint != nil {
		v.endpoint.Close()
	}
}

// Review is that of one surface, for surface.Gate.Review. It has a budget of its own, so
// that no server uses up the budget of another.
func (v *Model) Review(server, transport string) *surface.Review {
	out := &surface.Review{
		Reviewer: &asked{v.endpoint, llm.NewBudget(llm.Limits{Calls: llm.Unlimited, Tokens: int64(v.of.Tokens)})},
		// The model comes last: the others hold no space, so that no two are one.
		Model:     strings.Join([]string{v.of.Provider(), v.of.URL, v.of.Model}, " "),
		Transport: transport, Cache: v.cache,
		TotalTokens: v.of.Tokens, Timeout: v.of.Timeout,
	}
	if v.judge != nil {
		out.Reviewer = v.judge
	}
	if v.progress != nil {
		out.Progress = func(s surface.Step) { v.progress(server, s) }
	}
	return out
}

// asked is a model without tools, asked once for each question.
type asked struct {
	client llm.Client
	budget *llm.Budget
}

var _ surface.Reviewer = (*asked)(nil)

const (
	// maxReviewAnswer bounds an answer in tokens: two letters or a paragraph, behind
	// what a model thinks before.
	maxReviewAnswer = 8192
	// unseenTokens is what a provider may add to a question.
	unseenTokens = 1024
)

// Review passes on what the model says. Its answer is whole only if it ended by
// itself: what was cut, refused, filtered or would call a tool is not.
func (v *asked) Review(ctx context.Context, q surface.Question) (surface.Answer, error) {
	r, err := v.client.Complete(ctx, llm.Request{
		System: q.System, Messages: []llm.Message{{Text: q.User}},
		MaxTokens: maxReviewAnswer, InputTokens: q.Tokens + unseenTokens, Budgets: []*llm.Budget{v.budget},
	})
	if err != nil {
		return surface.Answer{}, err
	}
	a := surface.Answer{Text: r.Text, Whole: r.Whole()}
	if r.Refusal != "" {
		a.Text = r.Refusal
	}
	return a, nil
}

// ownJudge is a judge of the operator's own.
type ownJudge func(ctx context.Context, text string) (string, error)

// Review passes on what the judge says of the material.
func (v ownJudge) Review(ctx context.Context, q surface.Question) (surface.Answer, error) {
	text, err := v(ctx, q.Material)
	return surface.Answer{Text: text, Whole: err == nil}, err
}

// Opinion is what the model says of the version of an item that waits, for a person.
func (v *Model) Opinion(ctx context.Context, server string, key surface.Key, version string) string {
	err := v.Review(server, "").Opinion(ctx, key, version)
	var rejected *surface.RejectedError
	switch is := errors.As(err, &rejected); {
	case err == nil:
		return "OK"
	case is && rejected.Said != "":
		return rejected.Shown()
	case is:
		return Failure(err)
	default:
		return err.Error()
	}
}

// Failure says in a person's words why pass 2 rejected, beside the error.
func Failure(err error) string {
	var rejected *surface.RejectedError
	var failed *llm.Error
	if !errors.As(err, &rejected) {
		return ""
	}
	switch errors.As(err, &failed); {
	case rejected.Why == surface.Flagged:
		return "the reviewer did not answer with a bare OK"
	case rejected.Why == surface.CutOff:
		return "the reviewer's answer was cut off, refused or filtered, or wanted a tool"
	case rejected.Why == surface.ReviewLate:
		return "the reviewer did not answer in time"
	case rejected.Why == surface.OverBudget:
		return "the surface is too large for the budget of a review"
	case failed != nil && failed.Code == llm.CodeBudget:
		return "the budget of this server's review is used up"
	case failed != nil && failed.Code == llm.CodeUnreachable:
		return "the reviewer's endpoint cannot be reached"
	case failed != nil && failed.Code == llm.CodeUnauthorized:
		return "the reviewer's endpoint does not accept the key"
	case failed != nil && failed.Code == llm.CodeCircuitOpen:
		return "the reviewer's endpoint has failed too often, and is not asked for a while"
	}
	return "the reviewer's endpoint gave no usable answer"
}
