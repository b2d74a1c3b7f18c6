// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/model/llm"
)

// A Review says which language model judges the words of a server before they reach
// another one, and within which bounds.
type Review struct {
	format Format
	URL    string // what the path of the format is appended to
	Model  string
	Key    Value // ""; none

	Reasoning   bool          // the model thinks first: no temperature, and the newer name of the answer's bound
	Timeout     time.Duration // of one question, with all attempts
	Tokens      int           // of one server's review
	ChunkTokens int           // of one question's material
}

// A Format is the wire format that a provider speaks.
type Format = llm.Format

var (
	providerWords = []string{"openai-chat", "openai-responses", "anthropic"}
	providers     = []Format{llm.FormatChat, llm.FormatResponses, llm.FormatMessages}
)

// Provider is the word for the format in a configuration.
func (r *Review) Provider() string {
	for i, f := range providers {
		if f == r.format {
			return providerWords[i]
		}
	}
	return ""
}

// NewReview is a review by the model that provider has at url, with the usual bounds.
// An unknown provider makes one that Endpoint refuses.
func NewReview(provider, url, model string, key Value) *Review {
	r := &Review{URL: url, Model: model, Key: key, Timeout: 2 * time.Minute, Tokens: 2_000_000, ChunkTokens: 24_000}
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
	minChunkTokens  = 4_000
	maxChunkTokens  = 1_000_000
)

func (c *compiler) review(p place) {
	r := NewReview("", "", "", Value{})
	before := len(c.problems)
	c.object(p, members{
		"provider":     func(p place) { r.format = choice(&c.reader, p, providerWords, providers) },
		"url":          func(p place) { r.URL = c.text(p, 2048) },
		"model":        func(p place) { r.Model = c.checked(p, "the name of a model, without spaces", isModel) },
		"key":          func(p place) { r.Key = c.reference(p) },
		"reasoning":    func(p place) { r.Reasoning = c.boolean(p) },
		"timeout":      func(p place) { r.Timeout = c.duration(p, time.Second, time.Hour) },
		"tokens":       func(p place) { r.Tokens = c.integer(p, minReviewTokens, maxReviewTokens) },
		"chunk_tokens": func(p place) { r.ChunkTokens = c.integer(p, minChunkTokens, maxChunkTokens) },
	}, "provider", "url", "model")
	if len(c.problems) > before {
		return
	}
	e, err := r.Endpoint()
	if err != nil {
		c.report(p, "%s", strings.TrimPrefix(err.Error(), "llm: "))
		return
	}
	e.Close()
	c.secret.add(r.Key.text)
	c.out.Review = r
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

func (d *dumper) review(r *Review) {
	if r == nil {
		return
	}
	d.object("review", func() {
		d.word("provider", r.Provider())
		d.quote("url", r.URL)
		d.quote("model", r.Model)
		if r.Key.ref != "" {
			d.quote("key", r.Key.ref)
		}
		d.boolean("reasoning", r.Reasoning)
		d.duration("timeout", r.Timeout)
		d.integer("tokens", r.Tokens)
		d.integer("chunk_tokens", r.ChunkTokens)
	})
}

// sameReview compares what two files say of the review, the key included.
func sameReview(a, b *Rules) bool {
	key := func(r *Review) string {
		if r == nil {
			return ""
		}
		return r.Key.text
	}
	return key(a.Review) == key(b.Review) &&
		same(func(d *dumper) { d.review(a.Review) }, func(d *dumper) { d.review(b.Review) })
}
