// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
)

type ledgerCaseCmd struct {
	ledgerDB
	reviewerKey
	Out             string `short:"o" completion:"files" placeholder:"FILE" help:"File to write (default: standard output)."`
	WithoutText     bool   `help:"Leave out the text that is held, and the statement of the guard."`
	WithoutOpenings bool   `help:"Leave out the plain digests, and with them the text and the names of reviewers: for a reader who must not have them."`
	ID              string `arg:"" help:"Evidence id of the decision, or the id of a record about it; or the index of such a record in the log."`
}

func (ledgerCaseCmd) Help() string {
	return `The file is JSON. It has the records of the decision with their proofs under one checkpoint, with the
cosignatures of witnesses; the plain digests; what is still held, which stays encrypted to its
reviewers unless --identity opens it; who decided; and, where what was held is destroyed or a person was
forgotten, the record that proves it. Nothing stands in it that the records do not prove. The key of the
log signs all of it, so that a reader sees where something was left out later. A reader
checks it without this program and without a network:
python3 docs/spec/verify/verify.py case FILE KEY [WITNESS-KEY...].
Where the key of the log is not on this machine the file is not signed, and the reader has to say --unsigned.
The held text is third-party text: do not give it to a model.`
}

func (c *ledgerCaseCmd) Validate() error {
	if c.WithoutOpenings && c.Identity != "" || c.WithoutText && c.Identity != "" {
		return errors.New("--identity opens the text that --without-text and --without-openings leave out")
	}
	return nil
}

func (c *ledgerCaseCmd) Run(e *env) error {
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
	if c.Out == "" {
		return write(e.Stdout)
	}
	if err := terminal.WriteWhole(c.Out, write); err != nil {
		return fmt.Errorf("ledger: case: %w", terminal.QuotedPath(err))
	}
	fmt.Fprintf(e.Stderr, "%s, with %s.\n", terminal.Inline(filepath.Base(c.Out)), terminal.Plural(len(out.Records), "record"))
	return nil
}
