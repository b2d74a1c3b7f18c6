// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/explain"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
)

type explainCmd struct {
	DB   install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Database of the gateway: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or pellucid.db in the state directory)."`
	JSON bool             `name:"json" xor:"what" help:"Print the explanation as JSON."`

	Proof           bool   `xor:"what" help:"Print the proof that the log contains the record instead (C2SP tlog-proof). With the public key of the log (pellucid ledger checkpoint --keys) it can be checked offline: pellucid ledger verify --proof FILE --key KEY."`
	Case            string `xor:"what" placeholder:"FILE" help:"Write all that is known and provable of the decision into this file instead; - is standard output."`
	WithoutText     bool   `help:"With --case: leave out the text that is held, and the statement of the guard."`
	WithoutOpenings bool   `help:"With --case: leave out the plain digests, and with them the text and the names of reviewers: for a reader who must not have them."`
	reviewerKey

	ID string `arg:"" help:"Evidence id: the 32 hexadecimal digits in a client's placeholder; or the id of a record or held item, or the index of a record in the log."`
}

func (explainCmd) Help() string {
	return `Reads the ledger, the queue, the blocked sources, the approvals and pins of the database, and the
journal in which wrap keeps decisions without a ledger. It prints what happened and when, what each
code means, which rule, classifier, pin or block was the reason, what the client got, what has become
of it since, and the commands for what you can do now. No third-party text stands in it: quarantine
show has that.

The file of --case is JSON. It has the records of the decision with their proofs under one checkpoint, with the
cosignatures of witnesses; the plain digests; what is still held, which stays encrypted to its
reviewers unless --identity opens it; who decided; and, where what was held is destroyed or a person was
forgotten, the record that proves it. Nothing stands in it that the records do not prove. The key of the
log signs all of it, so that a reader sees where something was left out later. A reader
checks it without this program and without a network:
python3 docs/spec/verify/verify.py case FILE KEY [WITNESS-KEY...].
Where the key of the log is not on this machine the file is not signed, and the reader has to say --unsigned.
The held text is third-party text: do not give it to a model. Exit codes: 0 done; 1 the id is unknown; 2 wrong usage; 3 the state directory cannot
be used; 4 the store cannot be reached.`
}

func (c *explainCmd) Validate() error {
	switch {
	case c.Case == "" && (c.WithoutText || c.WithoutOpenings || c.Identity != ""):
		return errors.New("--without-text, --without-openings and --identity go with --case")
	case (c.WithoutOpenings || c.WithoutText) && c.Identity != "":
		return errors.New("--identity opens the text that --without-text and --without-openings leave out")
	}
	return nil
}

func (c *explainCmd) Run(e *env) error {
	switch {
	case c.Proof:
		return c.writeProof(e)
	case c.Case != "":
		return c.writeCase(e)
	}
	x, err := explain.Find(c.DB, c.DB.Flag(e.Getenv("PELLUCID_DB")), c.ID)
	if unknown, ok := errors.AsType[*explain.UnknownError](err); ok {
		if c.JSON {
			if err := terminal.WriteJSON(e.Stdout, map[string]any{"asked": c.ID, "found": []string{}, "looked": unknown.Looked}); err != nil {
				return err
			}
			return exit.With(exit.Failed, nil)
		}
		fmt.Fprintln(e.Stderr, "Looked in:")
		for _, place := range unknown.Looked {
			fmt.Fprintf(e.Stderr, "  %s\n", place)
		}
		fmt.Fprintln(e.Stderr, "A gateway may use another database: --db names it. Decisions that are older than the journal keeps are gone.")
		return err
	}
	switch {
	case errors.Is(err, explain.ErrRef):
		return exit.With(exit.Usage, err)
	case err != nil:
		return err
	case c.JSON:
		return terminal.WriteJSON(e.Stdout, x)
	}
	return x.Write(e.Stdout, terminal.PaletteFor(e.Stdout, e.Getenv))
}
