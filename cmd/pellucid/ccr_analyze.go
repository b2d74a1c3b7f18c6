// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	asking "github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/privacy"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrAnalyzeCmd struct {
	ccrContext
	ccrModel
	Calibration string        `placeholder:"FILE" help:"File that pellucid-lab calibrate wrote for this model."`
	Full        bool          `help:"Also ask about every segment under every perturbation, for the metrics."`
	Calls       int           `placeholder:"N" help:"Maximum number of calls (default: 12; with --full 200)."`
	Tokens      int64         `placeholder:"N" help:"Maximum number of tokens (default: 3 times those of the context; with --full 100 times)."`
	Time        time.Duration `default:"60s" help:"Maximum time."`
	Concurrency int           `default:"4" help:"Number of calls at the same time."`
	Seed        uint64        `help:"Seed of all random choices."`
	Strategy    string        `enum:"prior,uniform,stratified" default:"prior" help:"Order in which segments are withheld: prior (by suspicion), uniform, stratified (by source)."`
	Severity    []float64     `placeholder:"LOW,MEDIUM,HIGH,CRITICAL" help:"Where the bands of severity begin, from 0 to 1."`
	Stable      bool          `help:"Write a record without times: cmp shows whether two runs of one seed came to the same."`
	Record      string        `placeholder:"FILE" help:"Write the evidence into this file, for ccr replay."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
	Context     string        `arg:"" help:"Saved context, or recorded run; - is standard input."`

	ledgerDB

	ccrEmbed

	// Of Calibration.
	rates *counterfactual.Rates
	null  map[string][]int
}

func (c *ccrAnalyzeCmd) Validate() error {
	if n := len(c.Severity); n != 0 && n != 4 || !slices.IsSorted(c.Severity) || n > 0 && (c.Severity[0] < 0 || c.Severity[3] > 1) {
		return errors.New("--severity: want four numbers from 0 to 1 in ascending order")
	}
	return cmp.Or(c.checkModel(), c.ccrEmbed.Validate())
}

// ccrEmbed says who compares the meanings of answers.
type ccrEmbed struct {
	EmbedURL   string `name:"embed-url" placeholder:"URL" help:"Base URL of an endpoint for embeddings (OpenAI's interface), for the metric that compares meanings (default: a comparison of words that is built in)."`
	EmbedModel string `placeholder:"NAME" help:"Model of --embed-url."`
	EmbedKey   string `placeholder:"REF" help:"Reference to the key of --embed-url: env:NAME or file:PATH."`
}

func (m *ccrEmbed) Validate() error {
	switch {
	case m.EmbedURL != "" && !egress.IsHTTP(m.EmbedURL):
		return errors.New("--embed-url: want http:// or https:// and a host")
	case (m.EmbedURL == "") != (m.EmbedModel == ""):
		return errors.New("--embed-url and --embed-model: want both, or neither")
	case m.EmbedKey != "" && m.EmbedURL == "":
		return errors.New("--embed-key without --embed-url")
	}
	return nil
}

func (ccrAnalyzeCmd) Help() string {
	return `A context is a request as it was sent to a provider, with its tools. The model is asked again
with pieces of the context withheld. The question is whether the model still proposes the same
action. No action is carried out: the proposed calls are compared and dropped. The digest of the
evidence goes into the ledger of --db, if that ledger exists. Exit codes: 0 every action may be
carried out, 1 one must not, a capsule of the manifest is broken, or the runs could not decide.`
}

func (c *ccrAnalyzeCmd) Run(e *env) error {
	q, err := c.read(e, c.Context, c.Model)
	if err != nil {
		return err
	}
	if err := c.prepare(); err != nil { // before anybody is paid
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	r, err := c.explain(ctx, e, q)
	if err != nil {
		return coded(err)
	}
	if err := c.write(e, r); err != nil {
		return err
	}
	if !r.Allows() {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

// explain asks those that answer, and makes the report.
func (c *ccrAnalyzeCmd) explain(ctx context.Context, e *env, q *analysis.Question) (*analysis.Report, error) {
	client, err := c.dialModel(e, q.Assembly.Format)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return c.analyze(ctx, e, q, client)
}

// prepare reads the calibration, and checks that the record can be written.
func (c *ccrAnalyzeCmd) prepare() error {
	if err := terminal.CanWrite(c.Record); err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if c.Calibration == "" {
		return nil
	}
	cal, err := app.ReadCalibration(c.Calibration)
	if err != nil {
		return err
	}
	rates, err := cal.Rates()
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("ccr: calibration: %w", err))
	}
	c.rates, c.null = &rates, cal.Null
	return nil
}

// analyze asks, and makes the report.
func (c *ccrAnalyzeCmd) analyze(ctx context.Context, e *env, q *analysis.Question, client llm.Client) (*analysis.Report, error) {
	first, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	if err := q.Base(first, client); err != nil {
		return nil, err
	}
	if c.EmbedURL != "" {
		meaning, err := app.OpenEmbedder(c.EmbedURL, c.EmbedModel, c.EmbedKey, max(c.Calls, 200)+1, e.secrets())
		if err != nil {
			return nil, err
		}
		defer meaning.Close()
		q.Compare(ctx, meaning)
	}
	judge, err := q.Judge()
	if err != nil {
		return nil, err
	}
	q.Null = c.null
	budget := analysis.Budget{Full: c.Full, Calls: c.Calls, Tokens: c.Tokens, Time: c.Time, Concurrency: c.Concurrency, Seed: c.Seed, Rates: c.rates}
	if c.Strategy != "prior" {
		budget.Strategy = counterfactual.Strategy(c.Strategy)
	}
	if s := c.Severity; len(s) == 4 {
		budget.Severity = counterfactual.Bands{Low: int(1000 * s[0]), Medium: int(1000 * s[1]), High: int(1000 * s[2]), Critical: int(1000 * s[3])}
	}
	if c.Stable {
		budget.Concurrency = 1 // answers arrive in the order of the questions
	}
	problem := q.Problem(judge, budget)
	asked := 0
	b := terminal.NewBar(e.Stderr, e.Getenv, "ccr analyze", int64(problem.Budget.Calls))
	by := asking.New(asking.Options{Client: client, Stable: c.Stable, Observe: func(asking.Step) { asked++; b.At(int64(asked), terminal.Plural(asked, "call")) }})
	out, err := by.Run(ctx, asking.Job{ID: "analyze", Assembly: q.Assembly, Judge: judge, Problem: problem})
	b.Done()
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	r, err := analysis.NewReport(q, judge, out.Result)
	if err == nil {
		r.Breaches = q.Breaches(time.Now(), app.MatchesSchema)
	}
	return r, err
}

func (c *ccrAnalyzeCmd) write(e *env, r *analysis.Report) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	id, err := c.DB.KeepCounterfactual(ctx, string(r.Response), r.Evidence())
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if c.Record != "" {
		if err := privacy.WriteFile(c.Record, r.Evidence()); err != nil {
			return fmt.Errorf("ccr: record: %w", terminal.QuotedPath(err))
		}
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, r)
	}
	if id != "" {
		fmt.Fprintf(e.Stderr, "The ledger has it as %s.\n", id)
	}
	return r.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}
