// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/grounding"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type importCmd struct {
	storeFlags
	ruleFlags
	JSON bool   `name:"json" help:"Print the result for every entry, as JSON lines, once it is stored."`
	File string `arg:"" optional:"" help:"The file, which may be gzipped (default, or -: standard input)."`
}

func (importCmd) Help() string {
	return `Checks attestations as a server does and stores those that pass: whatever is
acknowledged has been written to disk. The file holds one JSON document or JSON lines.
docs/examples/factcheck makes such a file of published fact checks.

The import may be interrupted and run again: what is there already is told to be a
duplicate. Without --json each refusal is one line that begins with its code. Exit
codes: 0 everything is stored, 1 something was refused, 2 wrong usage, 3 bad
configuration, 4 the store cannot be reached or takes nothing.`
}

func (c *importCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal does not wait
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	in, err := terminal.OpenInput(c.File, e.Stdin)
	if err != nil {
		return fmt.Errorf("ground: %w", err)
	}
	defer in.Close()
	setup := c.setup()
	for _, name := range setup.Deviations() {
		fmt.Fprintf(e.Stderr, "%s: what is stored is no longer held to the whole specification, and answers say so.\n", name)
	}
	return grounding.RunImport(ctx, dir, grounding.Plan{Setup: setup, DB: c.DB, Notice: e.Stderr}, grounding.Import{
		In: in, Out: e.Stdout, JSON: c.JSON,
		Bar: func(bytes int64, say func() string) (at func(int64), done func()) {
			b := terminal.NewBar(e.Stderr, e.Getenv, "import", bytes)
			return func(n int64) { b.At(n, say()) }, b.Done
		},
	})
}
