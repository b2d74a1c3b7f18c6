// SPDX-License-Identifier: Apache-2.0

// Command pellucid-lab measures Pellucid, and trains the models that come with it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/lab/detectors"
	"github.com/pellucid-mcp/pellucid/lab/sources"
	"github.com/pellucid-mcp/pellucid/lab/training"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// cli is the command line: one field for each verb.
type cli struct {
	Scrub    scrubCmd    `cmd:"" help:"Measure what scrubbing one field costs, beside memcpy and libraries."`
	Gateway  gatewayCmd  `cmd:"" help:"Measure what the boundary adds to a call, beside other proxies in front of the same server."`
	Sessions sessionsCmd `cmd:"" help:"Measure what open sessions cost pellucid up, beside a plain server and a plain proxy."`
	Replicas replicasCmd `cmd:"" help:"Count what is lost while replicas are killed under clients that call without pause."`
	Attack   attackCmd   `cmd:"" help:"Measure what attackers do to honest calls and to memory."`
	Compare  compareCmd  `cmd:"" help:"Compare what two builds cost, each beside the same baselines."`
	Size     sizeCmd     `cmd:"" help:"Print what the program is made of, in bytes by module; fail where it has grown."`
	Walk     walkCmd     `cmd:"" help:"Count the statements, files and packages that one call executes."`

	Corpora      corporaCmd      `cmd:"" help:"Measure what is left of attacks, and of benign text, in the corpora of the test data."`
	Detect       detectCmd       `cmd:"" help:"Measure detectors of prompt injections from PyPI and npm beside ours, on the same texts."`
	Descriptions descriptionsCmd `cmd:"" help:"Measure how many poisoned descriptions of tools the local classifier flags, trained with and without them."`
	Ccr          ccrCmd          `cmd:"" help:"Measure counterfactual analysis on recorded runs and simulated models, beside published methods."`
	Calibrate    calibrateCmd    `cmd:"" help:"Measure how reliably a model repeats itself, for ccr analyze and the guard."`
	Live         liveCmd         `cmd:"" help:"Take conversations through pellucid guard, with a real model behind it."`
	Sources      sourcesCmd      `cmd:"" help:"Look every control token up again in the package that it was read from."`

	Train      trainCmd      `cmd:"" help:"Fit the local classifier, and measure it on families that it has not seen."`
	Injections injectionsCmd `cmd:"" help:"Write the texts with injected instructions, and the honest ones, that were written for this project."`
	DeepRows   deepCmd       `cmd:"" help:"Cut the texts that the deep model is trained on into pieces."`
}

// env is what a verb may touch of the world outside.
type env struct {
	Stdin  io.Reader
	Stdout io.Writer // what was asked for
	Stderr io.Writer // messages to people
	Getenv func(string) string
}

func main() {
	os.Exit(run(os.Args[1:], &env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
}

// run parses args, runs the verb and returns the code to exit with.
func run(args []string, e *env) int {
	var c cli
	k, err := kong.New(&c,
		kong.Name("pellucid-lab"),
		kong.Description("Measures Pellucid, and trains the models that come with it."),
		kong.Writers(e.Stdout, e.Stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(e),
	)
	if err != nil {
		return report(e, err)
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return report(e, exit.With(exit.Usage, err))
	}
	return report(e, ctx.Run(e))
}

// report tells a person what went wrong, and returns the exit code.
func report(e *env, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(e.Stderr, "pellucid-lab: %s\n", terminal.Printable(err.Error()))
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded.Code
	}
	return exit.Failed
}

// progress is one line on standard error that says how far a verb has come.
type progress struct {
	*terminal.Progress
	verb string
}

func newProgress(e *env, verb string) progress {
	return progress{terminal.NewProgress(e.Stderr, verb+": measuring"), verb}
}

// Say writes what over the line.
func (p progress) Say(what string) { p.Progress.Say(p.verb + ": " + what) }

type trainCmd struct {
	Root  string `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	Write bool   `help:"Write the weights."`
}

func (trainCmd) Help() string {
	return `The table goes to standard output. Exit codes: 0 done; 1 there are no data, or a file
cannot be written.`
}

func (c *trainCmd) Run(e *env) error {
	if err := training.Run(training.Options{Root: c.Root, Write: c.Write}, e.Stdout, e.Stderr); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return nil
}

type detectCmd struct {
	Root     string        `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	Model    string        `default:"packaging/models/detector.safetensors" placeholder:"FILE" help:"The deep model, from the root (default ${default})."`
	Programs []string      `name:"program" sep:"none" placeholder:"COMMAND" help:"Program that runs detectors by name, with its arguments; without a name it lists them. May be repeated."`
	Cage     string        `placeholder:"COMMAND" help:"Command that runs the programs, to take the network and memory from them."`
	Locales  string        `placeholder:"DIR" help:"Folder of locales for the programs."`
	Only     []string      `placeholder:"NAME" help:"Run these detectors alone."`
	Longest  time.Duration `default:"10m" placeholder:"TIME" help:"Stop a detector after this time, and count what it has judged (default ${default})."`
}

func (detectCmd) Help() string {
	return `A program reads one JSON string a line. Its first answer describes the detector: name,
version, licence, bytes. Then it gives one object a text: flagged, score (null where there is
none), ms. Exit codes: 0 done; 1 there are no data, a program lists no detector, or a file
cannot be written. A detector that fails is a line of the table.`
}

func (c *detectCmd) Run(e *env) error {
	o := detectors.Options{Root: c.Root, Model: c.Model, Programs: c.Programs, Cage: c.Cage, Locales: c.Locales, Only: c.Only, Longest: c.Longest}
	return detectors.Run(context.Background(), o, e.Stdout, e.Stderr)
}

type sourcesCmd struct {
	Keep string `placeholder:"DIR" help:"Keep downloaded packages in this folder."`
}

func (sourcesCmd) Help() string {
	return `Downloads the packages with pip, in the versions of the table. Exit code 1: a spelling
was not found. Also prints what the newest parsers of mlx-lm, sglang, vllm and xgrammar
spell like a token and the table lacks.`
}

func (c *sourcesCmd) Run(e *env) error {
	missing, err := sources.LookUp(c.Keep, e.Stdout)
	switch {
	case err != nil:
		return fmt.Errorf("sources: %w", err)
	case missing > 0:
		return errors.New("sources: " + terminal.Plural(missing, "spelling") + " not found")
	}
	return nil
}
