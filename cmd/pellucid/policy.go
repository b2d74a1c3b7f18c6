// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// policyCmd is what a person does about the rules of a policy.
type policyCmd struct {
	Test policyTestCmd `cmd:"" help:"Test a policy against a table of cases."`
}

type policyTestCmd struct {
	JSON bool   `name:"json" help:"Print one JSON object for each case, as JSON lines."`
	File string `arg:"" completion:"files" help:"YAML file with the cases, and with the policy or the configuration that contains it."`
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
