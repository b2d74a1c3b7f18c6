// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/format"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/egress"
)

// ccrCmd is counterfactual context reassembly for a person.
type ccrCmd struct {
	Analyze ccrAnalyzeCmd `cmd:"" help:"Find the piece of a saved context that took control of the model."`
	Replay  ccrReplayCmd  `cmd:"" help:"Compute the verdict of a record again, byte for byte, without a model; or ask the model again."`
}

// ccrContext says which context is meant.
type ccrContext struct {
	Format     string   `enum:",openai-chat,openai-responses,anthropic-messages,google-gemini,run" default:"" help:"Format of CONTEXT: openai-chat, openai-responses, anthropic-messages, google-gemini, or run for a recorded run (default: detected)."`
	Turn       int      `default:"-1" help:"For a recorded run: number of the turn to explain, from 0 (default: the last turn that proposed a privileged call)."`
	Answer     string   `placeholder:"FILE" help:"File of the answer to explain, as the provider sent it (default: the answer in the run; else the model is asked first)."`
	Tools      string   `placeholder:"FILE" help:"File with a JSON array of the tools, for a context that was saved without them."`
	Privileged []string `placeholder:"GLOB" help:"Tools whose calls need an explanation (default: every tool whose name does not begin with get, list, read, search or the like)."`
	Manifest   string   `placeholder:"FILE" help:"File of facts about CONTEXT: trust of sources, provenance of segments, capsules (docs/spec/counterfactual.md, Manifest of a context)."`
}

// ccrModel says who answers.
type ccrModel struct {
	URL   string `name:"url" placeholder:"URL" help:"Base URL of the model's endpoint, such as http://127.0.0.1:11434/v1, https://generativelanguage.googleapis.com/v1beta or https://bedrock-runtime.REGION.amazonaws.com/openai/v1."`
	Model string `placeholder:"NAME" help:"Model to ask (default: the model that the context names; contexts of Gemini name none)."`
	API   string `name:"api" enum:",chat,responses,messages,gemini" default:"" help:"Wire format of the endpoint: chat, responses, messages or gemini. It must be the format of the context, which is the default."`
	Key   string `placeholder:"REF" help:"Reference to the endpoint's key: env:NAME or file:PATH."`
	AWS   bool   `name:"aws" help:"Sign requests for Amazon Bedrock, with the keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. The region is the one in --url, or in AWS_REGION."`

	Oracle string `placeholder:"script:FILE" help:"Take the answers from a file instead of an endpoint: script:FILE (answers by the text of the request)."`

	NoTemperature bool `help:"Do not ask for temperature 0: some models refuse it."`
}

// checkModel checks that exactly one model is named.
func (m *ccrModel) checkModel() error {
	kind, file, _ := strings.Cut(m.Oracle, ":")
	switch {
	case m.Oracle == "" && m.URL == "":
		return errors.New("say which model to ask: --url or --oracle")
	case m.URL != "" && !egress.IsHTTP(m.URL):
		return errors.New("--url: want http:// or https:// and a host")
	case m.Oracle != "" && m.URL != "":
		return errors.New("--url or --oracle, not both")
	case m.Oracle != "" && (file == "" || kind != "script"):
		return errors.New("--oracle: want script:FILE")
	case m.AWS && m.URL == "":
		return errors.New("--aws without --url")
	case m.AWS && m.Key != "":
		return errors.New("--key and --aws exclude each other")
	}
	return nil
}

// dialModel opens the model for contexts of the format f.
func (m ccrModel) dialModel(e *env, f format.Name) (*llm.Endpoint, error) {
	of := app.AskedModel(m)
	return of.Dial(f, e.references())
}

// read takes the context of that name apart.
func (c ccrContext) read(e *env, name, model string) (*analysis.Question, error) {
	of := analysis.Context(c)
	q, err := of.Read(e.Stdin, name, model)
	if errors.Is(err, analysis.ErrManifest) {
		return nil, exit.With(exit.Config, err)
	}
	return q, err
}

// coded gives the error of a model that does not answer its exit code.
func coded(err error) error {
	if _, ok := errors.AsType[*analysis.AskError](err); ok {
		return exit.With(exit.Unreachable, err)
	}
	return err
}
