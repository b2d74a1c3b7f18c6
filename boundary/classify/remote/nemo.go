// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// NeMo is the NeMo Guardrails microservice: POST /v1/guardrail/checks, which runs the
// rails of a configuration over messages without asking a model for an answer
// (NVIDIA, "Running Checks with Guardrails").
type NeMo struct {
	*caller
	config, model string
}

// NewNeMo returns the service at s.URL with a stored configuration. model is what
// self-check rails ask; it may be "".
func NewNeMo(s Service, config, model string) (*NeMo, error) {
	c, err := newCaller(s, bearer)
	return &NeMo{c, config, model}, err
}

// Limits implements classify.Classifier.
func (n *NeMo) Limits() classify.Limits { return classify.Limits{Texts: 1, Chars: 16_000} }

// Version implements classify.Classifier.
func (n *NeMo) Version() string { return version("nemo", n.config, n.model) }

// Classify implements classify.Classifier. The text is a user's message: input rails
// are those that look for injections.
func (n *NeMo) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	text, err := alone(texts)
	if err != nil {
		return nil, err
	}
	body := strictjson.AppendQuote([]byte(`{"model":`), n.model)
	body = strictjson.AppendQuote(append(body, `,"messages":[{"role":"user","content":`...), text)
	body = strictjson.AppendQuote(append(body, `}],"guardrails":{"config_id":`...), n.config)
	var doc strictjson.Doc
	root, err := n.post(ctx, "/v1/guardrail/checks", append(body, "}}"...), &doc)
	if err != nil {
		return nil, err
	}
	blocked := false
	for _, rail := range root.Get("rails_status").Members() {
		blocked = blocked || rail.Get("status").Text() == "blocked"
	}
	switch root.Get("status").Text() {
	case "blocked":
		return []classify.Score{yes(true, "rail-blocked")}, nil // the rail's name is the operator's, and may be anything
	case "success":
		if blocked {
			return nil, contrary("a rail blocks, but the status is success")
		}
		return []classify.Score{{}}, nil
	}
	return nil, malformed("status")
}
