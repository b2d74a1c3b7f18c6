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
	JSON   bool   `name:"json" help:"Print the outcome as JSON."`
	Record string `arg:"" completion:"files" help:"Evidence, as ccr analyze --record writes it, or guard/ID.json of pellucid guard; - is standard input."`
}

func (ccrReplayCmd) Help() string {
	return `The verdict follows from the answers in the record. The same code computes it again, without a
model, and compares the bytes. ccr verify checks who signed the record. Exit codes: 0 the
verdict follows; 1 it does not, or the file cannot be read.`
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

func (c *ccrReplayCmd) Run(e *env) error {
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

// ccrVerifyCmd is the ledger's, under the name that somebody who has a record looks
// for.
type ccrVerifyCmd struct {
	ledgerVerifyCmd
	Record string `completion:"files" placeholder:"FILE" help:"Also replay this evidence, as ccr replay does."`
}

func (ccrVerifyCmd) Help() string {
	return `Checks signatures, inclusion and consistency of the log, as ledger verify does. With --record it
also checks that the verdict of the evidence follows from its answers, and that a record of the
ledger in the store has the digest of the evidence. Exit codes: 0 all checks passed; 1 a check
failed, or a file cannot be read; 4 the store cannot be reached.`
}

func (c *ccrVerifyCmd) Run(e *env) error {
	if c.Record != "" {
		out, _, err := replay(e, c.Record)
		if err != nil {
			return err
		}
		if !out.Holds {
			return fmt.Errorf("ccr: %s: %s", terminal.InputName(c.Record), out.Problem)
		}
		fmt.Fprintf(e.Stderr, "%s: the verdict follows\n", out.Record)
		if c.Dir == "" && c.Proof == "" {
			file, err := terminal.ReadInput(c.Record, e.Stdin)
			if err != nil {
				return err
			}
			id, err := c.ledgerDB.DB.CounterfactualOf(file)
			if err != nil {
				return fmt.Errorf("ccr: %s: %w", terminal.InputName(c.Record), err)
			}
			fmt.Fprintf(e.Stderr, "record %s of the ledger has its digest\n", id)
		}
	}
	return c.ledgerVerifyCmd.Run(e)
}

type ccrRerunCmd struct {
	ccrContext
	ccrModel
	JSON    bool   `name:"json" help:"Print the outcome as JSON."`
	Record  string `arg:"" completion:"files" help:"Evidence, as ccr analyze --record writes it."`
	Context string `arg:"" completion:"files" help:"File of the context that the evidence is about."`
}

func (ccrRerunCmd) Help() string {
	return `Asks the model every question of the record again, and compares the answers with those of the
record. A model that is not deterministic agrees with itself only in part: the interval says how
sure the result is. Exit codes: 0 done, 1 the record is not valid, or belongs to another
context.`
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

func (c *ccrRerunCmd) Run(e *env) error {
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
		return errors.New("ccr: rerun: the record is about another context, or one that was read otherwise")
	}
	client, done, err := c.dial(e, q.Assembly.Format)
	if err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	if err = q.Base(ctx, client); err == nil {
		err = c.rerun(ctx, e, q, client, r)
	}
	return coded(errors.Join(err, done()))
}

func (c *ccrRerunCmd) rerun(ctx context.Context, e *env, q *analysis.Question, client llm.Client, r *counterfactual.Result) error {
	b := terminal.NewBar(e.Stderr, e.Getenv, "ccr rerun", int64(len(r.Observations())))
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
