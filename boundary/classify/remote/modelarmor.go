// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"net/url"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// ModelArmor is Google Cloud's Model Armor: POST
// /v1/projects/{p}/locations/{l}/templates/{t}:sanitizeUserPrompt (REST reference of
// Google Cloud). A prompt's template is the one that looks for injections.
type ModelArmor struct {
	*caller
	path    string
	version string
}

// NewModelArmor returns a template at s.URL, https://modelarmor.LOCATION.rep.googleapis.com.
// s.Key is an OAuth access token.
func NewModelArmor(s Service, project, location, template string) (*ModelArmor, error) {
	if project == "" || location == "" || template == "" {
		return nil, errors.New("remote: model armor needs a project, a location and a template")
	}
	c, err := newCaller(s, bearer)
	return &ModelArmor{c, "/v1/projects/" + url.PathEscape(project) + "/locations/" + url.PathEscape(location) +
		"/templates/" + url.PathEscape(template) + ":sanitizeUserPrompt", version("model-armor", template)}, err
}

// Limits implements classify.Classifier: 10,000 tokens of the filter for injections,
// of at least two characters.
func (m *ModelArmor) Limits() classify.Limits { return classify.Limits{Texts: 1, Chars: 20_000} }

// Version implements classify.Classifier.
func (m *ModelArmor) Version() string { return m.version }

// Classify implements classify.Classifier. Any filter of the template that matches
// flags: the template says which ones there are. The whole says NO_MATCH_FOUND beside
// a filter that matched in Google's own examples, so that a filter counts more.
func (m *ModelArmor) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	text, err := alone(texts)
	if err != nil {
		return nil, err
	}
	body := append(strictjson.AppendQuote([]byte(`{"userPromptData":{"text":`), text), "}}"...)
	var doc strictjson.Doc
	root, err := m.post(ctx, m.path, body, &doc)
	if err != nil {
		return nil, err
	}
	r := root.Get("sanitizationResult")
	whole := r.Get("filterMatchState").Text()
	if whole != "MATCH_FOUND" && whole != "NO_MATCH_FOUND" {
		return nil, malformed("filterMatchState")
	}
	code, ran := classify.Code(""), true
	for name, filter := range r.Get("filterResults").Members() {
		for _, result := range filter.Members() {
			if result.Get("inspectResult").Exists() {
				result = result.Get("inspectResult")
			}
			switch result.Get("matchState").Text() {
			case "MATCH_FOUND":
				if code = classify.CodeOf(name.Text()); name.Text() == "pi_and_jailbreak" {
					score := yes(true, code)
					score.P = confidence(result.Get("confidenceLevel").Text())
					return []classify.Score{score}, nil
				}
			case "NO_MATCH_FOUND":
			default:
				ran = false
			}
			if s := result.Get("executionState"); s.Exists() && s.Text() != "EXECUTION_SUCCESS" {
				ran = false
			}
		}
	}
	switch {
	case code != "" || whole == "MATCH_FOUND":
		if code == "" {
			code = "match-found"
		}
		return []classify.Score{yes(true, code)}, nil
	case !ran || r.Get("invocationResult").Text() != "SUCCESS":
		return nil, classify.ErrRefused // a filter that did not run has judged nothing
	}
	return []classify.Score{{}}, nil
}

// confidence is the score of a level (DetectionConfidenceLevel).
func confidence(level string) float64 {
	switch level {
	case "LOW_AND_ABOVE":
		return 0.5
	case "MEDIUM_AND_ABOVE":
		return 0.75
	}
	return 1
}
