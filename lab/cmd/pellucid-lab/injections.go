// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/pellucid-mcp/pellucid/lab/injections"
)

type injectionsCmd struct {
	Out          string `required:"" placeholder:"FILE" help:"File to write: JSON Lines, compressed where its name ends in .gz."`
	Translations string `placeholder:"DIR" help:"Folder with the packages that make translations fetches: their texts are added."`
	Seed         uint64 `default:"7" placeholder:"N" help:"Seed of the generator (default ${default}, that of the published rows)."`
}

func (injectionsCmd) Help() string {
	return `A row has the members id, kind (attack or benign), family, language, group, carrier, split
(train or held) and text. What the rows are, and what they are not: injections/CARD.md.`
}

func (c *injectionsCmd) Run(e *env) error {
	rows, err := injections.Rows(c.Seed)
	if err != nil {
		return err
	}
	briefs, err := injections.Briefs()
	if err != nil {
		return err
	}
	rows = append(rows, briefs...)
	if c.Translations != "" {
		more, err := injections.Translations(c.Translations, c.Seed)
		if err != nil {
			return err
		}
		rows = append(rows, more...)
	}
	var b bytes.Buffer
	if err := injections.Write(&b, c.Out, rows); err != nil {
		return fmt.Errorf("injections: %w", err)
	}
	if err := os.WriteFile(c.Out, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("injections: %w", err)
	}
	fmt.Fprintf(e.Stderr, "%d rows\n", len(rows))
	return nil
}
