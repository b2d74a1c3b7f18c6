// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/interval"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrReplayCmd struct {
	ccrContext
	ccrModel
	JSON    bool   `name:"json" help:"Print the outcome as JSON."`
	Record  string `arg:"" completion:"files" help:"Evidence, as ccr analyze --record writes it, or guard/ID.json of pellucid guard; - is standard input."`
	Context string `arg:"" optional:"" completion:"files" help:"File of the context that the evidence is about: ask the model every question again, too."`
}

func (ccrReplayCmd) Help() string {
	return `The verdict follows from the answers in the record. The same code computes it again, without a
model, and compares the bytes. ledger verify --record checks who signed the record. With CONTEXT it asks the model every
question of the record again, and compares the answers with those of the record. A model that is not
deterministic agrees with itself only in part: the interval says how sure the result is. Exit codes: 0 the
verdict follows, or the answers were compared; 1 it does not, the file cannot be read, or it is about another context.`
}

// replay derives the attribution of the record of that name again.
func replay(e *env, name string) (*analysis.Replayed, *counterfactual.Result, error) {
	b, err := terminal.ReadInput(name, e.Stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("ccr: %w", err)
	}
	out, r := analysis.Replay(b)
	return out, r, nil
}

func (c *ccrReplayCmd) Validate() error {
	if c.Context == "" {
		return nil
	}
	return c.check(false)
}

func (c *ccrReplayCmd) Run(e *env) error {
	if c.Context != "" {
		return c.askAgain(e)
	}
	out, r, err := replay(e, c.Record)
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, out)
	} else if out.Holds {
		err = out.Print(e.Stdout, r)
	}
	switch {
	case err != nil:
		return err
	case !out.Holds && c.JSON:
		return exit.With(exit.Failed, nil)
	case !out.Holds:
		return fmt.Errorf("ccr: %s: %s", terminal.InputName(c.Record), out.Problem)
	}
	return nil
}

// A rerunReport is what --json prints.
type rerunReport struct {
	Questions int     `json:"questions"`
	Agree     int     `json:"agree"` // outcomes that are as they were
	Outcomes  int     `json:"outcomes"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Failed    int     `json:"failed"`     // questions without an answer
	SameModel int     `json:"same_model"` // answers by the model and fingerprint of then
}

// askAgain asks the model every question of the record again.
func (c *ccrReplayCmd) askAgain(e *env) error {
	out, r, err := replay(e, c.Record)
	if err != nil {
		return err
	}
	if r == nil {
		return fmt.Errorf("ccr: %s: %s", terminal.InputName(c.Record), out.Problem)
	}
	q, err := c.read(e, c.Context, c.Model)
	if err != nil {
		return err
	}
	if q.Assembly.ID() != r.Problem().Assembly {
		return errors.New("ccr: replay: the record is about another context, or one that was read otherwise")
	}
	client, err := c.dial(e, q.Assembly.Format)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := exit.UntilSignal()
	defer stop()
	if err = q.Base(ctx, client); err == nil {
		err = c.rerun(ctx, e, q, client, r)
	}
	return coded(err)
}

func (c *ccrReplayCmd) rerun(ctx context.Context, e *env, q *analysis.Question, client llm.Client, r *counterfactual.Result) error {
	b := terminal.NewBar(e.Stderr, e.Getenv, "ccr replay", int64(len(r.Observations())))
	got, err := q.Rerun(ctx, client, r, func(n int) { b.At(int64(n), terminal.Plural(n, "call")) })
	b.Done()
	if err != nil {
		return err
	}
	out := rerunReport{Questions: got.Questions, Agree: got.Agree, Outcomes: got.Outcomes, Failed: got.Failed, SameModel: got.SameModel}
	out.Low, out.High = interval.Wilson(got.Agree, got.Outcomes)
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, out)
	}
	_, err = fmt.Fprintf(e.Stdout, "agrees in %s of %s\n%s, %d without an answer, %d by the same model and fingerprint\n",
		interval.Format(out.Agree, out.Outcomes), terminal.Plural(out.Outcomes, "outcome"), terminal.Plural(out.Questions, "question"), out.Failed, out.SameModel)
	return err
}
