// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type ledgerProveCmd struct {
	ledgerDB
	ID string `arg:"" help:"Record: the evidence id that a placeholder or _meta names."`
}

func (ledgerProveCmd) Help() string {
	return `The proof is a text, C2SP tlog-proof, that holds the record, its place and a checkpoint:
with the log's public key (pellucid ledger checkpoint --keys) it is all that anybody
needs to check it, offline: pellucid ledger verify --proof FILE --key KEY.`
}

func (c *ledgerProveCmd) Run(e *env) error {
	id, err := recordID(c.ID)
	if err != nil {
		return err
	}
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		one, err := record(ctx, l, dir, id)
		if err != nil {
			return err
		}
		p, err := ledger.Prove(ctx, l, one.Index)
		if err != nil {
			return err
		}
		_, err = e.Stdout.Write(p.Octets())
		return err
	})
}

type ledgerExportCmd struct {
	ledgerDB
	Openings bool   `help:"Write the plain digests and salts of the records too. They are not for the public."`
	Dir      string `arg:"" completion:"files" help:"Directory, which must not exist or be empty."`
}

func (ledgerExportCmd) Help() string {
	return `The files are those of C2SP tlog-tiles: a web server that serves them serves the log.
pellucid ledger verify DIR checks them, and so can anybody else's verifier.`
}

func (c *ledgerExportCmd) Run(e *env) error {
	return c.DB.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		if list, err := os.ReadDir(c.Dir); err == nil && len(list) > 0 {
			return exit.With(exit.Usage, errors.New("ledger: export: the directory is not empty"))
		}
		var op ledger.Opener
		if c.Openings {
			op = l
		}
		mode := os.FileMode(0o644)
		if c.Openings {
			mode = 0o600
		}
		files := 0
		if err := os.MkdirAll(c.Dir, 0o755); err != nil {
			return fmt.Errorf("ledger: export: make %s: %w", finding.Quote(c.Dir), terminal.WithoutPath(err))
		}
		err := ledger.Export(ctx, l, op, func(path string, data []byte) error {
			files++
			name := filepath.Join(c.Dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			return os.WriteFile(name, data, mode)
		})
		if errors.Is(err, ledger.ErrNotFound) {
			return install.ErrNoLog
		} else if err != nil {
			return err
		}
		_, err = fmt.Fprintf(e.Stderr, "%s.\n", terminal.Plural(files, "file"))
		return err
	})
}

type ledgerVerifyCmd struct {
	ledgerDB
	Key      []string `sep:"none" placeholder:"VKEY" help:"Public key of the log that you trust, as ledger checkpoint --keys prints it. One is enough: the records name the later ones."`
	Witness  []string `sep:"none" placeholder:"VKEY" help:"Public key of a witness that must have cosigned the checkpoint."`
	Quorum   int      `help:"How many of the witnesses must have; 0 stands for all."`
	Older    []string `completion:"files" placeholder:"FILE" help:"A checkpoint that you kept: the log must have grown from it."`
	Restored bool     `help:"The database was restored from a backup: forget the checkpoint that was remembered, and remember the present one."`
	Proof    string   `completion:"files" placeholder:"FILE" help:"Check this proof instead of a log."`
	JSON     bool     `name:"json" help:"Print the report as JSON."`
	waiting  int
	Dir      string `arg:"" optional:"" completion:"files" help:"Exported log; without it the log in the store is checked, and the store's own rows."`
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

// Validate is called by kong; its error is one of usage.
func (c *ledgerVerifyCmd) Validate() error {
	switch {
	case len(c.Key) == 0 && (c.Dir != "" || c.Proof != ""):
		return errors.New("--key: say which key you trust: pellucid ledger checkpoint --keys prints the keys of the log")
	case c.Dir != "" && c.Proof != "":
		return errors.New("a directory or --proof, not both")
	}
	return nil
}

// A verifyReport is what --json prints.
type verifyReport struct {
	OK         bool            `json:"ok"`
	Origin     string          `json:"origin,omitempty"`
	Size       int64           `json:"size"`
	Records    int64           `json:"records"`
	Openings   int64           `json:"openings"`
	Problems   []verifyProblem `json:"problems"`
	More       int64           `json:"more"`
	NotChecked []string        `json:"not_checked"`
	Waiting    int             `json:"waiting"` // acknowledged, and not signed yet
	Erased     int64           `json:"erased"`  // openings that were erased
}

type verifyProblem struct {
	Place string `json:"place"`
	Fault string `json:"fault"`
}

func (c *ledgerVerifyCmd) Run(e *env) error {
	o, err := c.options()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	ctx, stop := exit.UntilSignal()
	defer stop()
	var r *ledger.Report
	switch {
	case c.Proof != "":
		return c.proof(e, o)
	case c.Dir != "":
		export, failed := terminal.OpenDir(c.Dir)
		if failed != nil {
			return fmt.Errorf("ledger: %w", failed)
		}
		r, err = ledger.VerifyExport(ctx, export, o)
	default:
		r, err = c.stored(e, o)
	}
	if err != nil {
		return err
	}
	if err := c.tell(e, r); err != nil {
		return err
	}
	if !r.OK() {
		return exit.With(exit.Failed, nil)
	}
	return nil
}

func (c *ledgerVerifyCmd) options() (o ledger.VerifyOptions, err error) {
	o.Quorum = c.Quorum
	for _, s := range c.Key {
		k, err := ledger.ParseKey(s)
		if err != nil {
			return o, err
		}
		o.Keys = append(o.Keys, k)
	}
	for _, s := range c.Witness {
		w, err := ledger.ParseWitness(s)
		if err != nil {
			return o, err
		}
		o.Witnesses = append(o.Witnesses, w)
	}
	for _, name := range c.Older {
		b, err := readSmall(name)
		if err != nil {
			return o, exit.With(exit.Failed, err)
		}
		o.Older = append(o.Older, b)
	}
	return o, nil
}

// readSmall reads a checkpoint or a proof.
func readSmall(name string) ([]byte, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err == nil && len(b) > 1<<20 {
		err = fmt.Errorf("read %s: longer than 1 MiB", finding.Quote(name))
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return b, nil
}

func (c *ledgerVerifyCmd) proof(e *env, o ledger.VerifyOptions) error {
	b, err := readSmall(c.Proof)
	if err != nil {
		return err
	}
	p, err := ledger.ParseProof(b)
	if err != nil {
		return err
	}
	got, err := p.Verify(o.Keys, o.Witnesses, o.Quorum)
	if err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, recordRow{Index: got.Index, Statement: got.Statement.Octets})
	}
	if !got.Signed {
		fmt.Fprintln(e.Stderr, "The record's own signature is by a key that was not given: the checkpoint vouches for it.")
	}
	_, err = fmt.Fprintf(e.Stdout, "Record %d of the %d of %s holds: %s %s\n", got.Index, got.Checkpoint.Size, got.Checkpoint.Origin, got.Statement.Kind, got.Statement.ID)
	return err
}

// rowFault is a row that does not say what the record says.
const rowFault ledger.Fault = "the row in the store differs from the record"

// stored checks the log in the store, and the columns beside the records.
func (c *ledgerVerifyCmd) stored(e *env, o ledger.VerifyOptions) (r *ledger.Report, err error) {
	err = c.DB.WithLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		audit, err := l.Audit(ctx, l.Chain())
		if err != nil {
			return err
		}
		if len(o.Keys) == 0 {
			first, err := firstKey(ctx, l)
			if errors.Is(err, install.ErrNoLog) && !audit.Empty() || errors.Is(err, errFirst) {
				r = &ledger.Report{Problems: []ledger.Problem{{Place: "the first record", Index: 0, Fault: ledger.FaultFirst}}}
				return audit.Rest(ctx, r)
			} else if err != nil {
				return err
			}
			o.Keys = []*ledger.Key{first}
			fmt.Fprintln(e.Stderr, "No --key: the log is held against the key that its own first record names.")
		}
		rows := rowReader{ctx: ctx, l: l}
		o.Each = func(index int64, _ []byte, s *ledger.Statement) ledger.Fault {
			row, ok := rows.at(index)
			if !ok || row.ID != s.ID || row.Kind != s.Kind || row.Server != s.Server || !row.Time.Equal(s.Time) {
				return rowFault
			}
			audit.Record(index, s)
			return ""
		}
		if r, err = c.remembering(ctx, l, dir, o); err != nil {
			return err
		}
		err = errors.Join(rows.err, audit.Rest(ctx, r))
		c.waiting = audit.Waiting
		return err
	})
	return r, err
}

// errFirst: the log has a first record that names no key.
var errFirst = errors.New("ledger: the first record of the log does not name its key")

// firstKey is the key that the first record of the log names.
func firstKey(ctx context.Context, l *storage.Ledger) (*ledger.Key, error) {
	list, err := l.Entries(ctx, 0, 1)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, install.ErrNoLog
	} else if err != nil {
		return nil, err
	}
	st, err := ledger.UnverifiedStatement(list[0])
	if err != nil {
		return nil, errFirst
	}
	k, err := ledger.ParseKey(st.Key)
	if err != nil {
		return nil, errFirst
	}
	return k, nil
}

// remembering verifies the log against the checkpoint that was remembered of it, too, and
// remembers the present one if all holds.
func (c *ledgerVerifyCmd) remembering(ctx context.Context, l *storage.Ledger, dir *state.Dir, o ledger.VerifyOptions) (*ledger.Report, error) {
	known, err := seenOf(dir, o.Keys[0].Name())
	if err != nil {
		return nil, err
	}
	if known.was != nil && !c.Restored {
		o.Older = append(o.Older[:len(o.Older):len(o.Older)], known.was)
	}
	src := &keepingLog{Ledger: l}
	r, err := ledger.Verify(ctx, src, o)
	if err != nil {
		return nil, err
	}
	last := "older checkpoint " + strconv.Itoa(len(o.Older)-1)
	for i := range r.Problems {
		if p := &r.Problems[i]; len(o.Older) > len(c.Older) && p.Place == last {
			p.Place = "the checkpoint"
			if f := seenFaults[p.Fault]; f != "" {
				p.Fault = f
			}
		}
	}
	switch {
	case known.was == nil && known.others(dir):
		r.NotChecked = append(r.NotChecked, "whether this is the log that it was: other logs were verified with this state directory, this one was not")
	case known.was == nil:
		r.NotChecked = append(r.NotChecked, "whether records were removed before now: no earlier checkpoint is remembered")
	}
	if r.OK() {
		err = known.keep(src.checkpoint, r.Checkpoint.Size)
	}
	return r, err
}

// A rowReader reads rows in order, many at once.
type rowReader struct {
	ctx  context.Context
	l    *storage.Ledger
	rows []sequence.Entry
	err  error
}

func (r *rowReader) at(index int64) (sequence.Entry, bool) {
	if len(r.rows) == 0 || index < r.rows[0].Index || index > r.rows[len(r.rows)-1].Index {
		if r.rows, r.err = r.l.Rows(r.ctx, index, 4096); r.err != nil {
			return sequence.Entry{}, false
		}
	}
	for len(r.rows) > 0 && r.rows[0].Index < index {
		r.rows = r.rows[1:]
	}
	if len(r.rows) == 0 || r.rows[0].Index != index {
		return sequence.Entry{}, false
	}
	return r.rows[0], true
}

func (c *ledgerVerifyCmd) tell(e *env, r *ledger.Report) error {
	out := verifyReport{OK: r.OK(), Records: r.Records, Openings: r.Openings, Problems: []verifyProblem{}, More: r.More, NotChecked: append([]string{}, r.NotChecked...), Waiting: c.waiting, Erased: r.Erased}
	if r.Checkpoint != nil {
		out.Origin, out.Size = r.Checkpoint.Origin, r.Checkpoint.Size
	}
	for _, p := range r.Problems {
		out.Problems = append(out.Problems, verifyProblem{p.Place, string(p.Fault)})
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, out)
	}
	var b bytes.Buffer
	for _, p := range r.Problems {
		fmt.Fprintln(&b, terminal.Printable(p.String()))
	}
	if r.More > 0 {
		fmt.Fprintf(&b, "and %d more\n", r.More)
	}
	if r.OK() {
		fmt.Fprintf(&b, "%s of %s hold, with %s.\n", terminal.Plural(int(r.Records), "record"), finding.Quote(out.Origin), terminal.Plural(int(r.Openings), "opening"))
	} else {
		fmt.Fprintln(&b, "The log does not hold.")
	}
	if c.waiting > 0 {
		fmt.Fprintf(&b, "%s not signed yet.\n", terminal.Plural(c.waiting, "acknowledged record"))
	}
	if r.Erased > 0 {
		fmt.Fprintf(&b, "%s erased.\n", terminal.Plural(int(r.Erased), "opening"))
	}
	if len(r.NotChecked) > 0 {
		fmt.Fprintf(&b, "Not checked: %s.\n", strings.Join(r.NotChecked, "; "))
	}
	_, err := e.Stdout.Write(b.Bytes())
	return err
}
