// SPDX-License-Identifier: Apache-2.0

package forget

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/grounding/ingest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// used is an installation that keeps one thing of each kind about ann, and one about bob.
func used(t *testing.T) (dir *state.Dir, where string) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	must(t, err)
	where = filepath.Join(dir.Path(), "pellucid.db")
	s, err := install.Database("").Open(t.Context(), dir, true)
	must(t, err)
	defer s.Close()
	kept := install.OpenRecords(s, dir, &rules.Evidence{Mode: rules.Required, Origin: "log.example/used"}, time.Hour, slog.New(slog.DiscardHandler))
	defer kept.Close()
	queue := hold.New(s, hold.Options{Evidence: kept.Held})
	guard, err := dir.Sub("guard")
	must(t, err)
	refusals, err := dir.Journal(ingest.RefusalsName, nil)
	must(t, err)
	defer refusals.Close()
	for i, name := range []string{"ann", "bob"} {
		id := strings.Repeat(string('a'+rune(i)), 32)
		must(t, queue.Hold(t.Context(), hold.Item{ID: id, Server: "files", Principal: name, Rule: "finding", Code: finding.HiddenTag,
			Call: hold.Digest{byte(i + 1)}, Body: []byte(`{"content":[]}`)}))
		must(t, kept.Require(&ledger.Event{Kind: ledger.Message, Verdict: "passed", Server: "files",
			Subjects: []ledger.Subject{{Role: ledger.Principal, Digest: sha256.Sum256([]byte(name))}}}))
		must(t, guard.Write(name+".json", []byte(`{"principal":"`+name+`"}`)))
		must(t, refusals.Append([]byte(`{"submitter":"`+name+`","accepted":false}`)))
	}
	must(t, guard.Write("damaged.json", []byte(`{"principal":"ann"`)))
	// ann reviews what answered bob.
	must(t, queue.Deny(t.Context(), strings.Repeat("b", 32), "ann"))
	return dir, where
}

// TestPrincipal erases one person of two, and nothing of the other's; the log records it and
// still verifies. A second time nothing is left.
func TestPrincipal(t *testing.T) {
	dir, where := used(t)
	got, err := Principal(t.Context(), dir, []string{where}, "ann")
	must(t, err)
	want := Report{Held: 1, Names: 1, GuardEvidence: 1, Refusals: 1, Openings: got.Openings}
	if *got != want || got.Openings < 1 {
		t.Errorf("%+v, want %+v and some openings", *got, want)
	}
	guard, err := dir.Sub("guard")
	must(t, err)
	if names, err := guard.Names(); err != nil || strings.Join(names, " ") != "bob.json damaged.json" {
		t.Errorf("evidence of the guard: %q, %v", names, err)
	}
	for record, err := range dir.Records(ingest.RefusalsName) {
		if err != nil || bytes.Contains(record, []byte("ann")) {
			t.Errorf("%s: %v", record, err)
		}
	}
	must(t, install.Database(where).WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		list, err := l.List(ctx, sequence.Filter{Kind: ledger.PrincipalForgotten})
		must(t, err)
		var of []ledger.ID
		for _, e := range list {
			st, err := ledger.UnverifiedStatement(e.Envelope)
			must(t, err)
			of = append(of, st.Of)
		}
		// One of all that was erased, and one of the held item that was.
		item, err := ledger.ParseID(strings.Repeat("a", 32))
		must(t, err)
		if !slices.Equal(of, []ledger.ID{{}, item}) && !slices.Equal(of, []ledger.ID{item, {}}) {
			t.Errorf("records are about %v", of)
		}
		return err
	}))
	if got, err = Principal(t.Context(), dir, []string{where}, "ann"); err != nil || *got != (Report{}) {
		t.Errorf("a second time: %+v, %v", got, err)
	}
	if got, err = Principal(t.Context(), dir, []string{where}, "bob"); err != nil || got.Held != 1 || got.GuardEvidence != 1 || got.Refusals != 1 {
		t.Errorf("the other person: %+v, %v", got, err)
	}
	var b strings.Builder
	must(t, (&Report{Held: 1, Names: 2, GuardEvidence: 1}).Write(&b))
	if want := "Erased: 1 held result, 2 names of a reviewer, 0 captures, 0 openings of signed records, 1 evidence file of the guard, 0 lines of refused attestations, 0 logins, 0 sessions.\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

// TestRefuses: where a store is missing nothing is erased of it, nor of the files; a record
// whose key is elsewhere is waited for, but not for good.
func TestRefuses(t *testing.T) {
	dir, where := used(t)
	_, err := Principal(t.Context(), dir, []string{filepath.Join(t.TempDir(), "none.db")}, "ann")
	if coded, ok := errors.AsType[*exit.Error](err); !ok || coded.Code != exit.Unreachable || !strings.Contains(err.Error(), "nothing was erased") {
		t.Errorf("without a store: %v", err)
	}
	must(t, install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		e := ledger.Event{ID: ledger.ID{1}, Time: time.Now(), Kind: ledger.Message, Verdict: "passed"}
		sealed, err := e.Seal(ledger.Salt{1})
		must(t, err)
		must(t, l.Add(ctx, [][]byte{sealed.Bytes()}))
		elsewhere, err := state.OpenAt(t.TempDir())
		must(t, err)
		if err := integrated(ctx, l, elsewhere, time.Millisecond); err == nil || !strings.HasPrefix(err.Error(), "forget: records wait for their signature") {
			t.Errorf("without the key: %v", err)
		}
		if err := integrated(ctx, l, dir, time.Minute); err != nil {
			t.Errorf("with the key: %v", err)
		}
		return nil
	}))
	if got, err := Principal(t.Context(), dir, []string{where}, "ann"); err != nil || got.Held != 1 || got.Refusals != 1 {
		t.Errorf("after it: %+v, %v", got, err)
	}
}
