// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/validate"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

// An AskedModel is the model that ccr asks: an endpoint, or a file that answers for one.
type AskedModel struct {
	URL   string // of the endpoint
	Model string // its name
	API   string // a name of apis; "": that of the context
	Key   string // reference to the endpoint's key
	AWS   bool   // requests are signed for Amazon Bedrock, with keys of the environment

	Oracle string // instead of an endpoint: script:FILE

	NoTemperature bool
}

// apis are the wire formats of endpoints, by their names on the command line.
var apis = map[string]format.Name{
	"chat": format.Chat, "responses": format.Responses, "messages": format.Messages,
	"gemini": format.Gemini,
}

// Dial opens the model for contexts of the format f. The caller closes it.
func (m *AskedModel) Dial(f format.Name, refs rules.Options) (*llm.Endpoint, error) {
	// Where the context names its model, this name is not sent.
	o := llm.Options{Format: f, BaseURL: m.URL, Model: cmp.Or(m.Model, "context"), NoTemperature: m.NoTemperature}
	if m.API != "" && apis[m.API] != f {
		return nil, exit.With(exit.Usage, errors.New("ccr: --api: the context is of another format, and is not translated"))
	}
	if m.URL != "" && m.Model == "" && format.Of(f).Asks(strictjson.Value{}).InPath {
		return nil, exit.With(exit.Usage, errors.New("ccr: --model: a context of the format "+string(f)+" does not name its model"))
	}
	if m.AWS {
		if err := m.sign(&o, refs); err != nil {
			return nil, err
		}
	}
	if m.Key != "" {
		key, err := refs.Resolve(m.Key)
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("--key: %w", err))
		}
		o.Key = llm.NewKey(m.Key, func() (string, error) { return key, nil })
	}
	if m.Oracle != "" {
		o.BaseURL = "http://127.0.0.1/v1" // nothing is called there
		if err := m.offline(&o); err != nil {
			return nil, err
		}
	}
	client, err := llm.New(o)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ccr: %w", err))
	}
	return client, nil
}

// sign has requests signed for Amazon Bedrock.
func (m *AskedModel) sign(o *llm.Options, refs rules.Options) error {
	a, err := rules.AWSFromEnv(refs, nil)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("ccr: --aws: %w", err))
	}
	s := signer(a, m.URL)
	if s.Region == "" {
		if s.Region, err = refs.Resolve("env:AWS_REGION"); err != nil {
			return exit.With(exit.Config, fmt.Errorf("ccr: --aws: the URL names no region: %w", err))
		}
	}
	o.Sign = s.Transport
	return nil
}

// offline has answers come from a file.
func (m *AskedModel) offline(o *llm.Options) error {
	f, err := terminal.OpenInput(strings.TrimPrefix(m.Oracle, "script:"), nil)
	if err != nil {
		return fmt.Errorf("ccr: oracle: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, terminal.MaxInput))
	if err != nil {
		return fmt.Errorf("ccr: oracle: %w", err)
	}
	if o.Transport, err = llm.ParseScript(b); err != nil {
		return exit.With(exit.Config, fmt.Errorf("ccr: oracle: %w", err))
	}
	return nil
}

// OpenEmbedder opens an endpoint for embeddings, for so many texts. The caller closes it.
func OpenEmbedder(url, model, key string, texts int, secret func(ref string) (string, error)) (*llm.Embedder, error) {
	o := llm.Options{BaseURL: url, Model: model, Timeout: 10 * time.Second, Retries: 1,
		Budgets: []*llm.Budget{llm.NewBudget(llm.Limits{Calls: 2 * int64(texts), Tokens: llm.Unlimited})}}
	if key != "" {
		secret, err := secret(key)
		if err != nil {
			return nil, exit.With(exit.Config, fmt.Errorf("--embed-key: %w", err))
		}
		o.Key = llm.NewKey(key, func() (string, error) { return secret, nil })
	}
	m, err := llm.NewEmbedder(o)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ccr: --embed-url: %w", err))
	}
	return m, nil
}

// MatchesSchema reports whether a text is JSON that a schema describes. What cannot be told does
// not match.
func MatchesSchema(schema []byte, text string) bool {
	var doc strictjson.Doc
	return doc.Reset([]byte(text), strictjson.Limits{}) == nil && validate.Compile(schema).Check(context.Background(), doc.Root()).Conformity == validate.Valid
}

// ReadCalibration reads the file that `pellucid-lab calibrate` has written.
func ReadCalibration(name string) (*counterfactual.Calibration, error) {
	b, err := terminal.ReadInput(name, nil)
	if err != nil {
		return nil, fmt.Errorf("ccr: calibration: %w", err)
	}
	c, err := analysis.ParseCalibration(b)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ccr: calibration: %w", err))
	}
	return c, nil
}
