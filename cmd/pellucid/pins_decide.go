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
type pinDecision struct {
	pinFlags
	By     string `placeholder:"NAME" help:"Who decides; the name of this user if absent."`
	JSON   bool   `name:"json" help:"Print as JSON what was decided about."`
	Server string `arg:"" help:"Server: a name that list shows, or its identity."`
}

// Validate is called by kong; its error is one of usage.
func (c *pinDecision) Validate() error {
	if c.By != "" && !frame.IsLabel(c.By) {
		return errors.New("--by: want 1 to 128 of A-Z a-z 0-9 . _ / : @ + -")
	}
	return nil
}

// A verb is what becomes of a version.
type pinVerb struct {
	word, past string
	do         func(p *surface.Pins, ctx context.Context, server string, k surface.Key, d surface.Digest, by string) error
}

var (
	approving = pinVerb{"approve", "Approved", (*surface.Pins).Approve}
	blocking  = pinVerb{"block", "Blocked", (*surface.Pins).Block}
)

// one decides about an item. A person is asked about one that was not named by its
// digest: whoever decides has seen that version.
func (c *pinDecision) one(e *env, item string, verb pinVerb) error {
	return c.places().Of(c.Server, func(ctx context.Context, pins *surface.Pins, pin surface.Pin) error {
		it, digest, err := pinview.Version(&pin, item)
		switch {
		case errors.Is(err, pinview.ErrSeveralItems):
			return exit.With(exit.Usage, err)
		case err != nil:
			return err
		case verb.word == "approve" && it.Pending == "":
			return errors.New("pins: nothing of this item waits")
		}
		if item != digest.String() {
			if err := confirm(e, &pin, []*surface.PinnedItem{it}, fmt.Sprintf("%s %s, %s?", verb.word, terminal.Inline(it.Key.String()), digest)); err != nil {
				return err
			}
		}
		return c.take(ctx, e, pins, &pin, it.Key, digest, verb)
	})
}

// take takes a decision and says so.
func (c *pinDecision) take(ctx context.Context, e *env, pins *surface.Pins, of *surface.Pin, k surface.Key, digest surface.Digest, verb pinVerb) error {
	who := (&decision{By: c.By}).who(e)
	if err := verb.do(pins, ctx, of.Server, k, digest, who); err != nil {
		return err
	}
	if !c.JSON {
		_, err := fmt.Fprintf(e.Stdout, "%s: %s of %s, %s\n", verb.past, terminal.Inline(k.String()), terminal.Inline(of.Name()), digest)
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

// showWaiting shows a person the versions to decide about.
func showWaiting(e *env, pin *surface.Pin, items []*surface.PinnedItem) {
	_ = pinview.WriteWaiting(e.Stderr, terminal.PaletteFor(e.Stderr, e.Getenv), pin, items)
}

// confirm shows versions to the person who decides about them, and asks.
func confirm(e *env, pin *surface.Pin, items []*surface.PinnedItem, question string) error {
	unasked := exit.With(exit.Usage, fmt.Errorf("pins: there is nobody to ask: name the version that you have seen by its digest, as pellucid pins diff %s shows it", terminal.ShellWord(pin.Server)))
	if canAsk(e) {
		showWaiting(e, pin, items)
	}
	return e.agrees(question, unasked, errors.New("pins: nothing was decided"))
}

type pinsApproveCmd struct {
	pinDecision
	Item string `arg:"" optional:"" help:"Item: the digest that diff shows; or, where somebody can be asked, its name, or kind and name as in tool/search."`
	All  bool   `help:"Everything of the server that waits. It is shown, and asked about."`
	Kind string `enum:"server,list,tool,prompt,resource,template," default:"" placeholder:"KIND" help:"Everything of this kind that waits: server, list, tool, prompt, resource or template. It is shown, and asked about."`
	Yes  bool   `short:"y" help:"Do not ask about --all and --kind."`
}

func (pinsApproveCmd) Help() string {
	return `From now on the item may be seen as it is. A version that the server has replaced
meanwhile is not approved: the digest says which one was seen. What is blocked is
approved by its name or digest only.`
}

func (c *pinsApproveCmd) Run(e *env) error {
	several := c.All || c.Kind != ""
	switch {
	case several && c.Item != "", c.All && c.Kind != "":
		return exit.With(exit.Usage, errors.New("pins: an item, --all and --kind exclude each other"))
	case several:
		return c.several(e)
	case c.Yes:
		return exit.With(exit.Usage, errors.New("pins: --yes goes with --all or --kind: an item is approved unasked by its digest"))
	case c.Item == "":
		return exit.With(exit.Usage, errors.New("pins: say what to approve: an item, --kind or --all"))
	}
	return c.one(e, c.Item, approving)
}

// several approves what waits, of one kind or all, in the versions that it has shown.
func (c *pinsApproveCmd) several(e *env) error {
	return c.places().Of(c.Server, func(ctx context.Context, pins *surface.Pins, pin surface.Pin) error {
		items := pinview.Waiting(&pin, c.Kind)
		if len(items) == 0 {
			return errors.New("pins: nothing of that waits")
		}
		if c.Yes {
			showWaiting(e, &pin, items)
		} else if err := confirm(e, &pin, items, fmt.Sprintf("approve all of this, %s?", terminal.Plural(len(items), "version"))); err != nil {
			return err
		}
		moved := 0
		for _, it := range items {
			err := c.take(ctx, e, pins, &pin, it.Key, it.PendingDigest(), approving)
			if errors.Is(err, surface.ErrMoved) || errors.Is(err, surface.ErrNotPinned) {
				moved++
			} else if err != nil {
				return err
			}
		}
		if moved > 0 {
			return fmt.Errorf("pins: %s not approved: the server says something else by now", terminal.Plural(moved, "version"))
		}
		return nil
	})
}

type pinsBlockCmd struct {
	pinDecision
	Item string `arg:"" help:"Item: the digest that diff shows; or, where somebody can be asked, its name, or kind and name as in tool/search."`
}

func (pinsBlockCmd) Help() string {
	return `The version stays held, also where it was approved before. Another version of the item
waits for a decision of its own.`
}

func (c *pinsBlockCmd) Run(e *env) error { return c.one(e, c.Item, blocking) }
