// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// llmFlags say whose text the answers of a wrapped server are, of --frame llm.
type llmFlags struct {
	Provider string `placeholder:"NAME" help:"Name of the provider for people, such as Perplexity; --frame llm needs it."`
	Tag      string `placeholder:"NAME-response" help:"Tag of the envelope (default: made from the provider's name)."`
	Source   string `placeholder:"LABEL" help:"Label of the service (default: NAME of the tag)."`
	Model    string `placeholder:"LABEL" help:"Label of the model (default: the model that the answer names)."`
	Search   bool   `help:"The answers are search results, which no model has written."`
	Grounded bool   `help:"@servers.llm.grounded"`
}

func (f *llmFlags) check(used bool) error {
	switch {
	case !used && *f != llmFlags{}:
		return errors.New("wrap: --llm-… goes with --frame llm")
	case used && f.Provider == "":
		return errors.New("wrap: --frame llm needs --llm-provider")
	case f.Search && f.Model != "":
		return errors.New("wrap: --llm-search and --llm-model exclude each other")
	case f.Tag != "" && !strings.HasSuffix(f.Tag, "-response"):
		return errors.New("wrap: --llm-tag must be NAME-response")
	case f.Source != "" && !frame.IsLabel(f.Source), f.Model != "" && !frame.IsLabel(f.Model):
		return errors.New("wrap: --llm-source and --llm-model must be labels, 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

func (f *llmFlags) compile() (*gateway.LLM, error) {
	l, err := rules.LLM{Provider: f.Provider, Tag: f.Tag, Source: f.Source, Grounded: f.Grounded}.Compile()
	if err != nil {
		return nil, fmt.Errorf("wrap: --llm-…: %w", err)
	}
	l.Model, l.Search = f.Model, f.Search
	return l, nil
}
