// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/pellucid-mcp/pellucid/measure/speed"
	"github.com/pellucid-mcp/pellucid/platform/resident"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type benchGatewayCmd struct {
	JSON     bool          `name:"json" help:"Print {\"figures\", \"sse_calls\", \"sse_failed\", \"targets\"}."`
	Rounds   int           `default:"5" placeholder:"N" help:"Rounds; in each of them all ways take turns (default ${default})."`
	Slice    time.Duration `default:"100ms" placeholder:"TIME" help:"How long each way runs in a round (default ${default})."`
	Pause    time.Duration `placeholder:"TIME" help:"Pause of a session behind each call (default: none, which loads the machine fully)."`
	Sessions []int         `default:"1,8,32" placeholder:"N,…" help:"Sessions at the same time (default ${default})."`
	Octets   []int         `default:"128,1024,10240,65536,1048576" placeholder:"N,…" help:"Octets of the results' text (default ${default})."`
	Events   int           `default:"20000" placeholder:"N" help:"Calls of 64 KiB over SSE, none of which may fail (default ${default})."`
	Layers   bool          `help:"Measure pellucid up instead, one layer after the other switched on, over HTTP."`

	// What the processes of a measurement are started with.
	Play     string   `hidden:""`
	Upstream string   `hidden:""`
	Command  []string `arg:"" optional:"" passthrough:"" hidden:""`
}

func (benchGatewayCmd) Help() string {
	return `A client calls a tool directly, through Go's httputil.ReverseProxy (over pipes:
through a process that copies octets), through Pellucid's codec without a look at
what passes, and through the gateway with every deterministic check, record and
metric on. Each way is a process of its own, all are in front of the same server
and take turns. CPU and RSS are the proxy's; added is beside the direct way. With
--layers the gateway is pellucid up, as its configuration makes it: everything off,
then with admission, evidence, a policy and the classifier that watches, each on top of
the one before; and with evidence required.
Every target is printed as met or not met; on a machine that is busy otherwise
the figures say little. Exit code 1: a call failed.`
}

// Validate is called by kong; its error is one of usage.
func (c *benchGatewayCmd) Validate() error {
	switch {
	case c.Play != "" && !speed.IsRole(c.Play) && layerConfig(c.Play) == "":
		return errors.New("no such role")
	case c.Play == "" && len(c.Command) > 0:
		return fmt.Errorf("unexpected argument %s", finding.Quote(c.Command[0]))
	case c.Rounds < 1 || c.Rounds > 1000 || c.Slice <= 0 || c.Slice > 10*time.Second || c.Pause < 0 || c.Pause > time.Second:
		return errors.New("--rounds must be 1 to 1000, --slice at most 10s, --pause at most 1s")
	}
	return nil
}

func (c *benchGatewayCmd) Run(e *env) error {
	if config := layerConfig(c.Play); config != "" {
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
		return fmt.Errorf("bench: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if c.Events == 0 {
		c.Events = -1
	}
	progress := newProgress(e, "bench gateway")
	report, err := speed.MeasureGateway(ctx, speed.GatewayOptions{
		Self: func(r speed.Role) []string {
			args := []string{exe, "bench", "gateway", "--play", r.Name}
			switch {
			case r.Upstream != "":
				args = append(args, "--upstream", r.Upstream)
			case len(r.Command) > 0:
				args = append(append(args, "--"), r.Command...)
			}
			return args
		},
		Rounds: c.Rounds, Slice: c.Slice, Pause: c.Pause, Sessions: c.Sessions, Octets: c.Octets, Events: c.Events, Progress: progress.say,
		Layers: c.layers(),
	})
	progress.done()
	if err != nil && ctx.Err() != nil {
		return errors.New("bench: interrupted")
	} else if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, report)
	}
	w := bufio.NewWriter(e.Stdout)
	printGateway(w, terminal.PaletteFor(e.Stdout, e.Getenv), report)
	return w.Flush()
}

func printGateway(w *bufio.Writer, p terminal.Palette, report *speed.GatewayReport) {
	fmt.Fprintf(w, "%s %s/%s, %d CPUs; times in microseconds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	last := ""
	for _, f := range report.Figures {
		if head := fmt.Sprintf("%s, %s, %s, %d sessions", f.Transport, f.Script, speed.SizeName(f.Octets), f.Sessions); head != last {
			fmt.Fprintf(w, "\n%s\n", p.Bold(fmt.Sprintf("%-38s %9s %9s %9s %9s %9s %9s %7s", head, "p50", "p99", "added", "added99", "calls/s", "CPU/call", "RSS MB")))
			last = head
		}
		fmt.Fprintf(w, "  %-36s %9.0f %9.0f", f.Way, f.P50, f.P99)
		if f.Way == speed.Direct {
			fmt.Fprintf(w, " %9s %9s %9.0f\n", "", "", f.Rate)
			continue
		}
		fmt.Fprintf(w, " %9.0f %9.0f %9.0f %9.0f %7.1f\n", f.AddedP50, f.AddedP99, f.Rate, f.CPU, float64(f.RSS)/1e6)
	}
	fmt.Fprintln(w)
	for _, t := range report.Targets {
		verdict := p.Green("met    ")
		if !t.Met {
			verdict = p.Red("NOT MET")
		}
		fmt.Fprintf(w, "%s  %-46s %s, wanted %s\n", verdict, t.Name, t.Got, t.Want)
	}
}
