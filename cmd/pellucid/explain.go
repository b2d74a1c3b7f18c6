// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type explainCmd struct {
	DB   install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the gateway: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or pellucid.db in the state directory)."`
	JSON bool             `name:"json" help:"Print the explanation as JSON."`
	ID   string           `arg:"" help:"Evidence id: the 32 hexadecimal digits in a client's placeholder; or the id of a record or held item, or the index of a record in the log."`
}

func (explainCmd) Help() string {
	return `Reads the ledger, the queue, the blocked sources, the approvals and pins of the database, and the
journal in which wrap keeps decisions without a ledger. It prints what happened and when, what each
code means, which rule, classifier, pin or block was the reason, what the client got, what has become
of it since, and the commands for what you can do now. No third-party text stands in it: quarantine
show has that. Exit codes: 0 done; 1 the id is unknown; 2 wrong usage; 3 the state directory cannot
be used; 4 the store cannot be reached.`
}

func (c *explainCmd) Run(e *env) error {
	x, err := explain.Find(c.DB, c.DB.Flag(e.Getenv("PELLUCID_DB")), c.ID)
	if unknown, ok := errors.AsType[*explain.UnknownError](err); ok {
		if c.JSON {
			if err := terminal.WriteJSON(e.Stdout, map[string]any{"asked": c.ID, "found": []string{}, "looked": unknown.Looked}); err != nil {
				return err
			}
			return exit.With(exit.Failed, nil)
		}
		fmt.Fprintln(e.Stderr, "Looked in:")
		for _, place := range unknown.Looked {
			fmt.Fprintf(e.Stderr, "  %s\n", place)
		}
		fmt.Fprintln(e.Stderr, "A gateway may use another database: --db names it. Decisions that are older than the journal keeps are gone.")
		return err
	}
	switch {
	case errors.Is(err, explain.ErrRef):
		return exit.With(exit.Usage, err)
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, x)
	}
	return x.Write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}
