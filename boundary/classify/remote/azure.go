// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net/http"
	"net/url"

	"github.com/pellucid-mcp/pellucid/boundary/classify"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// Azure is Prompt Shields of Azure AI Content Safety, document mode:
// POST {endpoint}/contentsafety/text:shieldPrompt (REST reference of Microsoft, "Text
// Operations - Detect Text Jailbreak / Shield Prompt").
type Azure struct {
	*caller
	api string
}

// azureVersion is the api-version that is asked for by default.
const azureVersion = "2024-09-01"

// NewAzure returns Prompt Shields at an endpoint, https://NAME.cognitiveservices.azure.com.
// api is the api-version; "" stands for azureVersion.
func NewAzure(s Service, api string) (*Azure, error) {
	if api == "" {
		api = azureVersion
	}
	c, err := newCaller(s, func(req *http.Request, _ []byte, key string) error {
		req.Header.Set("Ocp-Apim-Subscription-Key", key)
		return nil
	})
	return &Azure{c, api}, err
}

// Limits implements classify.Classifier: five documents and 10,000 characters a call, a document a text.
func (a *Azure) Limits() classify.Limits {
	return classify.Limits{Texts: 5, Chars: 10_000, Total: 10_000, Apart: true}
}

// Version implements classify.Classifier.
func (a *Azure) Version() string { return version("prompt-shields", a.api) }

// Classify implements classify.Classifier.
func (a *Azure) Classify(ctx context.Context, texts []string) ([]classify.Score, error) {
	body := append(strictjson.AppendStrings([]byte(`{"userPrompt":"","documents":`), texts), '}')
	var doc strictjson.Doc
	root, err := a.post(ctx, "/contentsafety/text:shieldPrompt?api-version="+url.QueryEscape(a.api), body, &doc)
	if err != nil {
		return nil, err
	}
	list := root.Get("documentsAnalysis")
	if list.Kind() != '[' || list.Len() != len(texts) {
		return nil, malformed("documentsAnalysis")
	}
	var out []classify.Score
	for e := range list.Elements() {
		attack, ok := e.Get("attackDetected").Bool()
		if !ok {
			return nil, malformed("attackDetected")
		}
		out = append(out, yes(attack, "document-attack"))
	}
	return out, nil
}
