// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

type forgetCmd struct {
	storeDB
	Principal string `required:"" placeholder:"NAME" help:"The principal, as the token file or the issuer names it, or the reviewer, as --by named them."`
	Yes       bool   `short:"y" help:"Do not ask."`
	JSON      bool   `name:"json" help:"Print the result as JSON."`
}

func (forgetCmd) Help() string {
	return `Erases the person's held results, the name in decisions and pins, evidence files of the
guard, lines of refusals.jsonl, and what lets a reader match the signed records of the log
with the name: their openings. The records stay, so the log still verifies. Back-ups, exports
with openings, and the token file are yours to clean. docs/kept.md lists every stored field.
Exit codes: 0 done; 1 records wait for a key that is not here; 2 wrong usage, or not confirmed;
3 the state directory cannot be used; 4 the store cannot be reached, or is being read.`
}

// Validate is called by kong; its error is one of usage.
func (c *forgetCmd) Validate() error {
	if strings.TrimSpace(c.Principal) == "" {
		return errors.New("--principal: the name is empty")
	}
	return nil
}

// A forgetReport is what --json prints: how many of each were erased.
type forgetReport struct {
	Held          int `json:"held_results"`
	Names         int `json:"names_of_a_reviewer"`
	Runs          int `json:"waiting_runs"`
	Openings      int `json:"openings"`
	GuardEvidence int `json:"guard_evidence"`
	Refusals      int `json:"refusals"`
}

func (c *forgetCmd) Run(e *env) error {
	ctx, stop := exit.UntilSignal()
	defer stop()
	dir, err := install.Open()
	if err != nil {
		return err
	}
	stores, err := c.DB.Stores()
	if err != nil {
		return err
	}
	if err := c.confirm(e); err != nil {
		return err
	}
	var sum forgetReport
	for _, where := range stores {
		if err := c.inStore(ctx, dir, where, &sum); err != nil {
			return err
		}
	}
	if err := c.inFiles(ctx, dir, &sum); err != nil {
		return err
	}
	if c.JSON {
		return terminal.WriteJSON(e.Stdout, sum)
	}
	_, err = fmt.Fprintf(e.Stdout, "Erased: %s, %s of a reviewer, %s, %s of signed records, %s of the guard, %s of refused attestations.\n",
		terminal.Plural(sum.Held, "held result"), terminal.Plural(sum.Names, "name"), terminal.Plural(sum.Runs, "waiting run"), terminal.Plural(sum.Openings, "opening"),
		terminal.Plural(sum.GuardEvidence, "evidence file"), terminal.Plural(sum.Refusals, "line"))
	return err
}

func (c *forgetCmd) confirm(e *env) error {
	if c.Yes {
		return nil
	}
	unasked := exit.With(exit.Usage, errors.New("forget: this cannot be taken back, and there is no terminal to ask: say --yes"))
	if !canAsk(e) {
		return unasked
	}
	switch yes, err := terminal.Agrees(bufio.NewReader(e.Stdin), e.Stderr, "Erase what is kept of "+terminal.ShellWord(c.Principal)+"? This cannot be taken back."); {
	case err != nil:
		return unasked
	case !yes:
		return exit.With(exit.Usage, errors.New("forget: nothing was erased"))
	}
	return nil
}

// inStore erases what one database keeps, and records how much that was.
func (c *forgetCmd) inStore(ctx context.Context, dir *state.Dir, where string, sum *forgetReport) error {
	key, err := install.ChainKey(dir) // what is recorded here is chained as the gateway's own records are
	if err != nil {
		return err
	}
	s, err := install.OpenStore(ctx, where, storage.Options{Cache: install.StateCache, Chain: key}, func() error {
		return exit.With(exit.Unreachable, fmt.Errorf("forget: there is no database at %s: nothing was erased", finding.Quote(where)))
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := integrated(ctx, s.Ledger(), dir); err != nil {
		return err
	}
	kept, err := install.RecordsOf(ctx, s, dir)
	if err != nil {
		return install.OpenError(err)
	}
	defer kept.Close()
	f, err := s.Forget(ctx, c.Principal)
	if err != nil {
		return install.OpenError(err)
	}
	names, err := surface.NewPins(s, nil).Unname(ctx, c.Principal)
	if err != nil {
		return install.OpenError(err)
	}
	f.Names += names
	if kept != nil && f != (storage.Forgotten{}) {
		// The record has no digest of the name: it would be the one that remains.
		if err := kept.Require(forgotten(f)); err != nil {
			return install.OpenError(err)
		}
	}
	sum.Held, sum.Names, sum.Runs, sum.Openings = sum.Held+f.Held, sum.Names+f.Names, sum.Runs+f.Runs, sum.Openings+f.Openings
	if err := s.Compact(ctx); err != nil {
		return install.OpenError(fmt.Errorf("forget: the rows are erased, but not yet the free pages of the file: run this again when no other process uses the store: %w", err))
	}
	return nil
}

func forgotten(f storage.Forgotten) *ledger.Event {
	return &ledger.Event{Time: time.Now(), Kind: ledger.PrincipalForgotten, Actor: "person", Numbers: []ledger.Number{
		{Name: "held", N: int64(f.Held)}, {Name: "names", N: int64(f.Names)}, {Name: "openings", N: int64(f.Openings)}, {Name: "runs", N: int64(f.Runs)}}}
}

// integrated waits until no record waits for its signature: a record that waits has its
// opening with it.
func integrated(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
	seq := sequence.New(sequence.Options{Store: l, Keys: &sequence.Keyring{Dir: dir}})
	for end := time.Now().Add(install.IntegrateWait); ; time.Sleep(100 * time.Millisecond) {
		err := seq.Flush(ctx)
		switch {
		case errors.Is(err, sequence.ErrNoLog):
			return nil
		case err != nil && !errors.Is(err, sequence.ErrNoKey) && !errors.Is(err, sequence.ErrLost):
			return install.OpenError(err)
		}
		switch n, err := l.Waiting(ctx, 1); {
		case err != nil:
			return install.OpenError(err)
		case n == 0:
			return nil
		case time.Now().After(end):
			return errors.New("forget: records wait for their signature: run this where the key of the ledger is, or while the gateway that has it runs")
		}
	}
}

// inFiles erases what stands in files of the state directory.
func (c *forgetCmd) inFiles(ctx context.Context, dir *state.Dir, sum *forgetReport) error {
	files, err := install.PinFiles()
	if err != nil {
		return err
	}
	names, err := surface.NewPins(files, nil).Unname(ctx, c.Principal)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	sum.Names += names
	if sum.GuardEvidence, err = c.guardEvidence(dir); err != nil {
		return exit.With(exit.Config, err)
	}
	sum.Refusals, err = dir.BlankRecords(ingest.RefusalsName, func(line []byte) bool {
		var of struct{ Submitter string }
		return json.Unmarshal(line, &of) == nil && of.Submitter == c.Principal
	})
	if err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

// maxEvidence bounds an evidence file of the guard that is read to find its principal.
const maxEvidence = 64 << 20

// guardEvidence removes the statements that the guard has kept of the principal. The ledger
// keeps their digests.
func (c *forgetCmd) guardEvidence(dir *state.Dir) (removed int, err error) {
	sub, err := dir.Sub("guard")
	if err != nil {
		return 0, err
	}
	names, err := sub.Names()
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		b, err := sub.Read(name, maxEvidence)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return removed, err
		}
		var of struct{ Principal string }
		if json.Unmarshal(b, &of) != nil || of.Principal != c.Principal {
			continue
		}
		if err := sub.Remove(name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
