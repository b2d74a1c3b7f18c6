// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// ledgerCmd is what a person asks of the record of decisions.
type ledgerCmd struct {
	Show       ledgerShowCmd       `cmd:"" help:"List records, or show one."`
	Prove      ledgerProveCmd      `cmd:"" help:"Write the proof that a record stands in the log."`
	Verify     ledgerVerifyCmd     `cmd:"" help:"Check the log, an exported one or a proof."`
	Checkpoint ledgerCheckpointCmd `cmd:"" help:"Print the latest checkpoint, or the public keys."`
	Export     ledgerExportCmd     `cmd:"" help:"Write the log as static files."`
	Rotate     ledgerRotateCmd     `cmd:"" help:"Have another key sign from now on."`
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

// logKeys are the public keys that the records of the log name, the first first.
func logKeys(ctx context.Context, l *storage.Ledger) (keys []*ledger.Key, err error) {
	for before := int64(0); ; {
		list, err := l.List(ctx, sequence.Filter{Kind: ledger.KeyInstalled, Before: before, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			st, err := ledger.UnverifiedStatement(e.Envelope)
			if err != nil {
				return nil, err
			}
			k, err := ledger.ParseKey(st.Key)
			if err != nil {
				return nil, err
			}
			keys = append([]*ledger.Key{k}, keys...)
			before = e.Index
		}
		if len(list) == 0 || before == 0 {
			break
		}
	}
	if len(keys) == 0 {
		return nil, install.ErrNoLog
	}
	return keys, nil
}

// recordID is the argument that names a record.
func recordID(s string) (ledger.ID, error) {
	id, err := ledger.ParseID(s)
	if err != nil {
		return id, exit.With(exit.Usage, errors.New("a record is named by 32 hexadecimal digits, in lower case: the evidence id"))
	}
	return id, nil
}

// record is the record of that id. One that was stored this moment is yet to be
// integrated, by whoever has the key.
func record(ctx context.Context, l *storage.Ledger, dir *state.Dir, id ledger.ID) (e sequence.Entry, err error) {
	if e, err = l.Get(ctx, id); !errors.Is(err, ledger.ErrNotFound) {
		return e, err
	}
	seq := install.Carrier(l, &sequence.Keyring{Dir: dir})
	for end := time.Now().Add(integrateWait); ; time.Sleep(100 * time.Millisecond) {
		if err := seq.Flush(ctx); err != nil && !errors.Is(err, sequence.ErrNoKey) && !errors.Is(err, sequence.ErrNoLog) {
			return e, err
		}
		if e, err = l.Get(ctx, id); !errors.Is(err, ledger.ErrNotFound) {
			return e, err
		}
		n, err := l.Waiting(ctx, 1)
		switch {
		case err != nil:
			return e, err
		case n == 0:
			return e, errNoRecord
		case time.Now().After(end):
			return e, errors.New("ledger: no record of the log has this id yet: some wait until whoever has its key carries it on")
		}
	}
}

// integrateWait is how long somebody else who holds the lease is waited for: longer than
// it takes to find that he is dead.
const integrateWait = 5 * time.Second

type ledgerShowCmd struct {
	ledgerDB
	Since    string `placeholder:"TIME" help:"Only records of this time or later: RFC 3339, or how long ago, as in 90m."`
	Until    string `placeholder:"TIME" help:"Only records of before this time."`
	Server   string `placeholder:"NAME" help:"Only of this server."`
	Kind     string `placeholder:"KIND" help:"Only of this kind, as in docs/spec/evidence.md."`
	Limit    int    `default:"100" help:"Greatest number of records that are listed, up to 1,000."`
	Before   int64  `placeholder:"INDEX" help:"Only records in front of this one."`
	Openings bool   `help:"With --json, the plain digests and the salt of each record as well. They are not for the public."`
	JSON     bool   `name:"json" help:"Print one JSON object for each record, as JSON lines."`
	ID       string `arg:"" optional:"" help:"Only this record: an evidence id."`
}

func (ledgerShowCmd) Help() string {
	return `With an ID, as a placeholder names it, the decision is also looked for in the journal
of the state directory (decisions.jsonl and its older files), where wrap keeps it without a
ledger, and in the queue. Places inside a result stand in no record: quarantine show has them
for a result that is held. The newest record comes first. A record says what was decided about what, by digests
and codes; no word of a third party stands in it. Times are those of the machine that
recorded, and order nothing: the index does.`
}

// A recordRow is what --json prints.
type recordRow struct {
	Index     int64          `json:"index"`
	Statement jsontext.Value `json:"statement"`
	Opening   jsontext.Value `json:"opening,omitzero"`
}

func (c *ledgerShowCmd) Run(e *env) error {
	f := sequence.Filter{Server: c.Server, Kind: ledger.Kind(c.Kind), Before: c.Before, Limit: c.Limit}
	var err error
	if f.Since, err = moment("--since", c.Since); err == nil {
		f.Until, err = moment("--until", c.Until)
	}
	if err == nil && c.Kind != "" && !f.Kind.Known() {
		err = errors.New("ledger: --kind: there is no such kind: docs/spec/evidence.md has them")
	}
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	err = c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		list, err := c.list(ctx, l, dir, f)
		if err != nil {
			return err
		}
		w := bufio.NewWriter(e.Stdout)
		show := c.table
		if c.JSON {
			show = c.lines
		}
		if err := show(w, list); err != nil {
			return err
		}
		if len(list) == 0 {
			fmt.Fprintln(e.Stderr, "Nothing to list.")
		}
		return w.Flush()
	})
	if c.ID != "" && (errors.Is(err, install.ErrNoLog) || errors.Is(err, errNoRecord)) {
		return c.elsewhere(e, err)
	}
	return err
}

func (c *ledgerShowCmd) list(ctx context.Context, l *storage.Ledger, dir *state.Dir, f sequence.Filter) ([]sequence.Entry, error) {
	if c.ID == "" {
		return l.List(ctx, f)
	}
	id, err := recordID(c.ID)
	if err != nil {
		return nil, err
	}
	one, err := record(ctx, l, dir, id)
	return []sequence.Entry{one}, err
}

func (c *ledgerShowCmd) lines(w *bufio.Writer, list []sequence.Entry) error {
	for i := range list {
		st, err := ledger.UnverifiedStatement(list[i].Envelope)
		if err != nil {
			return fmt.Errorf("record %d: %w", list[i].Index, err)
		}
		row := recordRow{Index: list[i].Index, Statement: st.Octets}
		if _, err := ledger.ParseOpening(list[i].Opening); c.Openings && err == nil {
			row.Opening = list[i].Opening
		}
		if err := terminal.WriteJSON(w, row); err != nil {
			return err
		}
	}
	return nil
}

func (c *ledgerShowCmd) table(out *bufio.Writer, list []sequence.Entry) error {
	if len(list) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "INDEX\tTIME\tKIND\tOF\tVERDICT\tID")
	for i := range list {
		st, err := ledger.UnverifiedStatement(list[i].Envelope)
		if err != nil {
			return fmt.Errorf("record %d: %w", list[i].Index, err)
		}
		of := st.Server
		if st.Tool != "" {
			of += "/" + st.Tool
		}
		verdict := strings.Trim(st.Verdict+" "+st.Reason, " ")
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", list[i].Index, st.Time.UTC().Format(time.RFC3339), st.Kind, of, verdict, st.ID)
		if c.ID != "" {
			if err := w.Flush(); err != nil {
				return err
			}
			detail(out, st)
		}
	}
	return w.Flush()
}

// moment reads a time, or how long ago it is.
func moment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, fmt.Errorf("%s: want a time as RFC 3339 writes it, or how long ago it is, as in 90m", flag)
	}
	return t, nil
}

type ledgerCheckpointCmd struct {
	ledgerDB
	Keys bool `help:"Print the verifier keys of the log instead, the first first: hand them to whoever is to verify."`
	JSON bool `name:"json" help:"Print both as JSON."`
}

func (ledgerCheckpointCmd) Help() string {
	return `A checkpoint is a C2SP signed note: the log's name, its size, its root and a signature.
Whoever keeps one can show later that records were taken away or changed since.`
}

// A checkpointReport is what --json prints.
type checkpointReport struct {
	Checkpoint string   `json:"checkpoint"`
	Size       int64    `json:"size"`
	Keys       []string `json:"keys"`
	Pending    int      `json:"pending"` // up to 1,000
}

func (c *ledgerCheckpointCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		head, err := l.Head(ctx)
		if err != nil {
			return err
		}
		keys, err := logKeys(ctx, l)
		if err != nil {
			return err
		}
		// What is printed goes to others: not without the signature of a key of the log.
		if _, err := ledger.OpenCheckpoint(head.Checkpoint, keys, nil); err != nil {
			return err
		}
		r := checkpointReport{Checkpoint: string(head.Checkpoint), Size: head.Size}
		for _, k := range keys {
			r.Keys = append(r.Keys, k.String())
		}
		if r.Pending, err = l.Waiting(ctx, 1000); err != nil {
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
	Key  string `placeholder:"env:NAME|file:PATH" help:"The new key, PRIVATE+KEY+…, by reference (default: another one of the state directory)."`
	Old  string `placeholder:"env:NAME|file:PATH" help:"The present key, where it is not one of the state directory."`
	JSON bool   `name:"json" help:"Print the result as JSON."`
}

func (ledgerRotateCmd) Help() string {
	return `The log records the change, signed by the old key, so that whoever trusts the first key
can follow. A running gateway takes up the new key by itself where both are of the
state directory; otherwise put its reference into the configuration and start it anew.`
}

// A rotateReport is what --json prints.
type rotateReport struct {
	Index int64  `json:"index"`
	Key   string `json:"key"`
}

func (c *ledgerRotateCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		head, err := l.Head(ctx)
		if err != nil {
			return err
		}
		keys := &sequence.Keyring{Dir: dir}
		if keys.Given, err = signerOf(e, "--old", c.Old); err != nil {
			return err
		}
		next, err := signerOf(e, "--key", c.Key)
		if err != nil {
			return err
		}
		if next == nil {
			if next, err = keys.Next(head.Origin); err != nil {
				return err
			}
		}
		index, err := install.Carrier(l, keys).Rotate(ctx, next)
		if err != nil {
			return err
		}
		if c.JSON {
			return terminal.WriteJSON(e.Stdout, rotateReport{index, next.Key().String()})
		}
		_, err = fmt.Fprintf(e.Stdout, "Record %d says so: from the next one on this key signs.\n%s\n", index, next.Key())
		return err
	})
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
