// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/platform/sigv4"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Bedrock is a guardrail of Amazon Bedrock: POST /guardrail/{id}/version/{version}/apply
// with source OUTPUT (API reference, "ApplyGuardrail"), signed by Signature Version 4. It wants text as it was received.
type Bedrock struct {
	*caller
	guardrail, version string
}

// BedrockOptions name a guardrail and who asks for it.
type BedrockOptions struct {
	Region, Guardrail, Version string
	AccessKey                  Secret
	SecretKey                  Secret
	SessionToken               Secret           // nil: none
	now                        func() time.Time // nil: time.Now
}

// NewBedrock returns a guardrail at s.URL, https://bedrock-runtime.REGION.amazonaws.com.
// s.Key is not used.
func NewBedrock(s Service, o BedrockOptions) (*Bedrock, error) {
	if o.Region == "" || o.Guardrail == "" || o.Version == "" || o.AccessKey == nil || o.SecretKey == nil {
		return nil, errors.New("remote: bedrock needs a region, a guardrail, its version and keys")
	}
	signer := (&sigv4.Signer{Region: o.Region, Service: "bedrock", Access: sigv4.Secret(o.AccessKey), Session: sigv4.Secret(o.SessionToken)}).At(o.now)
	s.Key = o.SecretKey
	c, err := newCaller(s, func(req *http.Request, body []byte, secret string) error {
		by := *signer
		by.Secret = func() (string, error) { return secret, nil }
		if err := by.Sign(req, body); err != nil {
			return errKey
		}
		return nil
	})
	return &Bedrock{c, o.Guardrail, o.Version}, err
}

// Limits implements classify.Classifier: a call has one verdict for all of its
// content, and 25 text units of 1,000 characters.
func (b *Bedrock) Limits() classify.Limits {
	return classify.Limits{Texts: 1, Chars: 25_000, Raw: true}
}

// Version implements classify.Classifier.
func (b *Bedrock) Version() string { return version("bedrock", b.guardrail, b.version) }

// Classify implements classify.Classifier.
func (b *Bedrock) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	text, err := alone(texts)
	if err != nil {
		return nil, err
	}
	body := append(strictjson.AppendQuote([]byte(`{"source":"OUTPUT","content":[{"text":{"text":`), text), `}}]}`...)
	var doc strictjson.Doc
	root, err := b.post(ctx, "/guardrail/"+url.PathEscape(b.guardrail)+"/version/"+url.PathEscape(b.version)+"/apply", body, &doc)
	if err != nil {
		return nil, err
	}
	code, blocked := blockedBy(root.Get("assessments"))
	switch root.Get("action").Text() {
	case "GUARDRAIL_INTERVENED":
		if code == "" {
			code = "guardrail-intervened"
		}
		return []classify.Score{yes(true, code)}, nil
	case "NONE":
		if blocked {
			return nil, contrary("an assessment blocks, but the action is NONE")
		}
		return []classify.Score{{}}, nil
	}
	return nil, malformed("action")
}

// blockedBy is the first policy that has blocked, and whether one has.
func blockedBy(assessments strictjson.Value) (classify.Code, bool) {
	for a := range assessments.Elements() {
		for _, p := range [...]struct {
			policy, list string
			code         classify.Code
		}{
			{"contentPolicy", "filters", "content"}, {"topicPolicy", "topics", "topic"}, {"wordPolicy", "customWords", "word"},
			{"wordPolicy", "managedWordLists", "word"}, {"sensitiveInformationPolicy", "piiEntities", "sensitive"},
			{"sensitiveInformationPolicy", "regexes", "sensitive"}, {"contextualGroundingPolicy", "filters", "grounding"},
		} {
			for f := range a.Get(p.policy).Get(p.list).Elements() {
				if f.Get("action").Text() != "BLOCKED" {
					continue
				}
				if f.Get("type").Text() == "PROMPT_ATTACK" {
					return "prompt-attack", true
				}
				return p.code, true
			}
		}
	}
	return "", false
}
