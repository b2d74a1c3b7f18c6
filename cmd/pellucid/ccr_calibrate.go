// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/measure/interval"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrCalibrateCmd struct {
	ccrContext
	ccrModel
	Answers int      `default:"5" help:"Number of answers to each context; pairs of answers show how often an action recurs."`
	Out     string   `short:"o" placeholder:"FILE" help:"File to write the calibration into (default: standard output)."`
	Context []string `arg:"" completion:"files" help:"Saved contexts in which the model proposes a privileged call. More, and more different, contexts give a better calibration."`
}

func (ccrCalibrateCmd) Help() string {
	return `Asks the model several times for each context, unchanged. How often an action recurs in the
answers to the same context shows how reliably the model repeats itself. How often it recurs
in the answers to another context shows how often it appears without a cause; this needs at least
two contexts. The calibration is valid for one model id and fingerprint: an answer
of another model ends its use. Exit codes: 0 done; 1 failed, or a file cannot be read or written; 2 wrong
usage; 3 the key cannot be read; 4 the model cannot be reached.`
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
	f := analysis.CalibrationFile{Version: analysis.CalibrationVersion}
	var all []analysis.Answers
	asked := 0
	b := terminal.NewBar(e.Stderr, e.Getenv, "ccr calibrate", int64(c.Answers*len(c.Context)))
	defer b.Done()
	for _, name := range c.Context {
		one, err := c.context(ctx, e, name, &f, func() { asked++; b.At(int64(asked), terminal.Plural(asked, "call")) })
		if err != nil {
			return err
		}
		all = append(all, *one)
	}
	b.Done()
	analysis.Tally(&f.Calibration, all)
	rates, err := f.Rates()
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if err := c.write(e, f); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stderr, "%s\nrepeats itself: %s, at least %.3f\ncomes of nothing: %s, at most %.3f\n", f.Name,
		interval.Format(f.Repeats, f.Trials), float64(rates.P1)/1e6, interval.Format(f.Slips, f.SlipTrials), float64(rates.P0)/1e6)
	if err != nil {
		return err
	}
	switch bounds, none := rates.Relaxed(); {
	case none:
		_, err = fmt.Fprintln(e.Stderr, "these rates tell nothing apart: the rates of a model that was not measured are used instead")
	case bounds:
		_, err = fmt.Fprintln(e.Stderr, "the model repeats itself so rarely that its bounds are relaxed: a decision about it errs more often than 5 % and 2 %")
	}
	return err
}

// context asks for the answers to one context.
func (c *ccrCalibrateCmd) context(ctx context.Context, e *env, name string, f *analysis.CalibrationFile, tick func()) (*analysis.Answers, error) {
	q, err := c.read(e, name, c.Model)
	if err != nil {
		return nil, err
	}
	client, done, err := c.ccrModel.dial(e, q.Assembly.Format)
	if err != nil {
		return nil, err
	}
	one, err := q.Repeat(ctx, client, c.Answers, f, tick)
	return one, coded(errors.Join(err, done()))
}

// write writes the calibration.
func (c *ccrCalibrateCmd) write(e *env, f analysis.CalibrationFile) (err error) {
	write := func(w io.Writer) error { return terminal.WriteJSON(w, f) }
	if c.Out == "" {
		err = write(e.Stdout)
	} else {
		err = terminal.WriteWhole(c.Out, write)
	}
	if err != nil {
		return fmt.Errorf("ccr: calibration: %w", terminal.QuotedPath(err))
	}
	return nil
}
