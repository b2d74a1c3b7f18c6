// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/storage"
)

func TestMain(m *testing.M) {
	if keys := os.Getenv("PELLUCID_STORE_KEYS"); keys != "" {
		n, _ := strconv.Atoi(os.Getenv("PELLUCID_STORE_RECORDS"))
		if err := recordForever(nil, os.Getenv("PELLUCID_STORE_CHILD"), keys, n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if url := os.Getenv("PELLUCID_STORE_HOOK"); url != "" {
		fmt.Fprintln(os.Stderr, holdAndDie(os.Getenv("PELLUCID_STORE_CHILD"), url))
		os.Exit(1)
	}
	code := m.Run()
	server.Stop()
	os.Exit(code)
}

var ctx = context.Background()

// engines runs f with the place of an empty store on each engine.
func engines(t *testing.T, f func(t *testing.T, where string)) {
	name := "a ?%#.db"
	if runtime.GOOS == "windows" {
		name = "a %#.db" // no file has a question mark there
	}
	t.Run("sqlite", func(t *testing.T) { f(t, filepath.Join(t.TempDir(), name)) })
	t.Run("postgres", func(t *testing.T) { f(t, server.Database(t)) })
}

func open(t testing.TB, where string, o storage.Options) *storage.Store {
	t.Helper()
	s, err := storage.Open(ctx, where, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var day = time.Date(2026, 4, 25, 12, 0, 0, 123456789, time.UTC)

// addRecord stores a record that waits, as every change that other writers are kept out of does.
func addRecord(s *storage.Store, record string) error {
	return s.Update(ctx, "add", func(t *storage.Tx) error { return t.AddRecords(ctx, []byte(record)) })
}

// countWaiting returns the number of records that wait.
func countWaiting(t testing.TB, s *storage.Store) int {
	t.Helper()
	n, err := s.Ledger().Waiting(ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
