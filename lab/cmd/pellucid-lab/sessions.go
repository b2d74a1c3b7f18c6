// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/speed"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type sessionsCmd struct {
	Pellucid   string        `default:"../bin/pellucid" placeholder:"FILE" help:"The program to measure (default ${default})."`
	Sessions   int           `default:"4000" placeholder:"N" help:"Sessions open at one time (default ${default})."`
	Openers    int           `default:"16" placeholder:"N" help:"How many are opened at the same time (default ${default})."`
	Settle     time.Duration `default:"30s" placeholder:"TIME" help:"The longest wait until the memory of a process stays as it is (default ${default})."`
	Lists      int           `default:"200" placeholder:"N" help:"Lists of 2,000 tools, after the first (default ${default})."`
	Calls      int           `default:"100" placeholder:"N" help:"Calls with results of 1 MiB (default ${default})."`
	Goroutines bool          `help:"Print where the goroutines of a session wait, too."`
	JSON       bool          `name:"json" help:"Print the same as JSON."`

	// What the processes of a measurement are started with.
	Play     string `hidden:""`
	Upstream string `hidden:""`
}

func (sessionsCmd) Help() string {
	return `Opens legacy sessions, each with its stream, and reads from /proc what the process
that serves them needs: a server of net/http alone, httputil.ReverseProxy with the stream
of the server behind it, and pellucid up without and with that stream, and with evidence,
policy, admission and metrics. The servers are in this process. A session has one
connection of its client. Then: tools/list of 2,000 tools from 50 servers at /mcp,
and the peak of memory while results of 1 MiB pass. At the end each process prints its
stacks, from which its goroutines are counted. Linux only; a goal that is missed is
printed as such. Exit code 1: a request failed.`
}

func (c *sessionsCmd) Run(e *env) error {
	if c.Play != "" {
		if err := speed.PlayFloor(speed.Role{Name: c.Play, Upstream: c.Upstream}, e.Stdin, e.Stderr); err != nil {
			return fmt.Errorf("sessions: %w", err)
		}
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	progress := newProgress(e, "sessions")
	report, err := speed.MeasureSessions(ctx, speed.SessionsOptions{
		Self: func(r speed.Role) []string {
			return []string{exe, "sessions", "--play", r.Name, "--upstream", r.Upstream}
		},
		Pellucid: c.Pellucid, Sessions: c.Sessions, Openers: c.Openers, Settle: c.Settle, Lists: c.Lists, Calls: c.Calls,
		Progress: progress.Say,
	})
	progress.Done()
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.New("sessions: interrupted")
	case err != nil:
		return fmt.Errorf("sessions: %w", err)
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, report)
	}
	p := terminal.PaletteFor(e.Stdout, e.Getenv)
	if err := report.Print(e.Stdout, p); err != nil {
		return fmt.Errorf("sessions: write: %w", err)
	}
	if !c.Goroutines {
		return nil
	}
	if err := report.PrintWaiting(e.Stdout, p); err != nil {
		return fmt.Errorf("sessions: write: %w", err)
	}
	return nil
}
