// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pellucid-mcp/pellucid/app/doctor"
	"github.com/pellucid-mcp/pellucid/app/exit"
)

type doctorCmd struct {
	Config string `short:"c" placeholder:"FILE" help:"Configuration to check (default: pellucid.yaml in this directory, or that of your configuration folder)."`
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
	switch err := e.answer("doctor", c.JSON, r, r.Write); {
	case err != nil:
		return err
	case refused:
		return exit.With(exit.Config, nil)
	case !r.OK:
		return exit.With(exit.Failed, nil)
	}
	return nil
}
