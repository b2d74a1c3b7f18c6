// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// reviewFlags say which model makes pass 2.
type reviewFlags struct {
	Model     string        `name:"review-model" placeholder:"NAME" help:"Ask this language model to judge the words of every server. Any answer other than OK rejects the server."`
	URL       string        `name:"review-url" placeholder:"URL" help:"URL of the model: https://api.openai.com/v1, https://api.anthropic.com/v1, http://127.0.0.1:11434/v1."`
	API       string        `name:"review-api" placeholder:"FORMAT" help:"API of the model: openai-chat (default), openai-responses, anthropic, google, or http, a judge of your own."`
	Key       string        `name:"review-key" placeholder:"env:NAME|file:PATH" help:"Reference to the key of the model: env:NAME or file:PATH (default: no key is sent)."`
	Reasoning bool          `name:"review-reasoning" help:"The model is a reasoning model, which accepts no temperature."`
	Timeout   time.Duration `name:"review-timeout" placeholder:"TIME" help:"Time limit for one answer of the model (default: 2m)."`
	Tokens    int           `name:"review-tokens" placeholder:"N" help:"Maximum number of tokens for the review of one server (default: 2000000)."`
}

// given reports whether there is any.
func (f *reviewFlags) given() bool { return *f != reviewFlags{} }

// rules are what the flags of a verb ask for.
func (f *reviewFlags) rules(verb string, o rules.Options) (*rules.Review, error) {
	switch {
	case f.Model == "" || f.URL == "":
		return nil, exit.With(exit.Usage, errors.New(verb+": a review needs --review-model and --review-url"))
	case !egress.IsHTTP(f.URL):
		return nil, exit.With(exit.Usage, errors.New(verb+": --review-url: want http:// or https:// and a host"))
	case f.Timeout < 0 || f.Tokens < 0:
		return nil, exit.With(exit.Usage, errors.New(verb+": --review-timeout and --review-tokens must be positive"))
	}
	api := f.API
	if api == "" {
		api = "openai-chat"
	}
	r := rules.NewReview(api, f.URL, f.Model, rules.Value{})
	r.Reasoning = f.Reasoning
	if r.Provider() == "" {
		return nil, exit.With(exit.Usage, errors.New(verb+": --review-api is openai-chat, openai-responses, anthropic, google or http"))
	}
	if f.Timeout > 0 {
		r.Timeout = f.Timeout
	}
	if f.Tokens > 0 {
		r.Tokens = f.Tokens
	}
	if f.Key == "" {
		return r, nil
	}
	var err error
	if r.Key, err = o.Reference(f.Key); err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("%s: --review-key: %w", verb, err))
	}
	return r, nil
}

// reviewRules are those of the configuration, or of the flags; nil where no
// review is asked for.
func (c *checkCmd) reviewRules(e *env) (*rules.Review, error) {
	if c.Review.given() {
		return c.Review.rules("check", e.references())
	}
	if c.configuration != nil {
		return c.configuration.Review, nil
	}
	return nil, nil
}
