// SPDX-License-Identifier: Apache-2.0

// Package forget erases what the stores and files of an installation keep of one person.
package forget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/login"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// refusalsName is the journal of the attestations that pellucid-ground has refused: ingest.RefusalsName.
const refusalsName = "refusals.jsonl"

// A Report says how many of each were erased.
type Report struct {
	Held          int `json:"held_results"`
	Names         int `json:"names_of_a_reviewer"`
	Captures      int `json:"captures"`
	Openings      int `json:"openings"`
	GuardEvidence int `json:"guard_evidence"`
	Refusals      int `json:"refusals"`
	Logins        int `json:"logins"`
	Sessions      int `json:"sessions"`
}

// Write prints the report for a person.
func (r *Report) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "Erased: %s, %s of a reviewer, %s, %s of signed records, %s of the guard, %s of refused attestations, %s, %s.\n",
		terminal.Plural(r.Held, "held result"), terminal.Plural(r.Names, "name"), terminal.Plural(r.Captures, "capture"), terminal.Plural(r.Openings, "opening"),
		terminal.Plural(r.GuardEvidence, "evidence file"), terminal.Plural(r.Refusals, "line"), terminal.Plural(r.Logins, "login"), terminal.Plural(r.Sessions, "session"))
	return err
}

// Principal erases what the stores and the state directory keep of a principal or a reviewer.
// The signed records stay without their openings, so the log still verifies.
func Principal(ctx context.Context, dir *state.Dir, stores []string, principal string) (*Report, error) {
	var sum Report
	for _, where := range stores {
		if err := inStore(ctx, dir, where, principal, &sum); err != nil {
			return nil, err
		}
	}
	if err := inFiles(ctx, dir, principal, &sum); err != nil {
		return nil, err
	}
	return &sum, nil
}

// inStore erases what one database keeps, and records how much that was.
func inStore(ctx context.Context, dir *state.Dir, where, principal string, sum *Report) error {
	s, err := install.Database(where).Open(ctx, dir, false)
	if errors.Is(err, install.ErrNoStore) {
		err = exit.With(exit.Unreachable, fmt.Errorf("forget: there is no database at %s: nothing was erased", finding.Quote(where)))
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if err := integrated(ctx, s.Ledger(), dir, install.IntegrateWait); err != nil {
		return err
	}
	kept, err := install.RecordsOf(ctx, s, dir)
	if err != nil {
		return local.OpenError(err)
	}
	defer kept.Close()
	var evidence func(hold.Item) ([]byte, error)
	if kept != nil {
		evidence = kept.Forgotten
	}
	f, err := s.Forget(ctx, principal, evidence)
	if err != nil {
		return local.OpenError(err)
	}
	names, err := surface.NewPins(s, nil).Unname(ctx, principal)
	if err != nil {
		return local.OpenError(err)
	}
	f.Names += names
	if kept != nil && f != (storage.Forgotten{}) {
		// The record has no digest of the name: it would be the one that remains.
		if err := kept.Require(forgotten(f)); err != nil {
			return local.OpenError(err)
		}
	}
	sum.Held, sum.Names, sum.Openings = sum.Held+f.Held, sum.Names+f.Names, sum.Openings+f.Openings
	sum.Sessions += f.Sessions + f.SignIns
	sum.Captures += f.Captures
	if err := s.Compact(ctx); err != nil {
		return local.OpenError(fmt.Errorf("forget: the rows are erased, but not yet the free pages of the file: run this again when no other process uses the store: %w", err))
	}
	return nil
}

// forgotten is the record of what was erased.
func forgotten(f storage.Forgotten) *ledger.Event {
	return &ledger.Event{Time: time.Now(), Kind: ledger.PrincipalForgotten, Actor: "person", Numbers: []ledger.Number{
		{Name: "captures", N: int64(f.Captures)}, {Name: "held", N: int64(f.Held)}, {Name: "names", N: int64(f.Names)}, {Name: "openings", N: int64(f.Openings)}, {Name: "sessions", N: int64(f.Sessions + f.SignIns)}}}
}

// integrated waits until every record is signed: a record that waits has its opening with it.
func integrated(ctx context.Context, l *storage.Ledger, dir *state.Dir, wait time.Duration) error {
	seq, err := local.Carrier(l, dir, nil)
	if err != nil {
		return err
	}
	for end := time.Now().Add(wait); ; {
		err := seq.Flush(ctx)
		switch {
		case errors.Is(err, sequence.ErrNoLog):
			return nil
		case err != nil && !errors.Is(err, sequence.ErrNoKey) && !errors.Is(err, sequence.ErrLost):
			return local.OpenError(err)
		}
		switch n, err := l.Waiting(ctx, 1); {
		case err != nil:
			return local.OpenError(err)
		case n == 0:
			return nil
		case time.Now().After(end):
			return errors.New("forget: records wait for their signature: run this where the key of the ledger is, or while the gateway that has it runs")
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// inFiles erases what stands in files of the state directory.
func inFiles(ctx context.Context, dir *state.Dir, principal string, sum *Report) error {
	files, err := install.PinFiles()
	if err != nil {
		return err
	}
	names, err := surface.NewPins(files, nil).Unname(ctx, principal)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	sum.Names += names
	if sum.GuardEvidence, err = guardEvidence(dir, principal); err != nil {
		return exit.With(exit.Config, err)
	}
	sum.Refusals, err = dir.BlankRecords(refusalsName, func(line []byte) bool {
		var of struct{ Submitter string }
		return json.Unmarshal(line, &of) == nil && of.Submitter == principal
	})
	if err != nil {
		return exit.With(exit.Config, err)
	}
	// Last: a login that cannot be read, as with a locked keychain, keeps nothing else from being erased.
	if sum.Logins, err = login.OpenStore(dir).ForgetPrincipal(principal); err != nil {
		return exit.With(exit.Config, err)
	}
	return nil
}

// maxEvidence bounds an evidence file of the guard that is read to find its principal.
const maxEvidence = 64 << 20

// guardEvidence removes the statements that the guard has kept of the principal. The ledger
// keeps their digests.
func guardEvidence(dir *state.Dir, principal string) (removed int, err error) {
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
		if json.Unmarshal(b, &of) != nil || of.Principal != principal {
			continue
		}
		if err := sub.Remove(name); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
