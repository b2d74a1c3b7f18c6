// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// compile returns what is told of a service whose answers an external language model has written, without a
// model.
func (l *llmSettings) compile() (*gateway.LLM, error) {
	slug := l.slug()
	envelope, err := frame.CompileLLM(frame.LLMPolicy{Provider: l.provider, Slug: slug, WebGrounded: l.grounded})
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "frame: "))
	}
	out := &gateway.LLM{Envelope: envelope, Source: l.source}
	if l.source == "" {
		out.Source = slug
	}
	return out, nil
}

// slug is that of the tag, or made from the provider's name.
func (l *llmSettings) slug() string {
	if l.tag != "" {
		return strings.TrimSuffix(l.tag, llmSuffix)
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(l.provider), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	}), "-")
}
