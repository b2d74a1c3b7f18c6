// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/didweb"
	"github.com/pellucid-mcp/pellucid/grounding/factcheck"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/storage"
)

// groundCmd is the Veritas grounding adapter and what its operator needs.
type groundCmd struct {
	Serve   groundServeCmd   `cmd:"" help:"Answer queries over MCP, and take attestations."`
	Import  groundImportCmd  `cmd:"" help:"Check attestations and store them."`
	Query   groundQueryCmd   `cmd:"" help:"Ask the store, without a server."`
	Retract groundRetractCmd `cmd:"" help:"Withdraw a source or an attestation, and what depends on it."`
	Reverse groundReverseCmd `cmd:"" help:"Take a retraction back."`
	Export  groundExportCmd  `cmd:"" help:"Print what the store holds, as JSON lines."`
}

// groundDB says where the attestations are.
type groundDB struct {
	DB string `name:"db" env:"PELLUCID_DB" placeholder:"URL|PATH" help:"Store: a postgres:// URL, or the path of an SQLite file (default: $$${env}, or ground.db in the state directory)."`
}

// What a verb does where there is no store.
type missing uint8

const (
	isError  missing = iota
	makeIt           // an empty one is made
	showDemo         // the demonstration set is shown, unless a store was named
)

// A groundStore is an open store, which may be gone when it is closed.
type groundStore struct {
	ground.Store
	demo string // directory of a store that holds the demonstration set
}

func (s *groundStore) Close() error {
	err := s.Store.Close()
	if s.demo != "" {
		err = errors.Join(err, os.RemoveAll(s.demo))
	}
	return err
}

var errShowDemo = errors.New("ground: there is no store yet")

// open opens the store, or that of the demonstration.
func (c *groundDB) open(ctx context.Context, dir *state.Dir, m missing) (*groundStore, error) {
	where := c.DB
	if where == "" {
		where = filepath.Join(dir.Path(), "ground.db")
	}
	s, err := install.OpenStore(ctx, where, storage.Options{}, func() error {
		switch {
		case m == showDemo && c.DB == "":
			return errShowDemo
		case m == makeIt:
			return install.MakePrivate(where)
		}
		return errors.New("ground: there is no store yet: pellucid ground import makes one")
	})
	switch {
	case errors.Is(err, errShowDemo):
		return openDemo(ctx)
	case err != nil:
		return nil, err
	}
	return &groundStore{Store: s}, nil
}

// openDemo opens a store that nobody keeps; loadDemo fills it.
func openDemo(ctx context.Context) (*groundStore, error) {
	dir, err := os.MkdirTemp("", "pellucid-ground-")
	if err != nil {
		return nil, fmt.Errorf("ground: make a temporary store: %w", err)
	}
	s, err := storage.Open(ctx, filepath.Join(dir, "ground.db"), storage.Options{})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &groundStore{Store: s, demo: dir}, nil
}

// loadDemo fills the store with the demonstration set, if that is what it is for.
func (s *groundStore) loadDemo(ctx context.Context, a *ground.Adapter, stderr io.Writer) error {
	if s.demo == "" {
		return nil
	}
	receipts, err := a.Ingest(ctx, "", factcheck.Demonstration())
	if err != nil {
		return err
	}
	for _, r := range receipts {
		if !r.Accepted {
			return fmt.Errorf("ground: the demonstration set was refused: %s", r.Code)
		}
	}
	fmt.Fprintf(stderr, "There is no store yet: this is a demonstration set of %s. Nothing is kept;\n"+
		"`pellucid ground import` or --db makes a store.\n", terminal.Plural(len(receipts), "attestation"))
	return nil
}

// groundRules are how attestations are checked and made safe: the same for all that
// put them into one store.
type groundRules struct {
	Policy  string   `enum:"replace,reject,flag" default:"replace" help:"What is done with characters that are taken for ASCII ones: ${enum}."`
	Scope   string   `enum:"literal,mixed" default:"literal" help:"Which of them: every one (literal), or where a word pretends (mixed)."`
	Domains string   `placeholder:"FILE" help:"Registry of consensus domains; the built-in one if absent."`
	Verdict []string `placeholder:"NAME" help:"Verdict that is known beside the built-in ones; may be repeated."`
	DIDWeb  bool     `name:"did-web" help:"Fetch the keys of did:web identifiers, over https."`

	DangerouslyIngestUntyped bool `help:"Accept texts with markup, links or encoded data, for records of old; what they are in says sanitation_version none."`
	DangerouslyRFCSetOnly    bool `name:"dangerously-rfc-set-only" help:"Remove only the 156 hidden characters that the RFC names; every answer says sanitation_version none."`
}

// setup is what the flags say, as a file would say it.
func (r *groundRules) setup() *rules.Ground {
	return &rules.Ground{Policy: r.Policy, Scope: r.Scope, Domains: r.Domains, Verdicts: r.Verdict, DIDWeb: r.DIDWeb,
		DangerouslyIngestUntyped: r.DangerouslyIngestUntyped, DangerouslyRFCSetOnly: r.DangerouslyRFCSetOnly}
}

// flagOf is the flag of a member of the section ground that is not called alike.
var flagOf = map[string]string{"verdicts": "verdict", "profiles": "profile", "default_profile": "default-profile", "issuers": "issuer", "peers": "peer"}

// compiled compiles what flags say, and makes an adapter's options of it.
func compiled(g *rules.Ground, o rules.Options) (ground.Options, error) {
	var all []error
	for _, f := range g.Compile(o) {
		all = append(all, fmt.Errorf("ground: --%s: %w", cmp.Or(flagOf[f.Member], f.Member), f.Cause))
	}
	if all != nil {
		return ground.Options{}, exit.With(exit.Config, errors.Join(all...))
	}
	return groundOptions(g), nil
}

// groundOptions are those of what was compiled.
func groundOptions(g *rules.Ground) ground.Options {
	o := g.Options()
	if g.DIDWeb {
		o.Keys = didweb.New(didweb.Options{})
	}
	return o
}

// parseFile parses a file of the operator's.
func parseFile[T any](name string, parse func([]byte) (T, error)) (T, error) {
	b, err := terminal.ReadInput(name, strings.NewReader(""))
	if err != nil {
		var none T
		return none, err
	}
	return parse(b)
}

const refusalsName = "refusals.jsonl"

// refusals keeps what was not accepted, as lines of a journal.
type refusals struct {
	j    *state.Journal
	fail func(error) // told of what could not be written
}

func openRefusals(dir *state.Dir, fail func(error)) (*refusals, error) {
	j, err := dir.Journal(refusalsName, state.JournalOptions{})
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return &refusals{j, fail}, nil
}

func (r *refusals) record(x ground.Refused) {
	line, err := json.Marshal(struct {
		At        string `json:"at"`
		Submitter string `json:"submitter,omitempty"`
		Digest    string `json:"digest"`
		ground.Receipt
	}{x.At.UTC().Format("2006-01-02T15:04:05.000Z"), x.Submitter, x.Digest, x.Receipt})
	if err == nil {
		err = r.j.Append(line)
	}
	if err != nil {
		r.fail(err)
	}
}
