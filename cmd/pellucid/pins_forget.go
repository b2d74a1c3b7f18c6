// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type pinsForgetCmd struct {
	pinDecideFlags
	Yes bool `short:"y" help:"Do not ask for confirmation."`
}

func (pinsForgetCmd) Help() string {
	return `Use it for a server that is gone, or to check a server as if it were new. Everything that is
stored of the server is deleted, also what was blocked. If the server is used again, it is trusted
on first use (or held, where admission says first: hold). The records of the ledger stay. Exit
codes: 0 done; 1 the pin does not exist; 2 wrong usage, or no terminal for the confirmation; 3 the
state is damaged; 4 the database cannot be reached.`
}

var errForgetUnasked = exit.With(exit.Usage, errors.New("pins: there is no terminal to ask at: run it again with --yes"))

func (c *pinsForgetCmd) Run(e *env) error {
	at, err := c.places().Find(c.Server)
	if err != nil {
		return err
	}
	return c.places().Each(func(ctx context.Context, in install.PinPlace, pins *surface.Pins) error {
		if in != at.In {
			return nil
		}
		row := pinview.Row{Server: at.Server, In: string(in)}
		says := "what is known of it cannot be read"
		switch pin, err := pins.Get(ctx, at.Server); {
		case errors.Is(err, surface.ErrNotPinned): // another process has removed it meanwhile
			return install.NoPin(c.Server)
		case err == nil: // who forgets it need not understand it
			row = pinview.NewRow(string(in), &pin)
			says = row.Counts()
		}
		if !c.Yes {
			question := fmt.Sprintf("forget %s: %s?", terminal.ShellWord(c.Server), says)
			if err := e.agrees(question, errForgetUnasked, errors.New("pins: nothing was forgotten")); err != nil {
				return err
			}
		}
		if err := pins.Drop(ctx, at.Server, (&reviewerFlags{By: c.By}).who(e)); err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, row)
		}
		_, err := fmt.Fprintf(e.Stdout, "Forgotten: %s (%s): %s\n", terminal.ShellWord(c.Server), in, says)
		return err
	})
}
