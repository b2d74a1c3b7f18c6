// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/grounding"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type queryCmd struct {
	storeFlags
	ruleFlags
	Domain     string   `placeholder:"DOMAIN" help:"Use only attestations of this consensus domain."`
	Profile    string   `placeholder:"FILE" help:"Consensus profile (CPML) of the verdict (default: every domain counts the same)."`
	Validators string   `placeholder:"FILE" help:"File with the reputation of validators and the trust in them (default: all count the same)."`
	Scores     string   `placeholder:"FILE" help:"Trust scores of validators, as pellucid trust --json prints them, for a profile that takes them."`
	Limit      int      `default:"20" help:"Maximum number of attestations to show, up to 100."`
	JSON       bool     `name:"json" help:"Print the response envelope that a model's host would get."`
	Text       []string `arg:"" help:"The query: words, topic:PATH, the hash of a claim, or the URN of a group."`
}

func (queryCmd) Help() string {
	return `Searches the store, composes a verdict and prints it with the attestations that it
rests on. All that validators wrote is theirs: it is cleaned, indented, and what a
terminal would not show is spelled out. Where there is no store, a demonstration set
is asked. Exit codes: 0 answered, even if nothing is known of it, 1 failed, 2 wrong
usage, 3 bad configuration, 4 the store cannot be reached.`
}

func (c *queryCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	setup := c.setup()
	setup.Validators, setup.Scores = c.Validators, c.Scores
	r := ground.Request{Query: strings.Join(c.Text, " "), Domain: c.Domain, Limit: c.Limit}
	if c.Profile != "" {
		if r.Document, err = terminal.ReadInput(c.Profile, strings.NewReader("")); err != nil {
			return exit.With(exit.Config, fmt.Errorf("ground: --profile: %w", err))
		}
	}
	answer, err := grounding.Query(ctx, dir, grounding.Plan{Setup: setup, DB: c.DB, Notice: e.Stderr}, r)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err = e.Stdout.Write(append(terminal.EscapeJSON(answer), '\n'))
		return err
	}
	return ground.WriteAnswer(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), answer)
}
