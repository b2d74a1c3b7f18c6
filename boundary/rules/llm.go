// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/boundary/gateway"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// An LLM is what is told of a service whose answers an external language model has
// written: the source form of a gateway.LLM. Provider is its name for people; the rest
// may be "".
type LLM struct {
	Provider string
	Tag      string // NAME-response; "" = NAME is made from the provider's name
	Source   string // label; "" = NAME
	Grounded bool   // on live web search
}

// Compile returns what it means, without a model. The error is for whoever has written
// it.
func (l LLM) Compile() (*gateway.LLM, error) {
	slug := l.slug()
	envelope, err := frame.CompileLLM(frame.LLMPolicy{Provider: l.Provider, Slug: slug, WebGrounded: l.Grounded})
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "frame: "))
	}
	out := &gateway.LLM{Envelope: envelope, Source: l.Source}
	if l.Source == "" {
		out.Source = slug
	}
	return out, nil
}

// slug is that of the tag, or made from the provider's name.
func (l LLM) slug() string {
	if l.Tag != "" {
		return strings.TrimSuffix(l.Tag, llmSuffix)
	}
	return strings.Join(strings.FieldsFunc(strings.ToLower(l.Provider), func(r rune) bool {
		return !('a' <= r && r <= 'z' || '0' <= r && r <= '9')
	}), "-")
}
