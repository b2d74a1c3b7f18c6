// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// writeProof writes the proof that the log contains the record.
func (c *explainCmd) writeProof(e *env) error {
	id, err := audit.Named(c.DB, c.ID)
	if err != nil {
		return err
	}
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		one, err := audit.Find(ctx, l, dir, id)
		if err != nil {
			return err
		}
		p, err := ledger.Prove(ctx, l, one.Index)
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(p.Bytes())
		return err
	})
}

// writeCase writes all that is known and provable of the decision into one file.
func (c *explainCmd) writeCase(e *env) error {
	id, err := audit.Named(c.DB, c.ID)
	if err != nil {
		return err
	}
	o := audit.CaseOptions{WithoutText: c.WithoutText || c.WithoutOpenings, WithoutOpenings: c.WithoutOpenings, Statement: audit.GuardStatement}
	if c.Identity != "" {
		o.Open = func(it *hold.Item) ([]byte, error) { return c.unseal(e, it) }
	}
	out, err := o.Case(c.DB, id)
	if err != nil {
		return err
	}
	if out.Head == "" {
		fmt.Fprintln(e.Stderr, "The key of the log is not on this machine, so the case is not signed: a reader cannot see whether something was left out of it later, and has to say verify.py case --unsigned.")
	}
	write := func(w io.Writer) error { return terminal.WriteJSON(w, out) }
	if c.Case == "-" {
		return write(e.Stdout)
	}
	if err := terminal.WriteWhole(c.Case, write); err != nil {
		return fmt.Errorf("explain: --case: %w", terminal.QuotedPath(err))
	}
	fmt.Fprintf(e.Stderr, "%s, with %s.\n", terminal.Inline(filepath.Base(c.Case)), terminal.Plural(len(out.Records), "record"))
	return nil
}
