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

	"github.com/pellucid-mcp/pellucid/app"
	"github.com/pellucid-mcp/pellucid/lab/speed"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type gatewayCmd struct {
	JSON     bool          `name:"json" help:"Print {\"figures\", \"sse_calls\", \"sse_failed\", \"targets\"}."`
	Rounds   int           `default:"5" placeholder:"N" help:"Number of rounds; in each round every way is measured once (default ${default})."`
	Slice    time.Duration `default:"100ms" placeholder:"TIME" help:"Time that each way runs in a round (default ${default})."`
	Pause    time.Duration `placeholder:"TIME" help:"Pause of a session after each call (default: no pause, which loads the machine fully)."`
	Sessions []int         `default:"1,8,32" placeholder:"N,…" help:"Number of sessions at the same time (default ${default})."`
	Bytes    []int         `name:"bytes" default:"128,1024,10240,65536,1048576" placeholder:"N,…" help:"Length of the results' text in bytes (default ${default})."`
	Events   int           `default:"20000" placeholder:"N" help:"Number of calls of 64 KiB over SSE; each must succeed (default ${default})."`
	Layers   bool          `help:"Measure pellucid up over HTTP instead, and switch on one layer after the other."`

	// What the processes of a measurement are started with.
	Play     string   `hidden:""`
	Upstream string   `hidden:""`
	Command  []string `arg:"" optional:"" passthrough:"" hidden:""`
}

func (gatewayCmd) Help() string {
	return `A client calls a tool in four ways: directly; through Go's httputil.ReverseProxy (over pipes:
through a process that copies bytes); through Pellucid's codec without any check; and through the
gateway with every deterministic check, record and metric. Each way is a process of its own. All
are in front of the same server and take turns. CPU and RSS are those of the proxy; "added" is
relative to the direct way. With --layers the gateway is pellucid up with its configuration:
everything off; then with admission, evidence, a policy and the classifier in shadow mode, each
on top of the one before; and with required evidence. Every target is printed as met or not met.
The figures mean little on a machine that is busy with other work. Exit code 1: a call failed.`
}

// Validate is called by kong; its error is one of usage.
func (c *gatewayCmd) Validate() error {
	switch {
	case c.Play != "" && !speed.IsRole(c.Play) && speed.LayerConfig(c.Play) == "":
		return errors.New("no such role")
	case c.Play == "" && len(c.Command) > 0:
		return fmt.Errorf("unexpected argument %s", finding.Quote(c.Command[0]))
	case c.Rounds < 1 || c.Rounds > 1000 || c.Slice <= 0 || c.Slice > 10*time.Second || c.Pause < 0 || c.Pause > time.Second:
		return errors.New("--rounds must be 1 to 1000, --slice at most 10s, --pause at most 1s")
	}
	return nil
}

func (c *gatewayCmd) Run(e *env) error {
	if config := speed.LayerConfig(c.Play); config != "" {
		return c.playLayer(e, config)
	}
	if c.Play != "" {
		if len(c.Command) > 0 && c.Command[0] == "--" {
			c.Command = c.Command[1:]
		}
		resident.DropStartup() // whatever the way: as up and wrap do
		return speed.Play(speed.Role{Name: c.Play, Upstream: c.Upstream, Command: c.Command}, e.Stdin, e.Stdout, e.Stderr)
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.Events == 0 {
		c.Events = -1
	}
	var layers []speed.Layer
	if c.Layers {
		layers = speed.Layers()
	}
	progress := newProgress(e, "gateway")
	report, err := speed.MeasureGateway(ctx, speed.GatewayOptions{
		Self: func(r speed.Role) []string {
			args := []string{exe, "gateway", "--play", r.Name}
			switch {
			case r.Upstream != "":
				args = append(args, "--upstream", r.Upstream)
			case len(r.Command) > 0:
				args = append(append(args, "--"), r.Command...)
			}
			return args
		},
		Rounds: c.Rounds, Slice: c.Slice, Pause: c.Pause, Sessions: c.Sessions, Bytes: c.Bytes, Events: c.Events, Progress: progress.Say,
		Layers: layers,
	})
	progress.Done()
	if err != nil && ctx.Err() != nil {
		return errors.New("gateway: interrupted")
	} else if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, report)
	}
	return report.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}

// playLayer is `pellucid up` with a state and a configuration that last as long as it.
func (c *gatewayCmd) playLayer(e *env, config string) error {
	dir, err := os.MkdirTemp("", "pellucid-lab-")
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("PELLUCID_STATE", dir); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	config = fmt.Sprintf("version: 1\nhttp: {rate: 0}\ntelemetry: {log: error}\n%sservers:\n  upstream: {url: %q}\n", config, c.Upstream)
	file := filepath.Join(dir, "pellucid.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	src, err := app.FileSource(file)
	if err != nil {
		return err
	}
	b, err := app.OpenGateway(app.GatewayOptions{Database: e.Getenv("PELLUCID_DB"), References: references(e), Stderr: e.Stderr}, src)
	if err != nil {
		return err
	}
	defer b.Close()
	resident.DropStartup() // as up does
	return speed.Host(b, e.Stdin, e.Stderr)
}
