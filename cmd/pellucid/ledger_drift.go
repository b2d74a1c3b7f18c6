// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/app/drift"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/storage"
)

type ledgerDriftCmd struct {
	ledgerDB
	Server string `placeholder:"NAME" help:"Only this server."`
	JSON   bool   `name:"json" help:"Print the result as JSON."`
}

func (ledgerDriftCmd) Help() string {
	return `Compares, for each server and classifier, the share of results that were flagged in the last 7 days (of UTC, with today)
with that of the 28 days before. A share that has doubled means that the server is attacked, that its answers
have changed, or that the classifier no longer fits them: read what was flagged (ledger show --kind classified).
Results that were not judged do not count.`
}

func (c *ledgerDriftCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		if err := index.NewFollower(l, slog.New(slog.DiscardHandler)).Catch(ctx, nil); err != nil {
			return err
		}
		var r *drift.Report
		err := l.View(ctx, func(v *storage.View) (err error) {
			r, err = drift.Read(v, time.Now(), func(server string) bool { return c.Server == "" || c.Server == server })
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, r)
		}
		return r.Write(e.Stdout)
	})
}
