// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// code is the exit code that an error carries.
func code(err error) int {
	if coded, ok := errors.AsType[*exit.Error](err); ok {
		return coded.Code
	}
	return exit.Failed
}

// TestStores: which stores a person means, and what a message calls them.
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
		if err := MakePrivate(filepath.Join(home, name)); err != nil {
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
	if _, _, err := Migrate(ctx, where); !errors.Is(err, ErrNoStores) || code(err) != exit.Config {
		t.Errorf("migrate nothing: %v", err)
	}
	if _, err := Backup(ctx, where, filepath.Join(dir, "b.db")); !errors.Is(err, ErrNoStores) || code(err) != exit.Config {
		t.Errorf("back up nothing: %v", err)
	}
	s, err := storage.Open(ctx, where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if from, to, err := Migrate(ctx, where); err != nil || from != to || to == 0 {
		t.Errorf("from %d to %d: %v", from, to, err)
	}
	into := filepath.Join(dir, BackupName(where, time.Unix(0, 0)))
	size, err := Backup(ctx, where, into)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(into); err != nil || info.Size() != size || filepath.Base(into) != "pellucid-19700101T000000Z.db" {
		t.Errorf("%s of %d bytes: %v", into, size, err)
	}
	if _, err := Backup(ctx, where, into); code(err) != exit.Failed {
		t.Errorf("over an earlier one: %v", err)
	}
	if _, err := Backup(ctx, "postgres://127.0.0.1:1/d", into); code(err) != exit.Usage {
		t.Errorf("of Postgres: %v", err)
	}
	if err := os.WriteFile(where, []byte("no database at all, but longer than nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Migrate(ctx, where); err == nil || code(err) == exit.Failed {
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
	dir, err := Open()
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
