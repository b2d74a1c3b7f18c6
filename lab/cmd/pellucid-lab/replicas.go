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

	"github.com/pellucid-mcp/pellucid/e2e/replicas"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type replicasCmd struct {
	Pellucid string        `default:"../bin/pellucid" placeholder:"FILE" help:"The program to measure (default ${default})."`
	Root     string        `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	Replicas int           `default:"3" placeholder:"N" help:"Replicas (default ${default})."`
	Sessions int           `default:"30" placeholder:"N" help:"Sessions, half of each SDK (default ${default})."`
	For      time.Duration `default:"10m" placeholder:"TIME" help:"How long clients call while there are faults; three quarters of it replicas are killed (default ${default})."`
	Every    time.Duration `default:"15s" placeholder:"TIME" help:"Time between two faults (default ${default})."`
	Costs    time.Duration `default:"30s" placeholder:"TIME" help:"How long CPU time is measured with one replica, and with all; 0: not (default ${default})."`
	Calls    int           `default:"1000" placeholder:"N" help:"Calls at each of two replicas, for the cost of forwarding; 0: not (default ${default})."`
	Seed     uint64        `default:"1" placeholder:"N" help:"Decides which replicas are killed (default ${default})."`
	Keep     string        `placeholder:"DIR" help:"Keep the logs of all processes in this folder."`
}

func (replicasCmd) Help() string {
	return `Starts Postgres (a primary and a standby), replicas of pellucid up, HAProxy in front of them,
and sessions of the official Python and TypeScript SDKs, which call
without pause. It kills a random replica every 15 s, asks one after the other to end, and fails
Postgres over. Exit code 1: a bar was missed, or something is not installed ("make peers python",
Postgres, haproxy).`
}

func (c *replicasCmd) Run(e *env) error {
	root, err := filepath.Abs(c.Root)
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	program, err := filepath.Abs(c.Pellucid)
	if err != nil {
		return fmt.Errorf("replicas: %w", err)
	}
	modules := filepath.Join(root, ".tools", "e2e", "node_modules")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	kills := c.For * 3 / 4
	report, err := replicas.Run(ctx, replicas.Options{
		Pellucid: program, Proxy: filepath.Join(root, "packaging", "proxies", "haproxy.cfg"), E2E: filepath.Join(root, "e2e"),
		Python: filepath.Join(root, ".tools", "python", "bin", "python"), Node: filepath.Join(modules, ".bin", "node"), Modules: modules,
		Replicas: c.Replicas, Sessions: c.Sessions, Kills: kills, Every: c.Every,
		Terms: c.Replicas, Failover: true, Settle: 5 * time.Second, Costs: c.Costs, Calls: c.Calls, Seed: c.Seed, Keep: c.Keep,
		Progress: func(s string) { fmt.Fprintln(e.Stderr, s) },
	})
	if err != nil {
		return err
	}
	if err := report.Print(e.Stdout); err != nil {
		return fmt.Errorf("replicas: write: %w", err)
	}
	if n := len(report.Missed()); n > 0 {
		return errors.New("replicas: " + terminal.Plural(n, "bar") + " missed")
	}
	return nil
}
