// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"

	"fmt"
	"slices"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/reviewer"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

// pinsCmd is what a person does about servers that say something else than before.
type pinsCmd struct {
	List    pinsListCmd    `cmd:"" help:"List the pinned servers, and what waits for a decision; or the items of a server, and their text."`
	Diff    pinsDiffCmd    `cmd:"" help:"Compare what waits with what is approved, field by field."`
	Approve pinsApproveCmd `cmd:"" help:"Approve the waiting version of an item."`
	Block   pinsBlockCmd   `cmd:"" help:"Block the waiting version of an item."`
}

func (pinsCmd) Help() string {
	return `A server is pinned when it is first seen; what it says otherwise later waits. Exit codes
of each verb: 0 done, or nothing waits; 1 there is no such server or item, or nothing of
it waits; 2 wrong usage, or there is no terminal to ask at; 3 the state directory or a pin in it
is damaged; 4 the database cannot be reached.`
}

type pinsListCmd struct {
	pinArgs
	Items   bool `help:"Show every item, with its state and digest, and not only each server."`
	Pending bool `help:"Show only the items that wait for a decision."`
}

func (pinsListCmd) Help() string {
	return `With an item: its versions as they
were received, as canonical JSON; what a terminal would not show is spelled out. It is
third-party text: read it, and do not paste it into a model.`
}

func (c *pinsListCmd) Run(e *env) error {
	if c.Items || c.Pending || c.Item != "" {
		return c.items(e)
	}
	rows, err := c.places().Rows(c.Server)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, rows, func(r *pinview.Row) pinview.Row { return *r })
	}
	if len(rows) == 0 {
		fmt.Fprintln(e.Stderr, "Nothing to list.")
		return nil
	}
	return pinview.WriteRows(e.Stdout, rows)
}

// pinArgs are what show and diff share.
type pinArgs struct {
	pinFlags
	Server string `arg:"" optional:"" help:"Server: its name, as pins list shows it, or its identity (default: all)."`
	Item   string `arg:"" optional:"" help:"Item: its name, its kind and name as in tool/search, or the digest of a version."`
	JSON   bool   `name:"json" help:"Print one JSON object for each item."`
}

// items shows the items of the pins.
func (c *pinsListCmd) items(e *env) error {
	return c.places().EachPin(c.Server, func(pin *surface.Pin) error {
		items, err := pinview.Items(pin, c.Item)
		if err != nil {
			return err
		}
		if c.Pending {
			items = slices.DeleteFunc(items, func(it *surface.PinnedItem) bool { return it.State() != surface.Pending })
		}
		if !c.JSON {
			show := pinview.Show{OneOfMany: c.Server == "", Texts: c.Item != ""}
			return show.WriteItems(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv), pin, items)
		}
		return terminal.WriteJSONLines(e.Stdout, items, func(it **surface.PinnedItem) pinview.Item { return pinview.NewItem(pin.Server, *it) })
	})
}

type pinsDiffCmd struct{ pinArgs }

func (pinsDiffCmd) Help() string {
	return `Both sides of every field are shown whole, hidden characters spelled out. The digest
names the version: approve and block take it for the item, and decide about that
version and no other. With a review in the configuration, its model is asked about each
version that waits, and its opinion is shown.`
}

func (c *pinsDiffCmd) Run(e *env) error {
	shown := 0
	ctx, stop := exit.UntilSignal()
	defer stop()
	model, err := c.reviewer(e)
	if err != nil {
		return err
	}
	if model != nil {
		defer model.Close()
	}
	err = c.places().EachPin(c.Server, func(pin *surface.Pin) error {
		changes, err := pinview.Changes(pin, c.Item)
		if err != nil {
			return err
		}
		shown += len(changes)
		w := bufio.NewWriter(e.Stdout)
		p := terminal.PaletteFor(e.Stdout, e.Getenv)
		if c.Server == "" && len(changes) > 0 && !c.JSON {
			pinview.Heading(w, p, pin)
		}
		for _, ch := range changes {
			if it := pin.Item(ch.Key()); model != nil && it != nil && it.Pending != "" {
				ch.Opinion = model.Opinion(ctx, pin.Server, it.Key, it.Pending)
			}
			if !c.JSON {
				ch.Write(w, p)
			} else if err := terminal.WriteJSON(w, pinview.ServerChange{Server: pin.Server, Change: ch}); err != nil {
				return err
			}
		}
		return w.Flush()
	})
	if err == nil && shown == 0 && !c.JSON {
		fmt.Fprintln(e.Stderr, "Nothing waits.")
	}
	return err
}

// reviewer is the model of the review that the configuration of this installation asks for, if it does.
func (c *pinsDiffCmd) reviewer(e *env) (*reviewer.Model, error) {
	file := install.ConfigFile()
	if file == "" {
		return nil, nil
	}
	r, err := rules.Load(file, e.references())
	if err != nil || r.Review == nil {
		return nil, nil // doctor says what is wrong with the file
	}
	return reviewer.New(r.Review, nil, nil)
}
