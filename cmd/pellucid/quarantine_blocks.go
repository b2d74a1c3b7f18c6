// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
)

type quarantineBlocksCmd struct {
	stateDB
	All  bool `help:"Also list blocks that have ended."`
	JSON bool `name:"json" help:"Print one JSON object for each block, as JSON lines."`
}

func (quarantineBlocksCmd) Help() string {
	return `pellucid guard sets a block when a counterfactual run has found that text of a server took
control of a model. Until the block ends, gateways on the same database hold results with that
text, or all results of that tool or server, as the guard is configured. A held result is in
pellucid quarantine list, and can be released for one call. The newest block comes first.`
}

func (c *quarantineBlocksCmd) Run(e *env) error {
	var list []hold.Block
	err := c.DB.WithBlocks(func(ctx context.Context, bs *hold.Blocks) (err error) {
		list, err = bs.List(ctx, c.All)
		return err
	})
	if err := c.listed(err); err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, list, review.NewBlock)
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Stderr, "No source is blocked.")
		return nil
	}
	return review.WriteBlocks(e.Stdout, list)
}

type quarantineLiftCmd struct{ decideFlags }

func (quarantineLiftCmd) Help() string {
	return `The block ends at once: gateways deliver what it has covered within two seconds. Results that it
has held already stay in the queue.`
}

func (c *quarantineLiftCmd) Run(e *env) error {
	return c.DB.WithBlocks(func(ctx context.Context, bs *hold.Blocks) error {
		err := bs.Lift(ctx, c.ID, c.who(e))
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: no such source: pellucid quarantine blocks has those that are withheld")
		} else if err != nil {
			return err
		}
		b, err := bs.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		out := review.NewBlock(&b)
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, out)
		}
		fmt.Fprintf(e.Stdout, "Lifted. What %s answers is delivered again.\n", out.Server)
		return nil
	})
}
