// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/boundary/classify/remote"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Review says which language model judges the words of a server before they reach
// another one, and within which bounds.
type Review struct {
	format Format
	URL    string // what the path of the format is appended to
	Model  string
	Key    Value // ""; none

	Reasoning bool          // the model thinks first: no temperature, and the newer name of the answer's bound
	Timeout   time.Duration // of one question, with all attempts
	Tokens    int           // of one server's review
}

// A Format is the wire format that a provider speaks.
type Format = format.Name

var (
	providerWords = []string{"openai-chat", "openai-responses", "anthropic", "google"}
	providers     = []Format{format.Chat, format.Responses, format.Messages, format.Gemini}
)

// ownJudge is the provider of a review by a judge of the operator's own, behind the contract of [remote.HTTP].
const ownJudge = "http"

// IsOwnJudge reports whether OwnJudge judges, and no language model that Endpoint asks.
func (r *Review) IsOwnJudge() bool { return r.format == ownJudge }

// OwnJudge returns what asks the operator's own judge about a text. It answers as a language model would: OK, or what
// was flagged.
func (r *Review) OwnJudge() (func(ctx context.Context, text string) (string, error), error) {
	c, err := remote.NewHTTP(remote.Service{URL: r.URL, Key: secretOf(r.Key)}, r.Model, classify.Limits{})
	if err != nil {
		return nil, err
	}
	m, err := classify.New(classify.Options{Name: "review", Classifier: c, Mode: policy.Enforce, Timeout: r.Timeout})
	return func(ctx context.Context, text string) (string, error) {
		a := m.Judge(ctx, []classify.Segment{{View: text}})
		switch {
		case a.Reason != classify.Judged:
			return "", cmp.Or(a.Err, errors.New("not judged: "+string(a.Reason)))
		case a.Flagged():
			return fmt.Sprintf("flagged with score %.2f %s", a.P, a.Code), nil
		}
		return "OK", nil
	}, err
}

// Provider is the word for the format in a configuration.
func (r *Review) Provider() string {
	for i, f := range providers {
		if f == r.format {
			return providerWords[i]
		}
	}
	return string(r.format)
}

// NewReview is a review by the model that provider has at url, with the usual bounds.
// An unknown provider makes one that Endpoint refuses.
func NewReview(provider, url, model string, key Value) *Review {
	r := &Review{}
	reset(r.members())
	r.URL, r.Model, r.Key = url, model, key
	if provider == ownJudge {
		r.format = ownJudge
	}
	for i, word := range providerWords {
		if word == provider {
			r.format = providers[i]
		}
	}
	return r
}

// Endpoint asks the model. Whoever is done with it closes it.
func (r *Review) Endpoint() (*llm.Endpoint, error) {
	o := llm.Options{
		Format: r.format, BaseURL: r.URL, Model: r.Model, Timeout: r.Timeout,
		NoTemperature: r.Reasoning, MaxCompletionTokens: r.Reasoning,
	}
	if r.Key.text != "" {
		o.Key = llm.NewKey(r.Key.ref, func() (string, error) { return r.Key.text, nil })
	}
	return llm.New(o)
}

// Bounds of a review. The least budget is that of one small question.
const (
	minReviewTokens = 16_000
	maxReviewTokens = 100_000_000
)

func (r *Review) members() []member {
	list := r.endpoint()
	list[0].value = word(&r.format, "", append(providerWords[:4:4], ownJudge), append(providers[:4:4], ownJudge))
	list[0].words += "; `http` is a judge of your own ([classify](classify.md))"
	return append(list,
		member{"tokens", live, integer(&r.Tokens, 2_000_000, minReviewTokens, maxReviewTokens), "that the review of one server may cost"})
}

// endpoint are the members that say which model is asked.
func (r *Review) endpoint() []member {
	return []member{
		{"provider", needed, word(&r.format, "", providerWords, providers), "the format of the provider's API"},
		{"url", needed, text(&r.URL, 2048), "https, or http on this machine, without user or query"},
		{"model", needed, modelName(&r.Model), "the name of the model, of a judge of your own with its version"},
		{"key", live, reference(&r.Key), "the provider's key; default: no key is sent"},
		{"reasoning", live, boolean(&r.Reasoning, false), "the model takes no temperature"},
		{"timeout", live, duration(&r.Timeout, 2*time.Minute, time.Second, time.Hour), "of one question, with all attempts"},
	}
}

// review tries whether the model can be asked.
func (c *compiler) review(p place, r *Review, sound bool) bool {
	if !sound {
		return false
	}
	var err error
	if r.IsOwnJudge() {
		_, err = r.OwnJudge()
	} else {
		var e *llm.Endpoint
		if e, err = r.Endpoint(); err == nil {
			e.Close()
		}
	}
	if err != nil {
		_, what, _ := strings.Cut(err.Error(), ": ") // behind the package's name
		c.report(p, "%s", what)
	}
	return err == nil
}

func modelName(v *string) value {
	return checked(v, "", "the name of a model, without spaces", isModel)
}

func isModel(s string) bool {
	return len(s) <= 256 && strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// reference reads a secret, which never stands in the file itself.
func (c *compiler) reference(p place) Value {
	s := c.text(p, maxText)
	if s != "" && !isReference(s) {
		c.report(p, "is a secret, and has to be a reference: env:NAME or file:PATH")
		return Value{}
	}
	if s == "" {
		return Value{}
	}
	return c.value(p)
}
