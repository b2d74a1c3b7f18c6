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

var errForgetUnasked = exit.With(exit.Usage, errors.New("pins: there is no terminal to ask at: run it again with --yes"))

// forgetPin deletes the pin of a server.
func (c *forgetCmd) forgetPin(e *env) error {
	places := install.PinPlaces{Db: c.DB, Files: c.Files}
	at, err := places.Find(c.Pin)
	if err != nil {
		return err
	}
	return places.Each(func(ctx context.Context, in install.PinPlace, pins *surface.Pins) error {
		if in != at.In {
			return nil
		}
		row := pinview.Row{Server: at.Server, In: string(in)}
		says := "what is known of it cannot be read"
		switch pin, err := pins.Get(ctx, at.Server); {
		case errors.Is(err, surface.ErrNotPinned): // another process has removed it meanwhile
			return install.NoPin(c.Pin)
		case err == nil: // who forgets it need not understand it
			row = pinview.NewRow(string(in), &pin)
			says = row.Counts()
		}
		if !c.Yes {
			question := fmt.Sprintf("forget %s: %s?", terminal.ShellWord(c.Pin), says)
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
		_, err := fmt.Fprintf(e.Stdout, "Forgotten: %s (%s): %s\n", terminal.ShellWord(c.Pin), in, says)
		return err
	})
}
