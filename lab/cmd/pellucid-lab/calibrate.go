// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/lab/calibration"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// calibrateContext has the fields of analysis.Context, which say what the contexts are.
type calibrateContext struct {
	Format     string   `enum:",openai-chat,openai-responses,anthropic-messages,google-gemini,bedrock-converse,bedrock-messages,run" default:"" help:"Format of CONTEXT, as for pellucid ccr analyze (default: detected)."`
	Turn       int      `default:"-1" help:"For a recorded run: number of the turn, from 0 (default: the last turn that proposed a privileged call)."`
	Answer     string   `hidden:""`
	Tools      string   `placeholder:"FILE" help:"File with a JSON array of the tools, for a context that was saved without them."`
	Privileged []string `placeholder:"GLOB" help:"Tools whose calls need an explanation (default: every tool whose name does not begin with get, list, read, search or the like)."`
	Manifest   string   `placeholder:"FILE" help:"What is known of CONTEXT beside its bytes (docs/spec/counterfactual.md, Manifest of a context)."`
}

// calibrateModel has the fields of app.AskedModel, which say who answers.
type calibrateModel struct {
	URL   string `name:"url" placeholder:"URL" help:"Base URL of the model's endpoint, such as http://127.0.0.1:11434/v1."`
	Model string `placeholder:"NAME" help:"Model to ask (default: the model that the context names; contexts of Gemini and Amazon Bedrock name none)."`
	API   string `name:"api" enum:",chat,responses,messages,gemini,converse,invoke" default:"" help:"Wire format of the endpoint: chat, responses, messages, gemini, converse or invoke. It must be the format of the context, which is the default."`
	Key   string `placeholder:"REF" help:"Reference to the endpoint's key: env:NAME or file:PATH."`
	AWS   bool   `name:"aws" help:"Sign requests for Amazon Bedrock, with the keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN."`

	Oracle string `placeholder:"script:FILE" help:"Take the answers from a file instead of an endpoint: script:FILE (answers by the text of the request)."`

	NoTemperature bool `help:"Do not ask for temperature 0: some models refuse it."`
}

type calibrateCmd struct {
	calibrateContext
	calibrateModel
	Answers int      `default:"5" help:"Number of answers to each context; pairs of answers show how often an action recurs."`
	Out     string   `short:"o" placeholder:"FILE" help:"File to write the calibration into (default: standard output)."`
	Context []string `arg:"" help:"Saved contexts in which the model proposes a privileged call. More, and more different, contexts give a better calibration."`
}

// Validate is called by kong; its error is one of usage.
func (c *calibrateCmd) Validate() error {
	kind, file, _ := strings.Cut(c.Oracle, ":")
	switch {
	case (c.Oracle == "") == (c.URL == ""):
		return errors.New("say which model to ask: --url or --oracle")
	case c.URL != "" && !egress.IsHTTP(c.URL):
		return errors.New("--url: want http:// or https:// and a host")
	case c.Oracle != "" && (file == "" || kind != "script"):
		return errors.New("--oracle: want script:FILE")
	case c.AWS && (c.URL == "" || c.Key != ""):
		return errors.New("--aws: want --url, and no --key")
	case c.Answers < 2:
		return errors.New("--answers: at least 2, else nothing can recur")
	}
	return nil
}

func (calibrateCmd) Help() string {
	return `Asks the model several times for each context, unchanged. How often an action recurs in the
answers to the same context shows how reliably the model repeats itself. How often it recurs
in the answers to another context shows how often it appears without a cause; this needs at least
two contexts. The calibration is valid for one model id and fingerprint: an answer of another
model ends its use. Exit codes: 0 done; 1 failed, or a file cannot be read or written; 2 wrong
usage; 3 the key cannot be read; 4 the model cannot be reached.`
}

func (c *calibrateCmd) Run(e *env) error {
	if err := terminal.CanWrite(c.Out); err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	f := analysis.CalibrationFile{Version: analysis.CalibrationVersion}
	var all []calibration.Answers
	asked := 0
	b := terminal.NewBar(e.Stderr, e.Getenv, "calibrate", int64(c.Answers*len(c.Context)))
	defer b.Done()
	for _, name := range c.Context {
		one, err := c.ask(ctx, e, name, &f, func() { asked++; b.At(int64(asked), terminal.Plural(asked, "call")) })
		if err != nil {
			return err
		}
		all = append(all, *one)
	}
	b.Done()
	calibration.Count(&f.Calibration, all)
	return c.report(e, &f)
}

// ask asks for the answers to one context.
func (c *calibrateCmd) ask(ctx context.Context, e *env, name string, f *analysis.CalibrationFile, tick func()) (*calibration.Answers, error) {
	of := analysis.Context(c.calibrateContext)
	q, err := of.Read(e.Stdin, name, c.Model)
	if errors.Is(err, analysis.ErrManifest) {
		return nil, exit.With(exit.Config, err)
	} else if err != nil {
		return nil, err
	}
	model := app.AskedModel(c.calibrateModel)
	client, err := model.Dial(q.Assembly.Format, references(e))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	one, err := calibration.Ask(ctx, client, q, c.Answers, f, tick)
	if errors.Is(err, calibration.ErrNoAnswer) {
		err = exit.With(exit.Unreachable, err)
	}
	return one, err
}

// report writes the calibration, and prints what it says.
func (c *calibrateCmd) report(e *env, f *analysis.CalibrationFile) error {
	rates, err := f.Rates()
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	write := func(w io.Writer) error { return terminal.WriteJSON(w, f) }
	if c.Out == "" {
		err = write(e.Stdout)
	} else {
		err = terminal.WriteWhole(c.Out, write)
	}
	if err != nil {
		return fmt.Errorf("calibrate: write: %w", terminal.QuotedPath(err))
	}
	fmt.Fprintf(e.Stderr, "%s\nrepeats itself: %s, at least %.3f\ncomes of nothing: %s, at most %.3f\n", f.Name,
		interval.Format(f.Repeats, f.Trials), float64(rates.P1)/1e6, interval.Format(f.Slips, f.SlipTrials), float64(rates.P0)/1e6)
	switch bounds, none := rates.Relaxed(); {
	case none:
		fmt.Fprintln(e.Stderr, "these rates tell nothing apart: the rates of a model that was not measured are used instead")
	case bounds:
		fmt.Fprintln(e.Stderr, "the model repeats itself so rarely that its bounds are relaxed: a decision about it errs more often than 5 % and 2 %")
	}
	return nil
}

// references resolves env:NAME and file:PATH.
func references(e *env) rules.Options {
	return rules.Options{Getenv: func(name string) (string, bool) {
		value := e.Getenv(name)
		return value, value != ""
	}}
}
