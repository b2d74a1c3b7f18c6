// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/boundary/pinview"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/text/frame"
)

// pinDecision is what approve and block share.
type pinDecideFlags struct {
	pinFlags
	By     string `placeholder:"NAME" help:"Name of the reviewer (default: the name of this user)."`
	JSON   bool   `name:"json" help:"Print the decided items as JSON."`
	Server string `arg:"" help:"Server: its name, as pins list shows it, or its identity."`
}

func (c *pinDecideFlags) Validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

// with has do decide about the pin of the server. A person is asked unless unasked is set:
// then the versions are shown only.
func (c *pinDecideFlags) with(e *env, past string, unasked bool, do func(context.Context, *pinview.Decider, *surface.Pin) error) error {
	err := c.places().Of(c.Server, func(ctx context.Context, pins *surface.Pins, pin surface.Pin) error {
		d := &pinview.Decider{Pins: pins, By: (&reviewerFlags{By: c.By}).who(e)}
		d.Ask = func(pin *surface.Pin, items []*surface.PinnedItem, question string) error {
			if unasked || canAsk(e) {
				_ = pinview.WriteWaiting(e.Stderr, terminal.PaletteFor(e.Stderr, e.Getenv), pin, items)
			}
			if unasked {
				return nil
			}
			nobody := exit.With(exit.Usage, fmt.Errorf("pins: there is no terminal to ask at: name the version that you have seen by its digest, as pellucid pins diff %s shows it", terminal.ShellWord(pin.Server)))
			return e.agrees(question, nobody, errors.New("pins: nothing was decided"))
		}
		d.Tell = func(ctx context.Context, of *surface.Pin, k surface.Key, digest surface.Digest) error {
			if !c.JSON {
				_, err := fmt.Fprintf(e.Stdout, "%s: %s of %s, %s\n", past, terminal.Inline(k.String()), terminal.Inline(of.Name()), digest)
				return err
			}
			pin, err := pins.Get(ctx, of.Server)
			if err != nil {
				return err
			}
			if now := pin.Item(k); now != nil {
				return terminal.WriteJSON(e.Stdout, pinview.NewItem(pin.Server, now))
			}
			return nil
		}
		return do(ctx, d, &pin)
	})
	if errors.Is(err, pinview.ErrSeveralItems) {
		return exit.With(exit.Usage, err)
	}
	return err
}

type pinsApproveCmd struct {
	pinDecideFlags
	Item string `arg:"" optional:"" help:"Item: the digest that pins diff shows. At a terminal also its name, or kind and name as in tool/search."`
	All  bool   `help:"Approve everything of the server that waits, after showing it and asking."`
	Kind string `enum:"server,list,tool,prompt,resource,template," default:"" placeholder:"KIND" help:"Approve everything of this kind that waits, after showing it and asking: server, list, tool, prompt, resource or template."`
	Yes  bool   `short:"y" help:"Do not ask for confirmation of --all and --kind."`
}

func (pinsApproveCmd) Help() string {
	return `From now on the item may be seen as it is. A version that the server has replaced
meanwhile is not approved: the digest says which one was seen. What is blocked is
approved by its name or digest only. The digest of a version that was pinned when it was
first seen says that you have read it: warnings about its words end.`
}

func (c *pinsApproveCmd) Run(e *env) error {
	several := c.All || c.Kind != ""
	switch {
	case several && c.Item != "", c.All && c.Kind != "":
		return exit.With(exit.Usage, errors.New("pins: an item, --all and --kind exclude each other"))
	case several:
		return c.with(e, "Approved", c.Yes, func(ctx context.Context, d *pinview.Decider, pin *surface.Pin) error {
			return d.ApproveWaiting(ctx, pin, c.Kind)
		})
	case c.Yes:
		return exit.With(exit.Usage, errors.New("pins: --yes goes with --all or --kind: an item is approved unasked by its digest"))
	case c.Item == "":
		return exit.With(exit.Usage, errors.New("pins: say what to approve: an item, --kind or --all"))
	}
	return c.with(e, "Approved", false, func(ctx context.Context, d *pinview.Decider, pin *surface.Pin) error {
		return d.Approve(ctx, pin, c.Item)
	})
}

type pinsBlockCmd struct {
	pinDecideFlags
	Item string `arg:"" help:"Item: the digest that pins diff shows. At a terminal also its name, or kind and name as in tool/search."`
}

func (pinsBlockCmd) Help() string {
	return `The version stays held, also where it was approved before. Another version of the item
waits for a decision of its own.`
}

func (c *pinsBlockCmd) Run(e *env) error {
	return c.with(e, "Blocked", false, func(ctx context.Context, d *pinview.Decider, pin *surface.Pin) error {
		return d.Block(ctx, pin, c.Item)
	})
}
