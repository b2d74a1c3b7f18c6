// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	asking "github.com/pellucid-mcp/pellucid/model/counterfactual/run"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type ccrAnalyzeCmd struct {
	ccrContext
	ccrModel
	Calibration string        `completion:"files" placeholder:"FILE" help:"What ccr calibrate measured of this model."`
	Full        bool          `help:"Ask for every segment under every perturbation as well, for the metrics."`
	Calls       int           `placeholder:"N" help:"Most calls (default: 12, with --full 200)."`
	Tokens      int64         `placeholder:"N" help:"Most tokens (default: 3 times what the context costs, with --full 100 times)."`
	Time        time.Duration `default:"60s" help:"Longest time."`
	Concurrency int           `default:"4" help:"Calls at the same time."`
	Seed        uint64        `help:"Of everything that is drawn."`
	Record      string        `placeholder:"FILE" help:"Write the evidence: ccr replay derives the verdict from it again."`
	HTML        string        `name:"html" placeholder:"FILE" help:"Write the report as one HTML file, with the picture."`
	JSON        bool          `name:"json" help:"Print the report as JSON."`
	Context     string        `arg:"" completion:"files" help:"Saved context, or recorded run; - is standard input."`

	ledgerDB

	rates *counterfactual.Rates // of Calibration
}

func (ccrAnalyzeCmd) Help() string {
	return `A context is a request as it was sent to a provider, with its tools. The model is asked
again with pieces of it withheld, and what matters is whether the same action recurs.
Nothing is carried out: calls that the model proposes are compared and dropped. The digest
of the evidence goes into the ledger of --db, where one has begun. Exit
codes: 0 every action may be carried out, 1 one must not, or nothing could be decided.`
}

// A ccrQuestion is a context that was read, and the answer to be explained.
type ccrQuestion struct {
	assembly *counterfactual.Assembly
	answer   *counterfactual.Answer // nil: to be asked for
	policy   *counterfactual.Policy
}

// read takes the context apart.
func (c *ccrContext) read(e *env, name, model string) (*ccrQuestion, error) {
	b, err := terminal.ReadInput(name, e.Stdin)
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	q := &ccrQuestion{policy: c.policy()}
	format := counterfactual.Format(c.Format)
	if format == "run" || format == "" && looksRecorded(b) {
		if b, q.answer, err = c.recorded(b); err != nil {
			return nil, err
		}
		format = counterfactual.FormatChat
	}
	if format == "" {
		if format = counterfactual.Sniff(b); format == "" {
			return nil, errors.New("ccr: not a context: no request of a known format, and no recorded run")
		}
	}
	if b, err = c.complete(b, format, model); err != nil {
		return nil, err
	}
	if q.assembly, err = counterfactual.Parse(format, b, counterfactual.ParseOptions{}); err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	if c.Answer != "" {
		body, err := terminal.ReadInput(c.Answer, nil)
		if err != nil {
			return nil, fmt.Errorf("ccr: answer: %w", err)
		}
		if q.answer, err = counterfactual.ParseAnswer(format, body); err != nil {
			return nil, fmt.Errorf("ccr: answer: %w", err)
		}
	}
	return q, nil
}

// looksRecorded: a run's calls are {id, function, args}, or it names its pipeline.
func looksRecorded(b []byte) bool {
	var doc strictjson.Doc
	if doc.Reset(b, strictjson.Limits{MendSurrogates: true}) != nil {
		return false
	}
	if doc.Root().Get("pipeline_name").Exists() {
		return true
	}
	for m := range doc.Root().Get("messages").Elements() {
		for call := range m.Get("tool_calls").Elements() {
			return call.Get("function").Kind() == '"'
		}
	}
	return false
}

// recorded is the turn of a run that is to be explained.
func (c *ccrContext) recorded(b []byte) ([]byte, *counterfactual.Answer, error) {
	r, err := counterfactual.ParseRun(b)
	if err != nil {
		return nil, nil, fmt.Errorf("ccr: %w", err)
	}
	turn := c.Turn
	policy := c.policy()
	for i := r.Turns() - 1; turn < 0 && i >= 0; i-- {
		if len(r.Answer(i).Calls) > 0 && len(policy.Targets(r.Answer(i))) > 0 {
			turn = i
		}
	}
	if turn < 0 || turn >= r.Turns() {
		return nil, nil, errors.New("ccr: recorded run: no such turn, or none that proposed something privileged")
	}
	return r.Context(turn), r.Answer(turn), nil
}

// complete adds what a request needs to be sent: a model, and the tools.
func (c *ccrContext) complete(b []byte, f counterfactual.Format, model string) ([]byte, error) {
	var doc strictjson.Doc
	if err := doc.Reset(b, strictjson.Limits{}); err != nil {
		return nil, fmt.Errorf("ccr: context: %w", err)
	}
	root := doc.Root()
	if root.Kind() == '[' { // the bare list of messages
		list := "messages"
		if f == counterfactual.FormatResponses {
			list = "input"
		}
		whole := append([]byte(`{"`+list+`":`), root.Raw()...)
		return c.complete(append(whole, '}'), f, model)
	}
	var e strictjson.Edits
	set := func(name string, raw []byte) {
		if v := root.Get(name); v.Exists() {
			e.Replace(v, raw)
		} else {
			e.Append(root, name, raw)
		}
	}
	if model != "" {
		set("model", strictjson.AppendQuote(nil, model))
	}
	if c.Tools != "" {
		tools, err := terminal.ReadInput(c.Tools, nil)
		if err != nil {
			return nil, fmt.Errorf("ccr: tools: %w", err)
		}
		var list strictjson.Doc
		if err := list.Reset(tools, strictjson.Limits{}); err != nil || list.Root().Kind() != '[' {
			return nil, errors.New("ccr: tools: want a strict JSON array")
		}
		set("tools", list.Root().Raw())
	}
	return e.Apply(nil, root), nil
}

// base asks for the answer to be explained where nobody has given it.
func (q *ccrQuestion) base(ctx context.Context, client llm.Client) error {
	if q.answer != nil {
		return nil
	}
	r, err := askModel(ctx, client, q.assembly, q.assembly.Source())
	if err == nil {
		q.answer = r.answer
	}
	return err
}

// A ccrReply is one answer of the model, with who gave it.
type ccrReply struct {
	answer *counterfactual.Answer
	model  string // ModelDigest
	name   string // third-party text
	tokens int64  // 0 = not known
}

// askModel puts one request.
func askModel(ctx context.Context, client llm.Client, a *counterfactual.Assembly, src []byte) (*ccrReply, error) {
	raw, _, err := asking.Question(a.Format, src, 0)
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	r, err := client.Complete(ctx, llm.Request{Raw: raw})
	if err != nil {
		return nil, exit.With(exit.Unreachable, fmt.Errorf("ccr: ask: %w", err))
	}
	answer, err := counterfactual.ParseAnswer(a.Format, r.Answer)
	if err != nil {
		return nil, fmt.Errorf("ccr: ask: %w", err)
	}
	out := &ccrReply{answer: answer, model: counterfactual.ModelDigest(r.Model, r.Fingerprint), name: r.Model}
	if r.Usage.Known {
		out.tokens = r.Usage.Input + r.Usage.Output
	}
	return out, nil
}

// judge compares answers with the one to be explained.
func (q *ccrQuestion) judge() (*counterfactual.Judge, error) {
	targets := q.policy.Targets(q.answer)
	if len(targets) == 0 {
		return nil, errors.New("ccr: the answer proposes nothing that needs an explanation: see --privileged")
	}
	return &counterfactual.Judge{
		Policy: q.policy, Targets: targets, Base: q.answer,
		Trusted: q.assembly.Task + "\n" + q.assembly.Instructions,
		Metrics: counterfactual.Metrics(),
	}, nil
}

func (c *ccrAnalyzeCmd) Run(e *env) error {
	q, err := c.read(e, c.Context, c.Model)
	if err != nil {
		return err
	}
	if err := c.prepare(); err != nil { // before anybody is paid
		return err
	}
	client, done, err := c.dial(e, q.assembly.Format)
	if err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	r, err := c.analyze(ctx, e, q, client)
	if closed := done(); err == nil && closed != nil {
		err = fmt.Errorf("ccr: tape: %w", closed)
	}
	if err != nil {
		return err
	}
	if err := c.write(e, r); err != nil {
		return err
	}
	if r.Response != counterfactual.Allow {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

// prepare reads the calibration, and looks whether what comes of it can be written.
func (c *ccrAnalyzeCmd) prepare() error {
	if err := cmp.Or(terminal.CanWrite(c.Record), terminal.CanWrite(c.HTML)); err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if c.Calibration == "" {
		return nil
	}
	cal, err := readCalibration(c.Calibration)
	if err != nil {
		return err
	}
	rates, err := cal.Rates()
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("ccr: calibration: %w", err))
	}
	c.rates = &rates
	return nil
}

// analyze asks, and makes the report.
func (c *ccrAnalyzeCmd) analyze(ctx context.Context, e *env, q *ccrQuestion, client llm.Client) (*ccrReport, error) {
	first, cancel := context.WithTimeout(ctx, c.Time)
	err := q.base(first, client)
	cancel()
	if err != nil {
		return nil, err
	}
	judge, err := q.judge()
	if err != nil {
		return nil, err
	}
	problem, err := c.problem(q, judge)
	if err != nil {
		return nil, err
	}
	asked := 0
	b := newBar(e, "ccr analyze", int64(problem.Budget.Calls), func() string { return terminal.Plural(asked, "call") })
	runner := asking.New(asking.Options{Client: client, Observe: func(asking.Step) { asked++; b.at(int64(asked)) }})
	out, err := runner.Run(ctx, asking.Job{ID: "analyze", Assembly: q.assembly, Judge: judge, Problem: problem})
	b.done()
	if err != nil {
		return nil, fmt.Errorf("ccr: %w", err)
	}
	return newReport(q, judge, out.Result)
}

func (c *ccrAnalyzeCmd) problem(q *ccrQuestion, judge *counterfactual.Judge) (counterfactual.Problem, error) {
	p := q.assembly.Problem(judge.Targets, 0)
	calls, times := 12, int64(3)
	if c.Full {
		calls, times = 200, 100
		p.Full = true
	}
	p.Refine = true // after the verdict and its certificate, if calls are left
	p.Seed = c.Seed
	p.Budget.Calls, p.Budget.Tokens = c.Calls, c.Tokens
	if c.Calls == 0 {
		p.Budget.Calls = calls
	}
	p.Budget.AnswerTokens = answerTokens
	if c.Tokens == 0 {
		p.Budget.Tokens = times * (p.Budget.BaseTokens + int64(p.Budget.Calls)*answerTokens/times)
	}
	p.Budget.Millis, p.Budget.Concurrency = c.Time.Milliseconds(), max(c.Concurrency, 1)
	if c.rates != nil {
		p.Rates = *c.rates
	}
	return p, nil
}

// answerTokens bounds one answer: a tool call is short, and only that is compared.
const answerTokens = 4096

func (c *ccrAnalyzeCmd) write(e *env, r *ccrReport) error {
	id, err := keepRecord(c.ledgerDB, string(r.Response), r.record)
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if c.Record != "" {
		if err := os.WriteFile(c.Record, r.record, 0o600); err != nil {
			return fmt.Errorf("ccr: record: %w", plainPath(err))
		}
	}
	if c.HTML != "" {
		if err := terminal.WriteWhole(c.HTML, r.html); err != nil {
			return fmt.Errorf("ccr: html: %w", plainPath(err))
		}
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, r)
	}
	if id != "" {
		fmt.Fprintf(e.Stderr, "The ledger has it as %s.\n", id)
	}
	return r.print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}
