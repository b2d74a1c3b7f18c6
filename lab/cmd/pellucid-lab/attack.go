// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/pellucid-mcp/pellucid/lab/attack"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type attackCmd struct {
	Pellucid string        `default:"../bin/pellucid" placeholder:"FILE" help:"The program to attack (default ${default})."`
	Memory   int64         `default:"256" placeholder:"MIB" help:"Its limits.memory, in MiB (default ${default})."`
	Quiet    time.Duration `default:"5s" placeholder:"TIME" help:"How long honest calls go on before each attack (default ${default})."`
	For      time.Duration `default:"10s" placeholder:"TIME" help:"How long an attack goes on (default ${default})."`
	Only     []string      `placeholder:"NAME" help:"Run these attacks alone."`
	JSON     bool          `name:"json" help:"Print the same as JSON."`

	// Flags of the process of the attackers.
	Play string `hidden:""`
	Addr string `hidden:""`
}

func (attackCmd) Help() string {
	return `Starts pellucid up for each attack. An honest principal calls a tool alone, and then beside
four principals that attack, from the same address: large requests, large answers, schemas
with costly patterns, posts to the X-ray page, bad tokens, slow bodies, results that are held,
and many sessions. Prints how much longer the honest calls took, how many were served, and
the peak of the memory. Linux only. Exit code 1: an attack exceeded a bound.`
}

func (c *attackCmd) Run(e *env) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.Play != "" {
		return attack.Play(ctx, c.Play, c.Addr, c.For, e.Stdout)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("attack: %w", err)
	}
	program, err := filepath.Abs(c.Pellucid)
	if err != nil {
		return fmt.Errorf("attack: %w", err)
	}
	progress := newProgress(e, "attack")
	report, err := attack.Run(ctx, attack.Options{Self: []string{exe, "attack"}, Pellucid: program, Memory: c.Memory << 20,
		Quiet: c.Quiet, For: c.For, Only: c.Only, Progress: progress.Say})
	progress.Done()
	switch {
	case err != nil:
		return err
	case c.JSON:
		err = terminal.WriteJSON(e.Stdout, report)
	default:
		err = report.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	if err != nil {
		return fmt.Errorf("attack: write: %w", err)
	}
	if n := report.Missed(); n > 0 {
		return errors.New("attack: " + terminal.Plural(n, "attack") + " exceeded a bound")
	}
	return nil
}
