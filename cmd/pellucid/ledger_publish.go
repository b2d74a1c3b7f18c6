// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

type witnessFlags struct {
	Policy  string   `placeholder:"FILE" help:"Policy (C2SP tlog-policy): the witnesses with their URLs, and which of them are enough."`
	Witness []string `sep:"none" placeholder:"VKEY=URL" help:"Without --policy: public key and submission prefix of a witness."`
	Quorum  int      `help:"Without --policy: number of the witnesses that must cosign; 0 means all."`
}

func (c *witnessFlags) cosign(e *env, db install.Database) error {
	p, err := audit.ParsePolicy(c.Policy, c.Witness, c.Quorum)
	if err != nil {
		return err
	}
	return db.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		r, err := audit.Cosign(ctx, l, dir, p)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(e.Stdout, terminal.Printable(string(r.Checkpoint))); err != nil {
			return err
		}
		for _, name := range r.Failed {
			fmt.Fprintf(e.Stderr, "%s: %v\n", terminal.Printable(name), r.Errors[name])
		}
		if !r.Enough {
			return exit.With(exit.Failed, errors.New("ledger: witness: too few witnesses have cosigned"))
		}
		return nil
	})
}

type ledgerRestoreCmd struct {
	ledgerDB
	Key    []string `sep:"none" placeholder:"VKEY" help:"Public key of the log that you trust (default: those that the records in the database name)."`
	Resume bool     `help:"Restore nothing: let a log go on that was stopped by mistake."`
	From   string   `arg:"" optional:"" help:"Directory of an export that has more records than the database."`
}

func (ledgerRestoreCmd) Help() string {
	return `A log is stopped when the database has lost a part of it that was published: after a failover to a
standby that did not have the last transactions, or a restore of an older copy. This verb adds the missing
records, byte for byte, and the log goes on as the log that it was. Their openings are lost, and so are the
links of the processes that stored them: ledger verify names these as missing. --resume is for a log that was
stopped by mistake: by a witness that claims what it has not seen, and that you have taken out of the configuration. A
process that has itself seen a larger log stops it again.`
}

func (c *ledgerRestoreCmd) Validate() error {
	if c.Resume == (c.From != "") {
		return errors.New("ledger restore takes a directory, or --resume")
	}
	return nil
}

func (c *ledgerRestoreCmd) Run(e *env) error {
	if c.Resume {
		return c.resume(e)
	}
	o, err := audit.ParseOptions(c.Key, nil, 0, nil)
	if err != nil {
		return err
	}
	return c.DB.WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		n, err := audit.Restore(ctx, l, c.From, o.Keys)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Stderr, "%s added. The log goes on.\n", terminal.Plural(int(n), "record"))
		return err
	})
}

// resume lets a log go on that was stopped by mistake.
func (c *ledgerRestoreCmd) resume(e *env) error {
	return c.DB.WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		if err := l.Resume(ctx); err != nil {
			return err
		}
		_, err := fmt.Fprintln(e.Stderr, "The log may go on.")
		return err
	})
}
