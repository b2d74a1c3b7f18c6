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
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// ledgerCmd is what a person asks of the record of decisions.
type ledgerCmd struct {
	Show       ledgerShowCmd       `cmd:"" help:"List records, or show one."`
	Verify     ledgerVerifyCmd     `cmd:"" help:"Check the log, an exported log, or a proof."`
	Checkpoint ledgerCheckpointCmd `cmd:"" help:"Print the latest checkpoint, or the public keys."`
	Export     ledgerExportCmd     `cmd:"" help:"Write the log as static files, or follow it as JSON lines."`
	Restore    ledgerRestoreCmd    `cmd:"" help:"Bring back records that the database has lost, from an export."`
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
	Index     bool     `help:"Say how far the index of the log is instead, by which records are found."`
	Rebuild   bool     `help:"Empty the index and make it anew from the log, where it was damaged, or its key was retired. Searches show fewer records until it is done."`
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
recorded, and prove nothing: the index of a record does. Lists come from the index of the log (--index),
which is brought up to date first.`
}

func (c *ledgerShowCmd) Run(e *env) error {
	if c.Index || c.Rebuild {
		return c.index(e)
	}
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

// index says how far the index of the log is, or makes it anew.
func (c *ledgerShowCmd) index(e *env) error {
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
	witnessFlags
}

func (ledgerCheckpointCmd) Help() string {
	return `A checkpoint is a C2SP signed note: the log's name, its size, its root and a signature.
A checkpoint that is kept elsewhere can show later that records were removed or changed since.
With --policy or --witness it has witnesses cosign the checkpoint first. Where the cosignatures are
enough it is also kept in the store: readers of /log/ and pellucid ledger export get it, as long as the log has not
grown. A running gateway does this by itself with evidence: {witnesses: …}. Exit code 1: too few have cosigned.`
}

func (c *ledgerCheckpointCmd) Run(e *env) error {
	if c.Policy != "" || len(c.Witness) > 0 {
		return c.cosign(e, c.DB)
	}
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
