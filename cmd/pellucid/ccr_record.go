// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/analysis"
	"github.com/pellucid-mcp/pellucid/model/counterfactual"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type ccrReplayCmd struct {
	JSON   bool   `name:"json" help:"Print the outcome as JSON."`
	Record string `arg:"" help:"Evidence, as ccr analyze --record writes it, or guard/ID.json of pellucid guard; - is standard input."`
}

func (ccrReplayCmd) Help() string {
	return `The verdict follows from the answers in the record. The same code computes it again, without a
model, and compares the bytes. ledger verify --record checks who signed the record. Exit codes: 0 the
verdict follows; 1 it does not, or the file cannot be read.`
}

// replay derives the attribution of the record of that name again.
func replay(e *env, name string) (*analysis.Replayed, *counterfactual.Result, error) {
	b, err := terminal.ReadInput(name, e.Stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("ccr: %w", err)
	}
	out, r := analysis.Replay(b)
	return out, r, nil
}

func (c *ccrReplayCmd) Run(e *env) error {
	out, r, err := replay(e, c.Record)
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, out)
	} else if out.Holds {
		err = out.Print(e.Stdout, r)
	}
	switch {
	case err != nil:
		return err
	case !out.Holds && c.JSON:
		return exit.With(exit.Failed, nil)
	case !out.Holds:
		return fmt.Errorf("ccr: %s: %s", terminal.InputName(c.Record), out.Problem)
	}
	return nil
}
