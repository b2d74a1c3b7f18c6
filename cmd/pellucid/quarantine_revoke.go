// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// A lister lists the rows in force, or all that are known.
type lister[T any] func(ctx context.Context, all bool) ([]T, error)

// listEnding lists exceptions, approvals or blocks.
func listEnding[T, J any](c *quarantineListCmd, e *env, of func(*install.Review) lister[T], newRow func(*T) J, write func(io.Writer, []T) error, none string) error {
	var rows []T
	err := c.DB.WithReview(func(ctx context.Context, r *install.Review) (err error) {
		rows, err = of(r)(ctx, c.Ended)
		return err
	})
	if err := c.listed(err); err != nil {
		return err
	}
	return printRows(e, c.JSON, rows, newRow, write, none)
}

// printRows prints rows as JSON or as a table, or says that there are none.
func printRows[T, J any](e *env, asJSON bool, rows []T, newRow func(*T) J, write func(io.Writer, []T) error, none string) error {
	switch {
	case asJSON:
		return terminal.WriteJSONLines(e.Stdout, rows, newRow)
	case len(rows) == 0:
		fmt.Fprintln(e.Stderr, none)
		return nil
	}
	return write(e.Stdout, rows)
}

type quarantineRevokeCmd struct{ decideFlags }

func (quarantineRevokeCmd) Help() string {
	return `It ends at once: calls and results are held as before, and what a block has covered is delivered within two
seconds; what it has held already stays in the queue. The argument is its id, as pellucid quarantine list --of shows it.`
}

func (c *quarantineRevokeCmd) Run(e *env) error {
	return c.DB.WithReview(func(ctx context.Context, r *install.Review) error {
		for _, kind := range []struct {
			end  func(ctx context.Context, id, by string) error
			said func() (row any, sentence string, err error)
		}{
			{r.Exceptions.Revoke, func() (any, string, error) {
				x, err := r.Exceptions.Get(ctx, c.ID)
				out := review.NewException(&x)
				return out, fmt.Sprintf("Revoked. Results of %s are held for %s again.", review.Source(&hold.Item{Server: x.Server, Tool: x.Tool}), out.Code), err
			}},
			{r.Blocks.Lift, func() (any, string, error) {
				b, err := r.Blocks.Get(ctx, c.ID)
				out := review.NewBlock(&b)
				return out, fmt.Sprintf("Lifted. What %s answers is delivered again.", out.Server), err
			}},
			{r.Approvals.Revoke, func() (any, string, error) {
				a, err := r.Approvals.Get(ctx, c.ID)
				out := review.NewApproval(&a)
				return out, fmt.Sprintf("Revoked. Calls of %s are decided on again.", out.Tool), err
			}},
		} {
			err := kind.end(ctx, c.ID, c.who(e))
			if errors.Is(err, hold.ErrNotFound) {
				continue
			} else if err != nil {
				return err
			}
			row, sentence, err := kind.said()
			if err != nil {
				return err
			}
			if c.JSON {
				return terminal.WriteJSON(e.Stdout, row)
			}
			fmt.Fprintln(e.Stdout, sentence)
			return nil
		}
		return errors.New("quarantine: no such exception, approval or block: pellucid quarantine list --of exceptions, approvals or blocks has those in force")
	})
}
