// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/lab/residue"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type corporaCmd struct {
	Data string `env:"PELLUCID_DATA" default:"../../shared/data" placeholder:"DIR" help:"The folder that holds corpora/ (default ${default}, or $$${env})."`
	JSON bool   `name:"json" help:"Print the same as JSON."`
}

func (corporaCmd) Help() string {
	return `For each family of rows: how many hold a hidden code point, a control token or
a hidden message, before and after the profile mcp; then, under faithful, how
many have a token or a message left, how many were changed, and how many have
the same NFC as before. What is left is looked for by checks of their own, which
share no table with the scrubber. Exit codes: 0 every target was reached, 1 one
was missed, or there are no data.`
}

func (c *corporaCmd) Run(e *env) error {
	progress := newProgress(e, "corpora")
	report, err := residue.Measure(c.Data, progress.Say)
	progress.Done()
	if err != nil {
		return err
	}
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, report)
	} else {
		err = report.Print(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	switch {
	case err != nil:
		return fmt.Errorf("corpora: write: %w", err)
	case !report.Met():
		return errors.New("corpora: a target was missed")
	}
	return nil
}
