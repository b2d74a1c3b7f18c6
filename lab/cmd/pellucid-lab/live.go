// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/lab/guardlive"
)

type liveCmd struct {
	Pellucid    string   `default:"../bin/pellucid" placeholder:"FILE" help:"The program to measure (default ${default})."`
	URL         string   `name:"url" placeholder:"URL" help:"Base of an OpenAI-compatible provider, such as http://127.0.0.1:8000/v1. Without it the small model is served that 'make live' installs."`
	Model       string   `placeholder:"NAME" help:"Name of the model at the provider."`
	Key         string   `placeholder:"REF" help:"Key for the provider: env:NAME or file:PATH."`
	Half        string   `enum:"choosing,confirming,untouched" default:"confirming" help:"Set of conversations (default ${default}). Choose prompts and rules with one set, and confirm them with another."`
	Cases       int      `default:"2" placeholder:"N" help:"Cases of each kind and attack in each of the two deployments (default ${default})."`
	Only        []string `placeholder:"TEXT" help:"Use only the cases whose id holds one of these texts, such as delegated."`
	Clients     []string `default:"openai,anthropic,langchain,vercel" help:"plain, openai, anthropic, langchain, vercel (default ${default}). They take the cases in turn. A provider at a URL is asked by chat completions."`
	Temperature float64  `default:"0" help:"Temperature of the model's answers (default ${default})."`
	Examples    bool     `negatable:"" default:"true" help:"Show the planner examples of each deployment. A small model needs them."`
	Confirm     bool     `help:"Ask the planner the second question too (guard.planner.confirm)."`
	Always      bool     `help:"Ask the planner about calls whose values are all the user's, too (guard.planner.always)."`
	Tools       string   `default:".tools/live" placeholder:"DIR" help:"Where 'make live' has installed the model and the SDKs (default ${default})."`
	Root        string   `default:".." placeholder:"DIR" help:"Root of the repository (default ${default})."`
	Out         string   `placeholder:"FILE" help:"Write each case with its result, as JSON lines."`
	Print       bool     `help:"Print the conversations as JSON lines, and ask no model."`
	Contexts    string   `placeholder:"DIR" help:"Write the conversations into files of this folder, as requests for pellucid ccr, and ask no model."`
}

func (liveCmd) Help() string {
	return `Takes conversations through pellucid guard, with a real model behind it and official SDKs in
front of it, and prints what was stopped, what was held, with 95 % intervals, and what it cost. Calls are
counted by a proxy between the guard and the model. A run that is interrupted prints what it has. The conversations come from three sets that
share no deployment and no name. A case in which the model proposes no privileged call tells nothing about
the guard; the first line of the table counts them. Exit code 1: a request failed.`
}

func (c *liveCmd) Run(e *env) error {
	cases := guardlive.Only(guardlive.Cases(guardlive.Half(c.Half), c.Cases), c.Only)
	if c.Print {
		return printLines(e, cases)
	}
	if c.Contexts != "" {
		return c.writeContexts(cases)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o := guardlive.Setup{
		Pellucid: c.Pellucid, Model: c.Model, Tools: c.Tools, Root: c.Root, Clients: c.Clients,
		Temperature: c.Temperature, Half: guardlive.Half(c.Half), Stderr: e.Stderr,
		Planner: guardlive.Planner{Examples: c.Examples, Confirm: c.Confirm, Always: c.Always},
	}
	if c.URL != "" {
		var err error
		if o.URL, err = url.Parse(c.URL); err != nil || o.URL.Host == "" {
			return exit.With(exit.Usage, errors.New("live: --url: want http:// or https:// and a host"))
		}
	}
	var err error
	if o.Key, err = c.key(e); err != nil {
		return err
	}
	var lines *json.Encoder
	if c.Out != "" {
		f, err := os.Create(c.Out)
		if err != nil {
			return fmt.Errorf("live: --out: %w", err)
		}
		defer f.Close()
		lines = json.NewEncoder(f)
	}
	progress := newProgress(e, "live")
	var unwritten error
	o.Each = func(done, of int, r guardlive.Result) {
		progress.Say(fmt.Sprintf("%d of %d, %s", done, of, r.Case.ID))
		if lines != nil {
			unwritten = errors.Join(unwritten, lines.Encode(&r)) // at once: a run takes long, and may be ended early
		}
	}
	results, err := guardlive.Measure(ctx, o, cases)
	progress.Done()
	err = errors.Join(err, unwritten)
	guardlive.Print(e.Stdout, results)
	for _, r := range results {
		if r.Error != "" {
			err = errors.Join(err, fmt.Errorf("live: %s by %s: %s", r.Case.ID, r.Client, r.Error))
		}
	}
	return err
}

// key is what --key refers to. A secret never stands on the command line, where every user of the machine can read it.
func (c *liveCmd) key(e *env) (string, error) {
	if name, ok := strings.CutPrefix(c.Key, "env:"); ok {
		if v := e.Getenv(name); v != "" {
			return v, nil
		}
		return "", exit.With(exit.Config, errors.New("live: --key: the variable is empty"))
	}
	if name, ok := strings.CutPrefix(c.Key, "file:"); ok {
		b, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			return "", exit.With(exit.Config, fmt.Errorf("live: --key: %w", err))
		}
		return strings.TrimSpace(string(b)), nil
	}
	if c.Key != "" {
		return "", exit.With(exit.Usage, errors.New("live: --key: want env:NAME or file:PATH"))
	}
	return "none", nil
}

func printLines(e *env, cases []guardlive.Case) error {
	enc := json.NewEncoder(e.Stdout)
	for i := range cases {
		if err := enc.Encode(&cases[i]); err != nil {
			return fmt.Errorf("live: print a case: %w", err)
		}
	}
	return nil
}

// writeContexts writes each conversation into a file with its name.
func (c *liveCmd) writeContexts(cases []guardlive.Case) error {
	for i := range cases {
		body, err := cases[i].ChatRequest(cmp.Or(c.Model, "small"))
		if err == nil {
			name := strings.NewReplacer("//", "-", "/", "-").Replace(cases[i].ID) + ".json"
			err = os.WriteFile(filepath.Join(c.Contexts, name), body, 0o600)
		}
		if err != nil {
			return fmt.Errorf("live: --contexts: %w", err)
		}
	}
	return nil
}
