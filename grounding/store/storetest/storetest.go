// SPDX-License-Identifier: Apache-2.0

// Package storetest opens a store of attestations for a test.
package storetest

import (
	"path/filepath"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/store"
	"github.com/pellucid-mcp/pellucid/storage"
)

// Open opens an empty SQLite store, which is closed when the test ends.
func Open(t testing.TB) *store.Store {
	t.Helper()
	s, err := storage.Open(t.Context(), filepath.Join(t.TempDir(), "ground.db"), storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	out, err := store.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
