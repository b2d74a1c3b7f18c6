// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pellucid-mcp/pellucid/storage"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		if !storage.IsPostgres(where) {
			if _, err := storage.Inspect(ctx, where); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("of no file: %v", err)
			}
			if _, err := os.Stat(where); !errors.Is(err, fs.ErrNotExist) {
				t.Error("it was made")
			}
		} else if s, err := storage.Inspect(ctx, where); err != nil || s.Current != 0 || s.Known == 0 {
			t.Errorf("of an empty database: %+v, %v", s, err)
		}
		s, err := storage.Open(ctx, where, storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		got, err := storage.Inspect(ctx, where)
		if err != nil || got.Current != got.Known || got.Known < 1 {
			t.Errorf("Inspect = %+v, %v", got, err)
		}
	})
	junk := filepath.Join(t.TempDir(), "junk.db")
	if err := os.WriteFile(junk, []byte("this is no database, however one looks at it"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Inspect(ctx, junk); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("of junk: %v", err)
	}
	if _, err := storage.Inspect(ctx, "postgres://u:s3cret@127.0.0.1:1/none?connect_timeout=1"); err == nil || err.Error() != "store: inspect: the database cannot be reached: connection refused" {
		t.Errorf("of nowhere: %v", err)
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	where := filepath.Join(t.TempDir(), "a.db")
	s, err := storage.Open(ctx, where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, record := range []string{"one", "two"} {
		if err := addRecord(s, record); err != nil {
			t.Fatal(err)
		}
	}
	into := filepath.Join(t.TempDir(), "b.db")
	if err := storage.Backup(ctx, where, into); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(into)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if err := storage.Backup(ctx, where, into); !errors.Is(err, fs.ErrExist) {
		t.Errorf("into the same file: %v", err)
	}
	if err := storage.Backup(ctx, filepath.Join(t.TempDir(), "none"), into+"2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	if err := storage.Backup(ctx, "postgres://h/d", into+"2"); !errors.Is(err, storage.ErrPostgres) {
		t.Errorf("of Postgres: %v", err)
	}
	left, _ := filepath.Glob(into + "?*")
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	b, err := storage.Open(ctx, into, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if n := countWaiting(t, b); n != 2 {
		t.Errorf("the back-up holds %d records, want 2", n)
	}
}
