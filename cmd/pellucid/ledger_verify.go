// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/commandline"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

type ledgerExportCmd struct {
	ledgerDB
	Openings bool   `help:"Also write the plain digests and salts of the records. Do not publish them."`
	Follow   bool   `help:"Write the records as JSON lines, as ledger show --json prints them, and go on as the log grows, until Ctrl-C."`
	To       string `arg:"" optional:"" help:"Directory to write into; it must be empty or not exist. With --follow: file to append to (default: standard output)."`
}

func (ledgerExportCmd) Help() string {
	return `The files are those of C2SP tlog-tiles: a web server that serves them serves the log.
pellucid ledger verify DIRECTORY checks them, and so can any other verifier.
With --follow the first start begins with the first record. The state directory keeps the index of the next one, so
that a restart goes on where the last process ended; the last line of a file counts as well. No record is left
out; after a crash standard output may get up to 256 records twice. A file may be moved away at any
time: a new one is made. Use a file where a reader of standard output could end before it has read everything.`
}

func (c *ledgerExportCmd) Validate() error {
	switch {
	case !c.Follow && c.To == "":
		return errors.New("want a directory, or --follow")
	case c.Follow && c.Openings:
		return errors.New("--follow writes no openings: leave --openings out")
	}
	return nil
}

func (c *ledgerExportCmd) Run(e *env) error {
	if c.Follow {
		f := &audit.Follow{File: c.To, Stdout: e.Stdout, Log: (&commandline.LogFlags{}).Logger(e.Stderr)}
		return c.DB.WithLog(f.Run)
	}
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		files, err := audit.Export(ctx, l, c.To, c.Openings)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Stderr, "%s.\n", terminal.Plural(files, "file"))
		return err
	})
}

type ledgerVerifyCmd struct {
	ledgerDB
	Key      []string `sep:"none" placeholder:"VKEY" help:"Public key of the log that you trust, as ledger checkpoint --keys prints it. One is enough: the records contain the later ones."`
	Witness  []string `sep:"none" placeholder:"VKEY" help:"Public key of a witness that must have cosigned the checkpoint."`
	Quorum   int      `help:"Number of the witnesses that must have cosigned; 0 means all."`
	Older    []string `placeholder:"FILE" help:"File of a checkpoint that you kept. The log must contain it."`
	Restored bool     `help:"Accept that the database was restored from a back-up: replace the remembered checkpoint with the present one."`
	Record   string   `placeholder:"FILE" help:"Also check this evidence of ccr analyze: that its verdict follows from its answers, and that a record of the ledger in the store has its digest."`
	Proof    string   `placeholder:"FILE" help:"Check this proof instead of a log."`
	JSON     bool     `name:"json" help:"Print the report as JSON."`
	Dir      string   `arg:"" optional:"" help:"Directory of an exported log (default: check the log in the store, and the rows of the store)."`
}

func (ledgerVerifyCmd) Help() string {
	return `Every record, tile, signature and checkpoint is checked, and what is wrong is named. For
an export or a proof nothing else is needed: no network, no store, no clock. The log in
the store is checked with --key, or by the key of its own first record, which does not
show that it is the log that it was. What was acknowledged and waits for its signature, the
head and the queue of held results are checked as well. The checkpoint of a log that holds is
remembered in the state directory: the next time the log must have grown from it. Exit codes: 0 all holds; 1 something does not, or a
file cannot be read; 2 wrong usage; 4 the store cannot be reached.`
}

func (c *ledgerVerifyCmd) Validate() error {
	switch {
	case strings.HasSuffix(c.Dir, ".proof"):
		return errors.New("a file is checked with --proof FILE: this argument is the directory of an exported log")
	case len(c.Key) == 0 && (c.Dir != "" || c.Proof != ""):
		return errors.New("--key: say which key you trust: pellucid ledger checkpoint --keys prints the keys of the log")
	case c.Dir != "" && c.Proof != "":
		return errors.New("a directory or --proof, not both")
	}
	return nil
}

// record checks the evidence of --record.
func (c *ledgerVerifyCmd) record(e *env) error {
	out, _, err := replay(e, c.Record)
	if err != nil {
		return err
	}
	if !out.Holds {
		return fmt.Errorf("ccr: %s: %s", terminal.InputName(c.Record), out.Problem)
	}
	fmt.Fprintf(e.Stderr, "%s: the verdict follows\n", out.Record)
	if c.Dir == "" && c.Proof == "" {
		file, err := terminal.ReadInput(c.Record, e.Stdin)
		if err != nil {
			return err
		}
		id, err := c.DB.CounterfactualOf(file)
		if err != nil {
			return fmt.Errorf("ccr: %s: %w", terminal.InputName(c.Record), err)
		}
		fmt.Fprintf(e.Stderr, "record %s of the ledger has its digest\n", id)
	}
	return nil
}

func (c *ledgerVerifyCmd) Run(e *env) error {
	if c.Record != "" {
		if err := c.record(e); err != nil {
			return err
		}
	}
	o, err := audit.ParseOptions(c.Key, c.Witness, c.Quorum, c.Older)
	if err != nil {
		return err
	}
	var r *ledger.Report
	waiting := 0
	switch {
	case c.Proof != "":
		return c.proof(e, o)
	case c.Dir != "":
		r, err = audit.VerifyExport(c.Dir, o)
	default:
		o := audit.Options{VerifyOptions: o, Restored: c.Restored, OwnKey: func() {
			fmt.Fprintln(e.Stderr, "No --key: the log is held against the key that its own first record names.")
		}}
		err = c.DB.WithLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) (err error) {
			r, waiting, err = audit.Verify(ctx, l, dir, o)
			return err
		})
	}
	if err != nil {
		return err
	}
	out := audit.NewReport(r, waiting)
	if c.JSON {
		err = terminal.WriteJSON(e.Stdout, out)
	} else {
		err = out.Write(e.Stdout)
	}
	if err == nil && !out.OK {
		return exit.With(exit.Failed, nil)
	}
	return err
}

func (c *ledgerVerifyCmd) proof(e *env, o ledger.VerifyOptions) error {
	got, err := audit.VerifyProof(c.Proof, o)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, audit.Row{Index: got.Index, Statement: got.Statement.Bytes})
	}
	if !got.Signed {
		fmt.Fprintln(e.Stderr, "The record's own signature is by a key that was not given: the checkpoint vouches for it.")
	}
	_, err = fmt.Fprintf(e.Stdout, "Record %d of the %d of %s holds: %s %s\n", got.Index, got.Checkpoint.Size, got.Checkpoint.Origin, got.Statement.Kind, got.Statement.ID)
	return err
}
