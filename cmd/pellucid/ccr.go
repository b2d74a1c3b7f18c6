// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ccrCmd is counterfactual context reassembly for a person.
type ccrCmd struct {
	Analyze   ccrAnalyzeCmd   `cmd:"" help:"Find the piece of a saved context that took control of the model."`
	Calibrate ccrCalibrateCmd `cmd:"" help:"Measure how reliably a model repeats itself."`
	Replay    ccrReplayCmd    `cmd:"" help:"Derive the verdict of a record again, without a model, octet for octet."`
	Verify    ccrVerifyCmd    `cmd:"" help:"Check the log that holds the records, as ledger verify does."`
	Rerun     ccrRerunCmd     `cmd:"" help:"Ask the model everything again that a record says was asked."`
	Bench     ccrBenchCmd     `cmd:"" help:"Measure on recorded runs and simulated models, beside published methods."`
}

// ccrContext says which context is meant.
type ccrContext struct {
	Format     string   `enum:",openai-chat,openai-responses,anthropic-messages,run" default:"" help:"What CONTEXT is: openai-chat, openai-responses, anthropic-messages, or run, a recorded run. Without it: what it looks like."`
	Turn       int      `default:"-1" help:"Of a recorded run: the turn of the model to explain, from 0. Without it: the last one that proposed something privileged."`
	Answer     string   `completion:"files" placeholder:"FILE" help:"The answer to be explained, as the provider sent it. Without it: what the run says, or what the model is asked for first."`
	Tools      string   `completion:"files" placeholder:"FILE" help:"JSON array of the tools, for a context that was saved without."`
	Privileged []string `placeholder:"GLOB" help:"Tools whose calls need an explanation. Without any: every tool whose name does not begin with get, list, read, search or the like."`
}

// ccrModel says who answers.
type ccrModel struct {
	URL   string `name:"url" placeholder:"URL" help:"Base URL of the model's endpoint, such as http://127.0.0.1:11434/v1."`
	Model string `placeholder:"NAME" help:"Model to ask (default: what the context says)."`
	API   string `name:"api" enum:",chat,responses,messages" default:"" help:"Wire format of the endpoint: chat, responses or messages (default: that of the context, which it has to be)."`
	Key   string `placeholder:"REF" help:"Reference to the endpoint's key: env:NAME or file:PATH."`

	Oracle string `placeholder:"KIND:FILE" help:"Instead of an endpoint: replay:FILE, a cassette of an earlier --tape, or script:FILE, answers by what the request holds."`
	Tape   string `placeholder:"FILE" help:"Write every exchange down, for --oracle replay: it holds the whole context."`

	NoTemperature bool `help:"Do not ask for temperature 0: some models refuse it."`
}

// Validate is called by kong; its error is one of usage.
func (m *ccrModel) Validate() error {
	kind, file, _ := strings.Cut(m.Oracle, ":")
	switch {
	case m.Oracle == "" && m.URL == "":
		return errors.New("say which model to ask: --url or --oracle")
	case m.URL != "" && !rules.IsHTTP(m.URL):
		return errors.New("--url: want http:// or https:// and a host")
	case m.Oracle != "" && m.URL != "":
		return errors.New("--url or --oracle, not both")
	case m.Oracle != "" && (file == "" || kind != "replay" && kind != "script"):
		return errors.New("--oracle: want replay:FILE or script:FILE")
	case m.Tape != "" && kind == "replay":
		return errors.New("--tape beside --oracle replay: there is nothing new to write")
	}
	return nil
}

// formatOf is the wire format of contexts of f.
var formatOf = map[counterfactual.Format]llm.Format{
	counterfactual.FormatChat: llm.FormatChat, counterfactual.FormatMessages: llm.FormatMessages, counterfactual.FormatResponses: llm.FormatResponses,
}

// dial is the model that is asked. Whoever is done with it calls done, whose error is
// that of the tape.
func (m *ccrModel) dial(e *env, f counterfactual.Format) (client *llm.Endpoint, done func() error, err error) {
	o := llm.Options{Format: formatOf[f], BaseURL: m.URL, Model: "context", NoTemperature: m.NoTemperature}
	if m.API != "" && m.API != map[llm.Format]string{llm.FormatChat: "chat", llm.FormatMessages: "messages", llm.FormatResponses: "responses"}[o.Format] {
		return nil, nil, exit.With(exit.Usage, errors.New("ccr: --api: the context is of another format, and is not translated"))
	}
	if m.Key != "" {
		secret, err := e.secrets().optional("--key", m.Key)
		if err != nil {
			return nil, nil, err
		}
		o.Key = llm.NewKey(m.Key, func() (string, error) { return secret, nil })
	}
	if m.Oracle != "" {
		o.BaseURL = "http://127.0.0.1/v1" // nobody is called there
		if err := m.offline(&o); err != nil {
			return nil, nil, err
		}
	}
	closeTape := func() error { return nil }
	if m.Tape != "" {
		w, err := os.OpenFile(m.Tape, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("ccr: tape: %w", plainPath(err))
		}
		o.Recorder = llm.NewRecorder(w)
		closeTape = func() error { return errors.Join(o.Recorder.Err(), w.Close()) }
	}
	client, err = llm.New(o)
	if err != nil {
		closeTape()
		return nil, nil, exit.With(exit.Config, fmt.Errorf("ccr: %w", err))
	}
	return client, func() error { client.Close(); return closeTape() }, nil
}

func (m *ccrModel) offline(o *llm.Options) error {
	kind, name, _ := strings.Cut(m.Oracle, ":")
	f, err := terminal.OpenInput(name, nil)
	if err != nil {
		return fmt.Errorf("ccr: oracle: %w", err)
	}
	defer f.Close()
	if kind == "replay" {
		if o.Tape, err = llm.Play(f); err != nil {
			return exit.With(exit.Config, fmt.Errorf("ccr: oracle: %w", err))
		}
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, terminal.MaxInput))
	if err != nil {
		return fmt.Errorf("ccr: oracle: %w", err)
	}
	if o.Transport, err = llm.ParseScript(b); err != nil {
		return exit.With(exit.Config, fmt.Errorf("ccr: oracle: %w", err))
	}
	return nil
}

// plainPath is err without the path that the caller names, escaped.
func plainPath(err error) error {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", finding.Quote(pe.Path), pe.Err)
	}
	return err
}

// read takes the context of that name apart.
func (c ccrContext) read(e *env, name, model string) (*analysis.Question, error) {
	of := analysis.Context(c)
	return of.Read(e.Stdin, name, model)
}

// coded gives the error of a model that does not answer its exit code.
func coded(err error) error {
	if _, ok := errors.AsType[*analysis.AskError](err); ok {
		return exit.With(exit.Unreachable, err)
	}
	return err
}
