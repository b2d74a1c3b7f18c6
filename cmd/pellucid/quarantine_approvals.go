// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/review"
)

// approvalTime reads how long an approval lasts: "30d", "12h", "90m".
func approvalTime(s string) (time.Duration, error) {
	d, err := terminal.Age(s)
	if err != nil || d < time.Minute || d > hold.MaxApproval {
		return 0, errors.New("--remember: want a time from 1m to 365d, such as 30d or 12h")
	}
	return d, nil
}

// approvals lists the calls that are approved for a time.
func (c *quarantineListCmd) approvals(e *env) error {
	var list []hold.Approval
	err := c.DB.WithApprovals(func(ctx context.Context, as *hold.Approvals, _ *hold.Queue) (err error) {
		list, err = as.List(ctx, c.Ended)
		return err
	})
	if err := c.listed(err); err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSONLines(e.Stdout, list, review.NewApproval)
	}
	if len(list) == 0 {
		fmt.Fprintln(e.Stderr, "No call is approved.")
		return nil
	}
	return review.WriteApprovals(e.Stdout, list)
}

type quarantineRevokeCmd struct{ decideFlags }

func (quarantineRevokeCmd) Help() string {
	return `It ends at once: calls and results are held as before, and what a block has covered is delivered within two
seconds; what it has held already stays in the queue. The argument is its id, as pellucid quarantine list --of shows it.`
}

func (c *quarantineRevokeCmd) Run(e *env) error {
	for _, end := range []func(*env) (bool, error){c.exception, c.block} {
		if found, err := end(e); found || err != nil {
			return err
		}
	}
	return c.DB.WithApprovals(func(ctx context.Context, as *hold.Approvals, _ *hold.Queue) error {
		err := as.Revoke(ctx, c.ID, c.who(e))
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: no such exception, approval or block: pellucid quarantine list --of exceptions, approvals or blocks has those in force")
		} else if err != nil {
			return err
		}
		a, err := as.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		out := review.NewApproval(&a)
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, out)
		}
		fmt.Fprintf(e.Stdout, "Revoked. Calls of %s are decided on again.\n", out.Tool)
		return nil
	})
}

// exception ends an exception, if the id is that of one.
func (c *quarantineRevokeCmd) exception(e *env) (found bool, err error) {
	err = c.DB.WithExceptions(func(ctx context.Context, es *hold.Exceptions, _ *hold.Queue) error {
		err := es.Revoke(ctx, c.ID, c.who(e))
		if errors.Is(err, hold.ErrNotFound) {
			return nil
		}
		found = true
		if err != nil {
			return err
		}
		x, err := es.Get(ctx, c.ID)
		if err != nil {
			return err
		}
		out := review.NewException(&x)
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, out)
		}
		fmt.Fprintf(e.Stdout, "Revoked. Results of %s are held for %s again.\n", review.Source(&hold.Item{Server: x.Server, Tool: x.Tool}), out.Code)
		return nil
	})
	return found, err
}
