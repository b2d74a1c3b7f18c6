// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/guardreport"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type guardReportCmd struct {
	ledgerDB
	Since string `default:"7d" placeholder:"TIME" help:"Count decisions of this time or later: RFC 3339, or an age such as 12h or 7d (default ${default})."`
	Limit int    `default:"100" placeholder:"N" help:"Maximum number of held calls to list, 0 to 1,000 (default ${default}). All of them are counted."`
	JSON  bool   `name:"json" help:"Print one JSON object."`
}

func (guardReportCmd) Help() string {
	return `Adds up the decisions that the ledger has, with their statements in guard/ID.json in the state
directory of this machine: how many privileged calls the guard held, or would have held in audit
mode, by verdict and by tool, with the 95 % interval after Wilson; how many extra calls of the
model that cost; and each held call, with where its arguments come from and the command that shows
it. Each statement is derived again, and compared with the digest in the ledger; those that are
missing, changed or of another version are counted apart. No third-party text stands in them. A
guard may run meanwhile. Exit codes: 0 done; 1 there is no log; 2 wrong usage; 3 the state
directory cannot be used; 4 the store cannot be reached.`
}

func (c *guardReportCmd) Validate() error {
	if c.Limit < 0 || c.Limit > 1000 {
		return errors.New("--limit: want 0 to 1000")
	}
	return nil
}

func (c *guardReportCmd) Run(e *env) error {
	now := time.Now()
	since, err := terminal.Moment("--since", c.Since, now)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	r, err := guardreport.Query{Since: since, Until: now, Limit: c.Limit}.Collect(c.DB)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, r)
	}
	return r.Print(e.Stdout)
}
