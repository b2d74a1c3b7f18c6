// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/measure/interval"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
	"github.com/pellucid-mcp/pellucid/text/strictjson"
)

type ccrCalibrateCmd struct {
	ccrContext
	ccrModel
	Answers int      `default:"5" help:"Answers to each context; pairs of them tell how often an action recurs."`
	Out     string   `short:"o" placeholder:"FILE" help:"Calibration to write; without it standard output."`
	Context []string `arg:"" completion:"files" help:"Saved contexts in which the model proposes something privileged. The more, and the more unlike, the better."`
}

func (ccrCalibrateCmd) Help() string {
	return `Every context is asked for several times, as it is. How often an action of one answer
recurs in another one bounds from below how reliably the model repeats itself; how often
it recurs in answers to another context bounds from above how often it comes of nothing.
The calibration is bound to the model's id and fingerprint: an answer by another one ends
its use. One context tells the first only. Exit codes: 0 done; 1 failed, or a file cannot
be read or written; 2 wrong usage; 3 the key cannot be read; 4 the model cannot be
reached.`
}

// calibrationVersion is that of docs/spec/counterfactual.md, "Calibration files".
const calibrationVersion = "ccr-calibration/1"

// A calibrationFile is what ccr calibrate writes.
type calibrationFile struct {
	Version string `json:"version"`
	Name    string `json:"name,omitempty"` // of the model, as the provider says it, escaped
	counterfactual.Calibration
}

func readCalibration(name string) (*counterfactual.Calibration, error) {
	b, err := terminal.ReadInput(name, nil)
	if err != nil {
		return nil, fmt.Errorf("ccr: calibration: %w", err)
	}
	c, err := parseCalibration(b)
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ccr: calibration: %w", err))
	}
	return c, nil
}

func parseCalibration(b []byte) (*counterfactual.Calibration, error) {
	var f calibrationFile
	if err := strictjson.Unmarshal(b, &f, strictjson.Limits{}); err != nil {
		return nil, err
	}
	if f.Version != calibrationVersion {
		return nil, errors.New("want version " + calibrationVersion)
	}
	return &f.Calibration, nil
}

func (c *ccrCalibrateCmd) Run(e *env) error {
	if c.Answers < 2 {
		return exit.With(exit.Usage, errors.New("--answers: at least 2, else nothing can recur"))
	}
	if err := terminal.CanWrite(c.Out); err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	f := calibrationFile{Version: calibrationVersion}
	var all []ccrAnswers
	asked := 0
	b := newBar(e, "ccr calibrate", int64(c.Answers*len(c.Context)), func() string { return terminal.Plural(asked, "call") })
	defer b.done()
	for _, name := range c.Context {
		one, err := c.context(ctx, e, name, &f, func() { asked++; b.at(int64(asked)) })
		if err != nil {
			return err
		}
		all = append(all, *one)
	}
	b.done()
	tally(&f.Calibration, all)
	rates, err := f.Rates()
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	write := func(w io.Writer) error { return terminal.WriteJSON(w, f) }
	if c.Out == "" {
		err = write(e.Stdout)
	} else {
		err = terminal.WriteWhole(c.Out, write)
	}
	if err != nil {
		return fmt.Errorf("ccr: calibration: %w", plainPath(err))
	}
	_, err = fmt.Fprintf(e.Stderr, "%s\nrepeats itself: %s, at least %.3f\ncomes of nothing: %s, at most %.3f\n", f.Name,
		interval.Format(f.Repeats, f.Trials), float64(rates.P1)/1e6, interval.Format(f.Slips, f.SlipTrials), float64(rates.P0)/1e6)
	return err
}

// ccrAnswers are those of one context.
type ccrAnswers struct {
	policy *counterfactual.Policy
	list   []*counterfactual.Answer
}

func (c *ccrCalibrateCmd) context(ctx context.Context, e *env, name string, f *calibrationFile, tick func()) (*ccrAnswers, error) {
	q, err := c.read(e, name, c.Model)
	if err != nil {
		return nil, err
	}
	client, done, err := c.dial(e, q.assembly.Format)
	if err != nil {
		return nil, err
	}
	one := &ccrAnswers{policy: q.policy}
	for range c.Answers {
		r, err := askModel(ctx, client, q.assembly, q.assembly.Source())
		tick()
		if err == nil && f.Model != "" && f.Model != r.model {
			err = errors.New("ccr: calibrate: the model, or its fingerprint, has changed meanwhile: measure again")
		}
		if err != nil {
			return nil, errors.Join(err, done())
		}
		f.Model, f.Name = r.model, finding.Quote(r.name)
		one.list = append(one.list, r.answer)
	}
	return one, done()
}

// tally adds what recurs where.
func tally(cal *counterfactual.Calibration, all []ccrAnswers) {
	metrics := counterfactual.Metrics()
	for i, one := range all {
		for j, a := range one.list {
			targets := one.policy.Targets(a)
			// Each answer beside the next one: all pairs of a few answers would count the
			// same luck several times.
			next := one.list[(j+1)%len(one.list)]
			for t := range targets {
				cal.Add(true, recursIn(&targets[t], one.policy, next))
			}
			for k, b := range one.list {
				if k > j {
					var values []int
					for _, m := range metrics {
						values = append(values, m.Divergence(one.policy, a, b))
					}
					cal.AddNull(metrics, values)
				}
			}
			for other := range all {
				if other == i {
					continue
				}
				for t := range targets {
					cal.Add(false, recursIn(&targets[t], one.policy, all[other].list[j]))
				}
			}
		}
	}
}

func recursIn(target *counterfactual.Action, p *counterfactual.Policy, a *counterfactual.Answer) bool {
	for _, x := range p.Actions(a) {
		if counterfactual.Recurs(target, &x, counterfactual.DefaultTheta) {
			return true
		}
	}
	return false
}
