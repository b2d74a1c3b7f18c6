// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/classifiers"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type classifyCmd struct {
	With   []string `default:"local" placeholder:"NAME,…" help:"Names of classifiers in the configuration. local, the default, is the model inside this program."`
	Config string   `short:"c" placeholder:"FILE" help:"Configuration that defines the names (default, where a name other than local is given: pellucid.yaml in your configuration folder)."`
	JSON   bool     `name:"json" xor:"form" help:"Print the verdicts as JSON."`
	JSONL  bool     `name:"jsonl" xor:"form" help:"Read JSON lines and print them with a member \"score\", of the text under --key."`
	Key    string   `default:"text" placeholder:"NAME" help:"Name of the member that --jsonl judges."`
	File   string   `arg:"" optional:"" help:"File of the text (default, or -: standard input)."`
}

func (classifyCmd) Help() string {
	return `Prints how much a text looks like an injection, from 0 to 1, by each classifier. The text is
normalised first, as in the gateway. --jsonl adds to each row "score", the highest score;
"flagged", whether a classifier flags the text; "scores", by name; and "sentence", the one
that a deep model has flagged. A low score does not
mean that a text is harmless: docs/spec/classify.md says what a classifier can and cannot do.
Exit codes: 0 judged, also where the text is flagged; 1 the input cannot be read, or was not
judged (a row then has a member "error"); 2 wrong usage; 3 bad configuration.`
}

func (c *classifyCmd) Run(e *env) error {
	texts, err := c.open(e)
	if err != nil {
		return err
	}
	defer texts.Close()
	if c.JSONL {
		return terminal.EditRows(e.Stdout, e.Stdin, terminal.RowOptions{File: c.File, Key: c.Key, Verb: "classify", Done: "judged"}, texts.Row)
	}
	b, err := terminal.ReadInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("classify: %w", err)
	}
	list := texts.Judge(string(b))
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, classifiers.NewReport(list))
	} else {
		err = classifiers.PrintAssessments(e.Stdout, list)
	}
	if err != nil {
		return fmt.Errorf("classify: write: %w", err)
	}
	return classifiers.Unjudged(list)
}

// rules are those of the configuration, or, where only the local classifier is wanted, of one that says nothing.
func (c *classifyCmd) rules(e *env) (*rules.Rules, error) {
	if c.Config == "" && !slices.ContainsFunc(c.With, func(name string) bool { return name != rules.Local }) {
		return rules.Parse([]byte("version: 1\n"), rules.Options{})
	}
	return e.readConfiguration(c.Config)
}

// open makes the classifiers that are wanted.
func (c *classifyCmd) open(e *env) (*classifiers.Texts, error) {
	r, err := c.rules(e)
	switch {
	case err != nil:
		return nil, exit.With(exit.Config, fmt.Errorf("classify: %w", err))
	case r == nil:
		return nil, exit.With(exit.Usage, errors.New("classify: --with needs a configuration: -c FILE"))
	}
	texts, err := classifiers.OpenTexts(r, c.With, terminal.MaxInput)
	if _, unknown := errors.AsType[*classifiers.UnknownError](err); unknown {
		return nil, exit.With(exit.Usage, fmt.Errorf("classify: %w", err))
	} else if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("classify: %w", err))
	}
	return texts, nil
}
