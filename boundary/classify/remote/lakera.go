// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Lakera is Lakera Guard: POST /v2/guard (API reference, "Screen content").
type Lakera struct {
	*caller
	project string
}

// NewLakera returns the service at s.URL, https://api.lakera.ai, with the policy of a
// project; "" stands for the account's default.
func NewLakera(s Service, project string) (*Lakera, error) {
	c, err := newCaller(s, bearer)
	return &Lakera{c, project}, err
}

// Limits implements classify.Classifier.
func (l *Lakera) Limits() classify.Limits { return classify.Limits{Texts: 1, Chars: 30_000} }

// Version implements classify.Classifier.
func (l *Lakera) Version() string { return version("lakera-v2", l.project) }

// Classify implements classify.Classifier. A tool's answer is screened as a message of
// the role "tool".
func (l *Lakera) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	text, err := alone(texts)
	if err != nil {
		return nil, err
	}
	body := append(strictjson.AppendQuote([]byte(`{"messages":[{"role":"tool","content":`), text), `}],"breakdown":true`...)
	if l.project != "" {
		body = strictjson.AppendQuote(append(body, `,"project_id":`...), l.project)
	}
	var doc strictjson.Doc
	root, err := l.post(ctx, "/v2/guard", append(body, '}'), &doc)
	if err != nil {
		return nil, err
	}
	flagged, ok := root.Get("flagged").Bool()
	if !ok {
		return nil, malformed("flagged")
	}
	code := classify.Code("")
	for d := range root.Get("breakdown").Elements() {
		detected, ok := d.Get("detected").Bool()
		if !ok {
			return nil, malformed("detected")
		}
		if detected && (code == "" || d.Get("detector_type").Text() == "prompt_attack") {
			code = classify.CodeOf(d.Get("detector_type").Text())
		}
	}
	if code != "" && !flagged {
		return nil, contrary("a detector has detected, but nothing is flagged")
	}
	if flagged && code == "" {
		code = "flagged"
	}
	return []classify.Score{yes(flagged, code)}, nil
}
