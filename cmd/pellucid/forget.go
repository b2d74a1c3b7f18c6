// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/forget"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type forgetCmd struct {
	storeDB
	Principal string `xor:"what" placeholder:"NAME" help:"Erase what is kept of this person. Name of the principal, as in the token file or from the issuer; or of the reviewer, as given by --by."`
	Pin       string `xor:"what" placeholder:"SERVER" help:"Delete the pin of this server instead, as if it had never been seen: its name, as pins list shows it, or its identity."`
	Files     bool   `help:"With --pin: use only the pins in files of the state directory: those that wrap and check write without --db."`
	By        string `placeholder:"NAME" help:"With --pin: name of the reviewer (default: the name of this user)."`
	Yes       bool   `short:"y" help:"Do not ask for confirmation."`
	JSON      bool   `name:"json" help:"Print the result as JSON."`
}

func (forgetCmd) Help() string {
	return `Erases the person's held results, the name in decisions and pins, evidence files
of the guard, lines of refusals.jsonl, and what lets a reader match the signed records of the log
with the name: their openings. The records stay, so the log still verifies. Back-ups, exports
with openings, and the token file are yours to clean. docs/kept.md lists every stored field.

--pin is for a server that is gone, or that is to be checked as if it were new. Everything that is
stored of the server is deleted, also what was blocked. If the server is used again, it is trusted
on first use (or held, where admission says first: hold). The records of the ledger stay.
Exit codes: 0 done; 1 records wait for a key that is not here, or there is no such pin; 2 wrong usage, or not confirmed;
3 the state directory cannot be used; 4 the store cannot be reached, or is being read.`
}

func (c *forgetCmd) Validate() error {
	switch {
	case c.Pin != "":
		return (&reviewerFlags{By: c.By}).Validate()
	case c.Files || c.By != "":
		return errors.New("--files and --by go with --pin")
	case strings.TrimSpace(c.Principal) == "":
		return errors.New("say what to forget: --principal NAME or --pin SERVER")
	}
	return nil
}

func (c *forgetCmd) Run(e *env) error {
	if c.Pin != "" {
		return c.forgetPin(e)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := local.OpenState()
	if err != nil {
		return err
	}
	stores, err := c.DB.Stores()
	if err != nil {
		return err
	}
	if err := c.confirm(e); err != nil {
		return err
	}
	r, err := forget.Principal(ctx, dir, stores, c.Principal)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, r)
	}
	return r.Write(e.Stdout)
}

func (c *forgetCmd) confirm(e *env) error {
	if c.Yes {
		return nil
	}
	unasked := exit.With(exit.Usage, errors.New("forget: this cannot be taken back, and there is no terminal to ask: say --yes"))
	return e.agrees("Erase what is kept of "+terminal.ShellWord(c.Principal)+"? This cannot be taken back.", unasked, exit.With(exit.Usage, errors.New("forget: nothing was erased")))
}
