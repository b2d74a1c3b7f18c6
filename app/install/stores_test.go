// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// code is the exit code that an error carries.
func code(err error) int {
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded.Code
	}
	return exit.Failed
}

// TestStores: which stores a person means, and what a message calls them.
// TestDatabaseFlag: a command names the database where it would not find it, and never a URL.
func TestDatabaseFlag(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	srv := filepath.Join(filepath.VolumeName(here)+string(filepath.Separator), "srv")
	x, spaced := filepath.Join(srv, "x.db"), filepath.Join(srv, "x y.db")
	for _, x := range []struct {
		db          Database
		known, want string
	}{
		{"", "", ""}, {"", x, ""}, {Database(x), x, ""}, {Database(x), "", " --db " + terminal.ShellWord(x)}, {Database(spaced), x, " --db " + terminal.ShellWord(spaced)},
		{"x.db", "", " --db " + terminal.ShellWord(filepath.Join(here, "x.db"))}, {"postgres://u:secret@h/d", "", " --db URL"}, {"postgres://u:secret@h/d", "postgres://u:secret@h/d", ""},
	} {
		if got := x.db.Flag(x.known); got != x.want {
			t.Errorf("%q where %q is known: %q, want %q", x.db, x.known, got, x.want)
		}
	}
}

func TestStores(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PELLUCID_STATE", home)
	list := func(d Database) []string {
		t.Helper()
		got, err := d.Stores()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := list(""); len(got) != 0 {
		t.Errorf("in an empty directory: %q", got)
	}
	var want []string
	for _, name := range []string{"pellucid.db", "ground.db", "other.db"} {
		if err := local.MakePrivate(filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
		if name != "other.db" {
			want = append(want, filepath.Join(home, name))
		}
	}
	if got := list(""); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := list("some.db"); !slices.Equal(got, []string{"some.db"}) {
		t.Errorf("named: %q", got)
	}
	if _, err := Database("mysql://h/d").Stores(); code(err) != exit.Usage {
		t.Errorf("another kind of database: %v", err)
	}
	for where, want := range map[string]string{"/a/b/pellucid.db": "pellucid.db", "postgres://u:secret@h/d": "postgres"} {
		if got := StoreName(where); got != want {
			t.Errorf("%s is called %s", where, got)
		}
	}
}

// TestMigrateBackup: a store is made, migrated and backed up; each failure has its code.
func TestMigrateBackup(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	where := filepath.Join(dir, "pellucid.db")
	if _, err := migrate(ctx, where); !errors.Is(err, ErrNoStores) || code(err) != exit.Config {
		t.Errorf("migrate nothing: %v", err)
	}
	if _, err := backup(ctx, where, filepath.Join(dir, "b.db")); !errors.Is(err, ErrNoStores) || code(err) != exit.Config {
		t.Errorf("back up nothing: %v", err)
	}
	s, err := storage.Open(ctx, where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := migrate(ctx, where); err != nil || m.From != m.To || m.To == 0 || m.String() != fmt.Sprintf("pellucid.db: the schema is at version %d, which is this release's.", m.To) {
		t.Errorf("%v: %v", m, err)
	}
	into := filepath.Join(dir, backupName(where, time.Unix(0, 0)))
	made, err := backup(ctx, where, into)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(into); err != nil || info.Size() != made.Size || made.File != into || filepath.Base(into) != "pellucid-19700101T000000Z.db" {
		t.Errorf("%s: %v", made, err)
	}
	if _, err := backup(ctx, where, into); code(err) != exit.Failed {
		t.Errorf("over an earlier one: %v", err)
	}
	if _, err := backup(ctx, "postgres://127.0.0.1:1/d", into); code(err) != exit.Usage {
		t.Errorf("of Postgres: %v", err)
	}
	if err := os.WriteFile(where, []byte("no database at all, but longer than nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := migrate(ctx, where); err == nil || code(err) == exit.Failed {
		t.Errorf("migrate what is no database: %v", err)
	}
}

// TestWithLog: what is not there yet is one error, and a log that waits is integrated.
func TestWithLog(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	var d Database
	none := func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error { _, err := l.Head(ctx); return err }
	if err := d.WithLog(none); !errors.Is(err, ErrNoLog) || !errors.Is(err, ErrNoStore) {
		t.Errorf("without a database: %v", err)
	}
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(context.Background(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := d.WithLog(none); !errors.Is(err, ErrNoLog) || errors.Is(err, sequence.ErrNoLog) {
		t.Errorf("without a log: %v", err)
	}
	if err := d.WithIntegratedLog(none); !errors.Is(err, ErrNoLog) {
		t.Errorf("without a log to integrate: %v", err)
	}
}

// TestStoreWords: what is done with a store, as a person reads it.
func TestStoreWords(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"a\u2039U+001B ESCAPE\u203a.db: the schema went from version 3 to 12.": &Migration{"a\x1b.db", 3, 12},
		`"a\u202e.db": 1,234 bytes`: &Copy{"a\u202e.db", 1234},
	} {
		if got.String() != want {
			t.Errorf("%+q, want %+q", got, want)
		}
	}
}

// TestWithReview: what is decided about held results and blocked sources is recorded where the
// store has a log, and is done where it has none.
func TestWithReview(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	var d Database
	if err := d.WithReview(func(context.Context, *Review) error { return nil }); !errors.Is(err, ErrNoStore) {
		t.Errorf("without a store: %v", err)
	}
	dir, err := local.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Open(t.Context(), dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	decide := func(n byte) (id string) {
		id = strings.Repeat(string('a'+rune(n)), 32)
		err := d.WithReview(func(ctx context.Context, r *Review) error {
			it := hold.Item{ID: id, Server: "files", Rule: "finding", Code: finding.HiddenTag, Call: hold.Digest{n}, Body: []byte(`{}`)}
			return errors.Join(r.Queue.Hold(ctx, it), r.Queue.Deny(ctx, id, "ann"))
		})
		if err != nil {
			t.Error(err)
		}
		err = d.WithReview(func(ctx context.Context, r *Review) error {
			return r.Blocks.Add(ctx, hold.Block{ID: id, Server: string('a' + rune(n)), Evidence: id, Severity: 900})
		})
		if err != nil {
			t.Error(err)
		}
		return id
	}
	decide(0)
	if _, err := s.Ledger().Head(t.Context()); !errors.Is(err, sequence.ErrNoLog) {
		t.Fatalf("a log began by itself: %v", err)
	}
	kept := OpenRecords(s, dir, &rules.Evidence{Mode: rules.Required, Origin: "log.example/queue"}, time.Hour, slog.New(slog.DiscardHandler))
	if err := kept.Require(&ledger.Event{Kind: ledger.Message, Verdict: "passed", Server: "files"}); err != nil {
		t.Fatal(err)
	}
	kept.Close()
	decide(1)
	err = d.WithIntegratedLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		for kind, want := range map[ledger.Kind]int{ledger.ResultHeld: 1, ledger.ResultDenied: 1, ledger.Counterfactual: 1} {
			if list, err := l.List(ctx, sequence.Filter{Kind: kind}); err != nil || len(list) != want {
				t.Errorf("%d records %s, want %d: %v", len(list), kind, want, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestEachStore: every store of the state directory is migrated and backed up; a name for the
// file is refused where there are two.
func TestEachStore(t *testing.T) {
	home := t.TempDir()
	t.Setenv("PELLUCID_STATE", home)
	t.Chdir(t.TempDir())
	var d Database
	names, migrated := []string{}, []string{}
	note := func(c *Copy) error { names = append(names, c.File); return nil }
	tell := func(m *Migration) error { migrated = append(migrated, m.Store); return nil }
	for _, err := range []error{d.Migrate(tell), d.Backup("", note)} {
		if !errors.Is(err, ErrNoStores) || code(err) != exit.Config {
			t.Errorf("without a store: %v", err)
		}
	}
	for _, name := range []string{"pellucid.db", "ground.db"} {
		s, err := storage.Open(t.Context(), filepath.Join(home, name), storage.Options{})
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Migrate(tell); err != nil || !slices.Equal(migrated, []string{"pellucid.db", "ground.db"}) {
		t.Errorf("%q: %v", migrated, err)
	}
	if err := d.Backup("one.db", note); code(err) != exit.Usage || len(names) != 0 {
		t.Errorf("two stores into one file: %v", err)
	}
	if err := d.Backup("", note); err != nil || len(names) != 2 || !strings.HasPrefix(names[0], "pellucid-2") || !strings.HasPrefix(names[1], "ground-2") {
		t.Errorf("%q: %v", names, err)
	}
	if err := Database(filepath.Join(home, "ground.db")).Backup("one.db", note); err != nil || names[2] != "one.db" {
		t.Errorf("%q: %v", names, err)
	}
	broken := errors.New("the output is closed")
	if err := d.Migrate(func(*Migration) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("an error of what is told: %v", err)
	}
}
