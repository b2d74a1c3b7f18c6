// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/pellucid-mcp/pellucid/app/demo"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// demoCmd plays the demonstration: what make run shows.
type demoCmd struct {
	Show  demoShowCmd  `cmd:"" default:"1" help:"Play the demonstration."`
	Serve demoServeCmd `cmd:"" hidden:"" help:"Run the demonstration server on standard input and output."`
}

func (demoCmd) Help() string {
	return "Starts a server whose tools return poisoned and benign results, once alone and once behind " +
		"\"pellucid wrap\", and shows what a client gets of each. " +
		"Exit code 1 if anything is not as it should be."
}

type demoServeCmd struct {
	Results bool `help:"Offer only tools whose results are poisoned, and no tool whose description is."`
}

func (c demoServeCmd) Run(*env) error { return demo.Serve(context.Background(), c.Results) }

type demoShowCmd struct{}

func (demoShowCmd) Run(e *env) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("demo: find this program: %w", err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	return demo.Show(ctx, self, e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}
