// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ledgerCmd is what a person asks of the record of decisions.
type ledgerCmd struct {
	Show       ledgerShowCmd       `cmd:"" help:"List records, or show one."`
	Index      ledgerIndexCmd      `cmd:"" help:"Say how far the index of the log is, or make it anew."`
	Prove      ledgerProveCmd      `cmd:"" help:"Write the proof that the log contains a record."`
	Verify     ledgerVerifyCmd     `cmd:"" help:"Check the log, an exported log, or a proof."`
	Checkpoint ledgerCheckpointCmd `cmd:"" help:"Print the latest checkpoint, or the public keys."`
	Case       ledgerCaseCmd       `cmd:"" help:"Write all that is known and provable of one decision into one file."`
	Export     ledgerExportCmd     `cmd:"" help:"Write the log as static files, or follow it as JSON lines."`
	Rotate     ledgerRotateCmd     `cmd:"" help:"Replace the key that signs the log."`
	Witness    ledgerWitnessCmd    `cmd:"" help:"Have witnesses cosign the latest checkpoint."`
	Restore    ledgerRestoreCmd    `cmd:"" help:"Bring back records that the database has lost, from an export."`
	Resume     ledgerResumeCmd     `cmd:"" help:"Let a log go on that was stopped for a reason that does not hold."`
	Keygen     ledgerKeygenCmd     `cmd:"" help:"Make a private key for a log that replicas share."`
}

func (ledgerCmd) Help() string {
	return `Exit codes of each verb: 0 done; 1 failed, or there is no log or no such record; 2 wrong
usage; 3 the state directory cannot be used, or the schema is newer; 4 the store cannot
be reached.`
}

// ledgerDB says where the log is.
type ledgerDB struct {
	DB install.Database `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store of the log: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or pellucid.db in the state directory)."`
}

type ledgerShowCmd struct {
	ledgerDB
	Since     string   `placeholder:"TIME" help:"List only records of this time or later: RFC 3339, or an age such as 90m or 7d."`
	Until     string   `placeholder:"TIME" help:"List only records from before this time."`
	Server    string   `placeholder:"NAME" help:"List only records of this server; several names with commas between them."`
	Tool      string   `placeholder:"NAME" help:"List only records of this tool, or of several."`
	Kind      string   `placeholder:"KIND" help:"List only records of this kind (docs/spec/evidence.md), or of several."`
	Verdict   string   `placeholder:"VERDICT" help:"List only records with this verdict, or one of several: passed, changed, withheld, dropped."`
	Code      string   `placeholder:"CODE" help:"List only records in which this was found, such as hidden-tag."`
	Principal string   `placeholder:"NAME" help:"List only records of calls of this principal."`
	By        string   `placeholder:"NAME" help:"List only records of decisions of this reviewer."`
	Digest    string   `placeholder:"HEX" help:"List only records about the content with this SHA-256, received, delivered or held."`
	Of        string   `placeholder:"ID" help:"List only records about the record or held result with this id."`
	Limit     int      `default:"100" help:"Maximum number of records to list, up to 1,000."`
	Before    *int64   `placeholder:"INDEX" help:"List only what comes after the record of this index in the list: older records."`
	Openings  bool     `help:"With --json: also print the plain digests and the salt of each record. Do not publish them."`
	JSON      bool     `name:"json" help:"Print one JSON object for each record, as JSON lines."`
	Query     []string `arg:"" name:"id or filter" optional:"" help:"Evidence id of one record, or its index in the log; or a filter such as server:mail code:hidden-tag since:24h (default: list records)."`
}

func (ledgerShowCmd) Help() string {
	return `A filter has terms NAME:VALUE with spaces between them; the names are those of the flags, and the
console reads the same. With an ID, as a placeholder names it, the decision is also looked for in the journal
of the state directory (decisions.jsonl and its older files), where wrap keeps it without a
ledger, and in the queue. Without a ledger, a list is one of the journal. Places inside a result stand in no record: quarantine show has them
for a result that is held. The newest record comes first. A record says what was decided about what, by digests
and codes; no word of a third party stands in it. Times are those of the machine that
recorded, and prove nothing: the index of a record does. Lists come from the index of the log (pellucid ledger index),
which is brought up to date first.`
}

func (c *ledgerShowCmd) Run(e *env) error {
	if c.Limit < 1 || c.Limit > 1000 {
		return exit.With(exit.Usage, errors.New("--limit: want 1 to 1,000"))
	}
	q := audit.Query{Limit: c.Limit, Before: c.Before, JSON: c.JSON, Openings: c.Openings, Notice: e.Stderr}
	var err error
	if len(c.Query) == 1 && !strings.Contains(c.Query[0], ":") && len(c.Query[0]) != 64 {
		id, err := audit.Named(c.DB, c.Query[0])
		if err != nil {
			return err
		}
		q.ID = id.String()
	} else if q.Filter, err = audit.Parse(strings.Join(c.Query, " "), map[string]string{"since": c.Since, "until": c.Until, "server": c.Server, "tool": c.Tool,
		"kind": c.Kind, "verdict": c.Verdict, "code": c.Code, "principal": c.Principal, "by": c.By, "digest": c.Digest, "of": c.Of}); err != nil {
		return err
	}
	n, err := q.Show(c.DB, e.Stdout)
	if err == nil && n == 0 {
		fmt.Fprintln(e.Stderr, "Nothing to list.")
		if code := q.Filter.Code; code != "" && !code.Known() {
			fmt.Fprintf(e.Stderr, "This version of Pellucid has no code %s.\n", finding.Quote(string(code)))
		}
	}
	return err
}

type ledgerIndexCmd struct {
	ledgerDB
	Rebuild bool `help:"Empty the index and make it anew from the log."`
	JSON    bool `name:"json" help:"Print the result as JSON."`
}

func (ledgerIndexCmd) Help() string {
	return `The index finds and counts the records of the log, for ledger show and the console. It proves
nothing, and a running gateway keeps it up to date. --rebuild is for an index that was damaged, or whose key was retired
(pellucid keys); searches show fewer records until it is done. The log is not changed.`
}

func (c *ledgerIndexCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		st, err := audit.Index(ctx, l, c.Rebuild)
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, st)
		}
		return st.Write(e.Stdout)
	})
}

type ledgerCheckpointCmd struct {
	ledgerDB
	Keys bool `help:"Print the public keys of the log instead, oldest first: give them to the verifier."`
	JSON bool `name:"json" help:"Print the checkpoint and the keys as JSON."`
}

func (ledgerCheckpointCmd) Help() string {
	return `A checkpoint is a C2SP signed note: the log's name, its size, its root and a signature.
A checkpoint that is kept elsewhere can show later that records were removed or changed since.`
}

func (c *ledgerCheckpointCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		r, err := audit.Latest(ctx, l)
		if err != nil {
			return err
		}
		switch {
		case c.JSON:
			return terminal.WriteJSON(e.Stdout, r)
		case c.Keys:
			_, err = fmt.Fprintln(e.Stdout, strings.Join(r.Keys, "\n"))
			return err
		}
		_, err = fmt.Fprint(e.Stdout, terminal.Printable(r.Checkpoint)) // a witness's name is anything
		return err
	})
}

type ledgerRotateCmd struct {
	ledgerDB
	Key  string `placeholder:"env:NAME|file:PATH" help:"Reference to the new key, PRIVATE+KEY+… (default: a new key in the state directory)."`
	Old  string `placeholder:"env:NAME|file:PATH" help:"Reference to the present key, where it is not in the state directory."`
	JSON bool   `name:"json" help:"Print the result as JSON."`
}

func (ledgerRotateCmd) Help() string {
	return `The log records the change, signed by the old key, so that a reader who trusts the first key
can follow. A running gateway takes up the new key by itself where both are of the
state directory; otherwise put its reference into the configuration and start it anew.`
}

func (c *ledgerRotateCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		r, err := audit.Rotate(ctx, l, dir, func() (old, next *ledger.Signer, err error) {
			if old, err = signerOf(e, "--old", c.Old); err == nil {
				next, err = signerOf(e, "--key", c.Key)
			}
			return old, next, err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, r)
		}
		_, err = fmt.Fprintf(e.Stdout, "Record %d says so: from the next one on this key signs.\n%s\n", r.Index, r.Key)
		return err
	})
}

type ledgerKeygenCmd struct {
	Origin string `arg:"" help:"Name of the log, such as example.com/log; that of an existing log stands in the first line of ledger checkpoint."`
}

func (ledgerKeygenCmd) Help() string {
	return `The key is one line, PRIVATE+KEY+…, on standard output; its public key goes to standard error. Write
the line into a secret, and name it at every replica: evidence: {key: "file:/run/secrets/ledger"}.
A log that has begun with another key takes this one over with pellucid ledger rotate --key.`
}

func (c *ledgerKeygenCmd) Run(e *env) error {
	private, public, err := audit.NewKey(c.Origin)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	fmt.Fprintln(e.Stderr, public)
	_, err = fmt.Fprintln(e.Stdout, private)
	return err
}

// signerOf is the private key that a reference stands for, nil where there is none.
func signerOf(e *env, flag, ref string) (*ledger.Signer, error) {
	text, err := e.secrets().optional("ledger: "+flag, ref)
	if err != nil || text == "" {
		return nil, err
	}
	s, err := ledger.ParseSigner(strings.TrimSpace(text))
	if err != nil {
		return nil, exit.With(exit.Config, fmt.Errorf("ledger: %s: %w", flag, err))
	}
	return s, nil
}
