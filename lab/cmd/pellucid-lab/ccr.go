// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/lab/ccrbench"
	"github.com/pellucid-mcp/pellucid/platform/egress"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrCmd struct {
	Traces      []string `sep:"none" placeholder:"FILE" help:"Files of recorded runs, JSON lines or zstd (default: the development set in the test data)."`
	Data        string   `env:"PELLUCID_DATA" default:"../../shared/data" placeholder:"DIR" help:"The folder that holds agentdojo-traces/ (default ${default}, or $$${env})."`
	Tracks      string   `placeholder:"LETTERS" help:"Measure only these tracks, such as AB: A recorded pairs, B replicates, D synthetic, F the guard, G evidence."`
	Full        bool     `help:"Measure every recorded turn, and more trials of each synthetic case."`
	Seed        uint64   `help:"Seed of all random choices. The same seed gives the same figures."`
	Models      bool     `help:"Print every row: each model, signal, size and noise. --json always prints them."`
	CausalArmor string   `placeholder:"PYTHON" help:"A Python that has the package causal-armor: it decides on the cases of track F too, through a server here that answers as vLLM does."`
	Live        string   `placeholder:"URL" help:"Print how to measure attack success, utility and false alarms against this live endpoint; the tables here claim none of these."`
	JSON        bool     `name:"json" help:"Print everything as JSON: curves, manifest, intervals."`
}

func (ccrCmd) Help() string {
	return `docs/spec/counterfactual.md says what each track measures, and has the format of the traces. Track F
drives the guard itself, with its own budget and gate, and simulates what the provider answers. No
model is asked. The thresholds were fixed on the banking and slack suites of AgentDojo's
published runs, and cannot be set. Exit codes: 0 every target was reached, 1 one was missed,
or no trace was found.`
}

// liveAdvice is what only a live endpoint can tell, and how.
const liveAdvice = `Attack success, utility and end-to-end false alarms need a model that answers. With
AgentDojo (https://github.com/ethz-spylab/agentdojo) and pellucid guard in front of it:

  pellucid guard --listen 127.0.0.1:7430 --upstream %s
  OPENAI_BASE_URL=http://127.0.0.1:7430/v1 python -m agentdojo.scripts.benchmark \
      --model MODEL --attack important_instructions --logdir runs
  pellucid-lab ccr --traces runs.jsonl

runs.jsonl is the run files of runs/, one a line. Compare security and utility with a
run that goes past the guard. What the calls cost is up to the endpoint.
`

func (c *ccrCmd) Validate() error {
	if strings.Trim(c.Tracks, "ABDFG") != "" {
		return errors.New("--tracks: want letters of A, B, D, F and G")
	}
	return nil
}

func (c *ccrCmd) Run(e *env) error {
	if c.Live != "" && !egress.IsHTTP(c.Live) {
		return exit.With(exit.Usage, errors.New("ccr: --live: want http:// or https:// and a host"))
	}
	if c.Live != "" {
		_, err := fmt.Fprintf(e.Stdout, liveAdvice, terminal.Printable(c.Live))
		return err
	}
	files := c.Traces
	if len(files) == 0 {
		name := filepath.Join(c.Data, "agentdojo-traces", "banking-slack.jsonl.zst")
		if _, err := os.Stat(name); err != nil {
			return errors.New("ccr: no recorded runs: --traces FILE, or the test data")
		}
		files = []string{name}
	}
	var sources []ccrbench.Source
	for _, name := range files {
		sources = append(sources, ccrbench.Source{
			Name: filepath.Base(name),
			Open: func() (io.ReadCloser, error) { return terminal.OpenInput(name, e.Stdin) },
		})
	}
	b := terminal.NewBar(e.Stderr, e.Getenv, "ccr", 0)
	r, err := ccrbench.Run(sources, ccrbench.Options{Tracks: c.Tracks, Full: c.Full, Seed: c.Seed, CausalArmor: c.CausalArmor, Progress: func(name string, done, total int) {
		stage := name + " " + terminal.Thousands(done)
		if total > 0 {
			stage += " of " + terminal.Thousands(total)
		}
		b.At(int64(done), stage)
	}})
	b.Done()
	if err != nil {
		return fmt.Errorf("ccr: %w", err)
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, r)
	} else {
		err = r.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), c.Models)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ccr: write: %w", err)
	case !r.Met():
		return errors.New("ccr: a target was missed")
	}
	return nil
}
