// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/doctor"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type doctorCmd struct {
	Config string `short:"c" completion:"files" placeholder:"FILE" help:"Configuration to check (default: pellucid.yaml, if there is one)."`
	storeDB
	JSON bool `name:"json" help:"Print the findings as JSON."`
}

func (doctorCmd) Help() string {
	return `Looks at the state directory, the key, the configuration, the store, the port, the
clients' configurations and what servers were lately refused, and changes none of them. Exit codes: 0 nothing is wrong, perhaps
with warnings; 1 something is; 3 the configuration is refused.`
}

func (c *doctorCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	r, refused := doctor.Examine(ctx, doctor.Options{Config: c.Config, DB: c.DB, Env: e.references(), Getenv: e.Getenv})
	err := error(nil)
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, r)
	} else {
		err = r.Write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
	}
	switch {
	case err != nil:
		return fmt.Errorf("doctor: write: %w", err)
	case refused:
		return exit.With(exit.Config, nil)
	case !r.OK:
		return exit.With(exit.Failed, nil)
	}
	return nil
}
