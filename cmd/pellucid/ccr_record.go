// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/measure/interval"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/llm"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrReplayCmd struct {
	JSON   bool   `name:"json" help:"Print the outcome as JSON."`
	Record string `arg:"" completion:"files" help:"Evidence, as ccr analyze --record writes it, or guard/ID.json of pellucid guard; - is standard input."`
}

func (ccrReplayCmd) Help() string {
	return `The verdict follows from the answers that the record holds. It is derived again by the
same code, without a model, and has to be the same octets. Who signed the record is
another question: see ccr verify. Exit codes: 0 it follows; 1 it does not, or the file
cannot be read.`
}

// A replayReport is what --json prints.
type replayReport struct {
	Holds    bool                      `json:"holds"`
	Record   string                    `json:"record"` // digest of the octets
	Assembly string                    `json:"assembly,omitempty"`
	Response counterfactual.Response   `json:"response,omitempty"`
	Verdicts []counterfactual.Verdict  `json:"verdicts,omitempty"`
	Stop     counterfactual.StopReason `json:"stop,omitempty"`
	Answers  int                       `json:"answers"`
	Problem  string                    `json:"problem,omitempty"`
	Guard    *guardReport              `json:"guard,omitempty"` // of a decision of pellucid guard
}

type guardReport struct {
	ID     string       `json:"id"`
	Act    guard.Act    `json:"act"`
	Reason guard.Reason `json:"reason"`
	Audit  bool         `json:"audit,omitempty"`
}

func replay(e *env, name string) (*replayReport, *counterfactual.Result, error) {
	b, err := terminal.ReadInput(name, e.Stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("ccr: %w", err)
	}
	sum := sha256.Sum256(b)
	out := &replayReport{Record: "sha256:" + hex.EncodeToString(sum[:])}
	if guard.IsEvidence(b) {
		return replayGuard(b, out)
	}
	r, err := counterfactual.Replay(b)
	if err != nil {
		out.Problem = err.Error()
		return out, nil, nil
	}
	out.Holds, out.Assembly, out.Response = true, r.Problem().Assembly, r.Response()
	out.Verdicts, out.Stop, out.Answers = r.Verdicts, r.Stop, len(r.Observations())
	return out, r, nil
}

// replayGuard is replay of what pellucid guard keeps of a decision.
func replayGuard(b []byte, out *replayReport) (*replayReport, *counterfactual.Result, error) {
	g, err := guard.Replay(b)
	if err != nil {
		out.Problem = err.Error()
		return out, nil, nil
	}
	out.Holds, out.Response = true, g.Response
	out.Guard = &guardReport{g.ID, g.Act, g.Reason, g.Audit}
	var first *counterfactual.Result
	for _, r := range g.Runs {
		if first == nil {
			first, out.Assembly, out.Stop = r, r.Problem().Assembly, r.Stop
		}
		out.Verdicts = append(out.Verdicts, r.Verdicts...)
		out.Answers += len(r.Observations())
	}
	return out, first, nil
}

func (c *ccrReplayCmd) Run(e *env) error {
	out, r, err := replay(e, c.Record)
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, out)
	} else if out.Holds {
		err = printReplay(e, out, r)
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

func printReplay(e *env, out *replayReport, r *counterfactual.Result) error {
	if g := out.Guard; g != nil {
		fmt.Fprintf(e.Stdout, "%s  %s, %s\n", g.ID, g.Act, g.Reason)
	}
	if r == nil { // nothing was run
		_, err := fmt.Fprintf(e.Stdout, "%s\n", out.Record)
		return err
	}
	p := r.Problem()
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		fmt.Fprintf(e.Stdout, "%s  %s: %s, evidence %g to 1\n", v.Response, terminal.Inline(p.Targets[v.Target].Tool), v.Class, odds(v.LogE))
		for _, cause := range v.Causes {
			for s := range cause.Segments.Places() {
				u := &p.Segments[s]
				fmt.Fprintf(e.Stdout, "  caused by %s, %s, %s\n", terminal.Inline(u.ID), terminal.Inline(u.Source), terminal.Inline(u.Digest))
			}
		}
	}
	_, err := fmt.Fprintf(e.Stdout, "the verdict follows from %s, octet for octet\n%s\n", terminal.Plural(out.Answers, "answer"), out.Record)
	return err
}

// ccrVerifyCmd is the ledger's, under the name that somebody who has a record looks
// for.
type ccrVerifyCmd struct {
	ledgerVerifyCmd
	Record string `completion:"files" placeholder:"FILE" help:"Replay this evidence as well: ccr replay."`
}

func (ccrVerifyCmd) Help() string {
	return `Signatures, inclusion and consistency of the log are checked as ledger verify does; with
--record, that the verdict of the evidence follows from its answers, and that a record of
the ledger in the store has its digest. Exit codes: 0
all holds; 1 something does not, or a file cannot be read; 4 the store cannot be reached.`
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
			id, err := recordedIn(c.ledgerDB, file)
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
	Context string `arg:"" completion:"files" help:"The context that it is about."`
}

func (ccrRerunCmd) Help() string {
	return `Every question of the record is put to the model once more, and what recurs is compared
with what recurred then. A model that is not deterministic agrees with itself in part
only: the interval says how much was seen. Exit codes: 0 done, 1 the record does not
hold, or is of another context.`
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
	if q.assembly.ID() != r.Problem().Assembly {
		return errors.New("ccr: rerun: the record is about another context, or one that was read otherwise")
	}
	client, done, err := c.dial(e, q.assembly.Format)
	if err != nil {
		return err
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	if err = q.base(ctx, client); err == nil {
		err = c.rerun(ctx, e, q, client, r)
	}
	return errors.Join(err, done())
}

func (c *ccrRerunCmd) rerun(ctx context.Context, e *env, q *ccrQuestion, client llm.Client, r *counterfactual.Result) error {
	judge, err := q.judge()
	if err != nil {
		return err
	}
	targets := r.Problem().Targets
	if len(judge.Targets) != len(targets) {
		return errNotTheAnswer
	}
	for i := range targets {
		if judge.Targets[i].Digest() != targets[i].Digest {
			return errNotTheAnswer
		}
	}
	var out rerunReport
	was := r.Observations()
	b := newBar(e, "ccr rerun", int64(len(was)), func() string { return terminal.Plural(out.Questions, "call") })
	defer b.done()
	for _, o := range was {
		if o.Failure != counterfactual.FailNone {
			continue
		}
		src, err := q.assembly.Render(o.Variant)
		if err != nil {
			return fmt.Errorf("ccr: rerun: %w", err)
		}
		out.Questions++
		b.at(int64(out.Questions))
		now, err := askModel(ctx, client, q.assembly, src)
		if ctx.Err() != nil {
			return fmt.Errorf("ccr: rerun: %w", ctx.Err())
		}
		if err != nil {
			out.Failed++
			continue
		}
		if now.model == o.Model {
			out.SameModel++
		}
		again := judge.Observe(counterfactual.Probe{Variant: o.Variant, Replicate: o.Replicate}, now.answer)
		for t := range o.Outcomes {
			out.Outcomes++
			if again.Outcomes[t].Recurs == o.Outcomes[t].Recurs {
				out.Agree++
			}
		}
	}
	b.done()
	out.Low, out.High = interval.Wilson(out.Agree, out.Outcomes)
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, out)
	}
	_, err = fmt.Fprintf(e.Stdout, "agrees in %s of %s\n%s, %d without an answer, %d by the same model and fingerprint\n",
		interval.Format(out.Agree, out.Outcomes), terminal.Plural(out.Outcomes, "outcome"), terminal.Plural(out.Questions, "question"), out.Failed, out.SameModel)
	return err
}

var errNotTheAnswer = errors.New("ccr: rerun: the answer proposes other actions than the record explains: give it with --answer")
