// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/lab/speed"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type compareCmd struct {
	There  string        `required:"" placeholder:"COMMAND" help:"The older program: pellucid-lab as it was built then, or 'pellucid bench' of a build that had these verbs."`
	Here   string        `placeholder:"COMMAND" help:"The program to compare with it (default: this one)."`
	Name   string        `default:"there" placeholder:"NAME" help:"Name of the older program in the table, such as its tag."`
	Rounds int           `default:"5" placeholder:"N" help:"Number of rounds; in each round both programs are measured once (default ${default})."`
	Slice  time.Duration `default:"200ms" placeholder:"TIME" help:"Time that each way runs in a round (default ${default})."`
	Worse  float64       `placeholder:"N" help:"Exit with 1 if a ratio is more than N times what it was, such as 1.15 (default: never)."`
	JSON   bool          `name:"json" help:"Print the same as JSON."`
}

func (compareCmd) Help() string {
	return `Runs the verbs gateway and scrub of both programs in turns. Each figure is divided
by its baseline in the same run: a call with all checks by one through Go's ReverseProxy (over
pipes: through a process that copies bytes), and scrubbing by memcpy. So the ratios of two
programs can be compared, though the machine is busy now and then. Less is better; "change" is the
median ratio here divided by the one there. Exit code 1: a measurement failed, or a ratio is worse
than --worse allows.`
}

func (c *compareCmd) Run(e *env) error {
	here := strings.Fields(c.Here)
	if len(here) == 0 {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("compare: %w", err)
		}
		here = []string{exe}
	}
	if strings.TrimSpace(c.There) == "" {
		return exit.With(exit.Usage, errors.New("compare: --there names no program"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	progress := newProgress(e, "compare")
	got, err := speed.Compare(ctx, speed.CompareOptions{There: strings.Fields(c.There), Here: here, Name: c.Name,
		Rounds: c.Rounds, Slice: c.Slice, Progress: progress.Say})
	progress.Done()
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("compare: interrupted")
	case err != nil:
		return fmt.Errorf("compare: %w", err)
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, got)
	} else {
		err = got.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	if err != nil {
		return fmt.Errorf("compare: write: %w", err)
	}
	if c.Worse <= 0 {
		return nil
	}
	if worse := got.Worse(c.Worse); len(worse) > 0 {
		return fmt.Errorf("compare: more than %g times the ratio at %s: %s", c.Worse, c.Name, strings.Join(worse, "; "))
	}
	return nil
}
