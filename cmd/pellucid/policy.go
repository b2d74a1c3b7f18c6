// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/backtest"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// policyCmd is what a person does about the rules of a policy.
type policyCmd struct {
	Test     policyTestCmd     `cmd:"" help:"Test a policy against a table of cases."`
	Backtest policyBacktestCmd `cmd:"" help:"Try rules on recorded decisions before they are in force."`
}

type policyTestCmd struct {
	JSON bool   `name:"json" help:"Print one JSON object for each case, as JSON lines."`
	File string `arg:"" help:"YAML file with the cases, and with the policy or the configuration that contains it."`
}

func (policyTestCmd) Help() string {
	return `A case is an event and the expected outcome. FILE contains cases and either policy:, as in
pellucid.yaml, or config:, the path of a configuration. Only the policy of that configuration is
read, and no server is started. docs/spec/policy.md has the format. Exit codes: 0 every case has
its expected outcome; 1 one has not; 3 the file, or the policy, is wrong.`
}

func (c *policyTestCmd) Run(e *env) error {
	t, err := rules.LoadPolicyTest(c.File)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	failed := 0
	for r := range t.Results() {
		if !r.Passed {
			failed++
		}
		if c.JSON {
			err = terminal.WriteJSON(e.Stdout, r)
		} else {
			err = r.Write(e.Stdout)
		}
		if err != nil {
			return fmt.Errorf("policy: write: %w", err)
		}
	}
	fmt.Fprintf(e.Stderr, "%s, %d failed\n", terminal.Plural(len(t.Cases), "case"), failed)
	if failed > 0 {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

type policyBacktestCmd struct {
	ledgerDB
	Since    string `placeholder:"TIME" help:"Count only decisions of this time or later: RFC 3339, or an age such as 12h or 7d (default: all)."`
	Examples int    `default:"3" placeholder:"N" help:"Evidence ids to name in each row, 1 to 100 (default ${default})."`
	JSON     bool   `name:"json" help:"Print the report as JSON."`
	File     string `arg:"" help:"Configuration with the rules to try: policy, hold of defaults, servers and tools, and exceptions. Nothing else of it is read."`
}

func (policyBacktestCmd) Help() string {
	return `Tries rules on the decisions that the ledger has, before they are in force: how many calls and results
they would have held or refused, how many of these nothing else had withheld, what would pass that
was held, by server, tool and rule, with evidence ids for pellucid explain. A record has no size, no
hints of the tool and no scopes of the principal, and of a classifier only a verdict that was recorded:
what a rule needs beyond that is counted as not evaluable. A size is known where the configuration
captures the call (capture and capture_of) and not to reviewers only. Trust scores are computed from the
records. The codes of hold count for answers that are results. Nothing is changed. Exit codes: 0 done; 1
nothing is recorded; 2 wrong usage; 3 the file is wrong; 4 the store cannot be reached.`
}

func (c *policyBacktestCmd) Validate() error {
	if c.Examples < 1 || c.Examples > 100 {
		return errors.New("--examples: want 1 to 100")
	}
	return nil
}

func (c *policyBacktestCmd) Run(e *env) error {
	trial, err := rules.LoadTrial(c.File)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("policy: %w", err))
	}
	o := backtest.Options{Trial: trial, Examples: c.Examples}
	if o.Since, err = terminal.Moment("--since", c.Since, time.Now()); err != nil {
		return exit.With(exit.Usage, err)
	}
	r, err := backtest.Of(c.DB, o)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, r)
	}
	return r.Write(e.Stdout)
}
