// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
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

type quarantineApprovalsCmd struct {
	stateDB
	All  bool `help:"Also list approvals that have ended."`
	JSON bool `name:"json" help:"Print one JSON object for each approval, as JSON lines."`
}

func (quarantineApprovalsCmd) Help() string {
	return `An approval is made by pellucid quarantine release --remember. Until it ends, pellucid guard lets
the same call of the same principal pass: the same tool, the same arguments, and values that come
from the same kind of place and from the same sources. Each use is in the record of the decision.
The newest approval comes first.`
}

func (c *quarantineApprovalsCmd) Run(e *env) error {
	var list []hold.Approval
	err := c.DB.WithApprovals(func(ctx context.Context, as *hold.Approvals, _ *hold.Queue) (err error) {
		list, err = as.List(ctx, c.All)
		return err
	})
	if err != nil && !errors.Is(err, install.ErrNoStore) {
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
	return `The approval ends at once. The next call that is the same is decided on again. The argument is the
id of an approval, as pellucid quarantine approvals shows it.`
}

func (c *quarantineRevokeCmd) Run(e *env) error {
	return c.DB.WithApprovals(func(ctx context.Context, as *hold.Approvals, _ *hold.Queue) error {
		err := as.Revoke(ctx, c.ID, c.who(e))
		if errors.Is(err, hold.ErrNotFound) {
			return errors.New("quarantine: no such approval: pellucid quarantine approvals has those in force")
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
