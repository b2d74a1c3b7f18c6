// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/policy"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// policyCmd is what a person does about the rules of a policy.
type policyCmd struct {
	Test policyTestCmd `cmd:"" help:"Hold a policy to a table of cases."`
}

type policyTestCmd struct {
	JSON bool   `name:"json" help:"Print one JSON object for each case, as JSON lines."`
	File string `arg:"" completion:"files" help:"YAML file with the cases, and the policy or the configuration that holds it."`
}

func (policyTestCmd) Help() string {
	return `A case is an event and what is to become of it. FILE holds cases and either policy:,
as in pellucid.yaml, or config:, the configuration whose policy is meant; of that
nothing else is read, and no server is started. docs/spec/policy.md has the format.
Exit codes: 0 every case is decided as wanted; 1 one is not; 3 the file, or the policy,
is wrong.`
}

// policyResult is a case as JSON.
type policyResult struct {
	Name   string        `json:"name"`
	Line   int           `json:"line"`
	Passed bool          `json:"passed"`
	Want   string        `json:"want"`
	Got    policyOutcome `json:"got"`
	Would  policyOutcome `json:"would,omitzero"`
}

type policyOutcome struct {
	Action string `json:"action"`
	Rule   string `json:"rule,omitzero"`
	Failed bool   `json:"failed,omitzero"`
}

func outcomeOf(o policy.Outcome) policyOutcome {
	return policyOutcome{o.Action.String(), o.Rule, o.Failed}
}

func (o policyOutcome) String() string {
	switch {
	case o.Rule == "":
		return o.Action + ", no rule"
	case o.Failed:
		return o.Action + ", because rule " + o.Rule + " could not be evaluated"
	}
	return o.Action + ", rule " + o.Rule
}

func (c *policyTestCmd) Run(e *env) error {
	src, err := readRegular(c.File, rules.MaxFile)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("policy: read %s: %w", finding.Quote(c.File), err))
	}
	abs, err := filepath.Abs(c.File)
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("policy: %w", err))
	}
	t, err := rules.ParsePolicyTest(src, rules.Options{Dir: filepath.Dir(abs)})
	if err != nil {
		return exit.With(exit.Config, fmt.Errorf("policy: %s:\n%w", finding.Quote(c.File), err))
	}
	failed := 0
	for i := range t.Cases {
		x := &t.Cases[i]
		d, passed := x.Check(t.Policy)
		if !passed {
			failed++
		}
		r := policyResult{Name: x.Name, Line: x.Line, Passed: passed, Want: wanted(x), Got: outcomeOf(d.Outcome)}
		if d.Would.Rule != "" {
			r.Would = outcomeOf(d.Would)
		}
		if err := c.print(e, &r); err != nil {
			return fmt.Errorf("policy: write: %w", err)
		}
	}
	fmt.Fprintf(e.Stderr, "%s, %d failed\n", terminal.Plural(len(t.Cases), "case"), failed)
	if failed > 0 {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

func wanted(x *rules.PolicyCase) string {
	w := x.Want.String()
	switch {
	case x.Rule == nil:
	case *x.Rule == "":
		w += ", no rule"
	default:
		w += ", rule " + *x.Rule
	}
	if x.Would != nil {
		w += ", would " + x.Would.String()
	}
	return w
}

func (c *policyTestCmd) print(e *env, r *policyResult) error {
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, r)
	}
	if r.Passed {
		_, err := fmt.Fprintf(e.Stdout, "ok    %s\n", terminal.Inline(r.Name))
		return err
	}
	got := r.Got.String()
	if r.Would.Rule != "" {
		got += "; would " + r.Would.String()
	}
	_, err := fmt.Fprintf(e.Stdout, "FAIL  %s (line %d)\n      want %s\n      got  %s\n", terminal.Inline(r.Name), r.Line, terminal.Printable(r.Want), got)
	return err
}

// readRegular reads a file of at most most octets.
func readRegular(path string, most int) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) > most {
		err = fmt.Errorf("longer than %d octets", most)
	}
	return b, terminal.WithoutPath(err)
}
