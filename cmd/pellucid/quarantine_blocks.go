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

// blocks lists the sources whose text has taken control of a model.
func (c *quarantineListCmd) blocks(e *env) error {
	var list []hold.Block
	err := c.DB.WithBlocks(func(ctx context.Context, bs *hold.Blocks) (err error) {
		list, err = bs.List(ctx, c.Ended)
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

// block ends a block, if the id is that of one.
func (c *quarantineRevokeCmd) block(e *env) (found bool, err error) {
	err = c.DB.WithBlocks(func(ctx context.Context, bs *hold.Blocks) error {
		err := bs.Lift(ctx, c.ID, c.who(e))
		if errors.Is(err, hold.ErrNotFound) {
			return nil
		}
		found = true
		if err != nil {
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
	return found, err
}
