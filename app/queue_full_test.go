// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"net/http"
	"path/filepath"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestUpQueueFull: /readyz says that the queue is full, and stops when a place is free.
func TestUpQueueFull(t *testing.T) {
	where := filepath.Join(t.TempDir(), "q.db")
	g := apptest.Start(t, "version: 1\nservers:\n  one: {url: "+apptest.Upstream(t, "one", nil)+"}\n", map[string]string{"PELLUCID_DB": where})
	s, err := storage.Open(t.Context(), where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q, last := hold.New(s, hold.Options{}), ""
	for range 1000 {
		last = hold.NewID()
		if err := q.Hold(t.Context(), hold.Item{ID: last, Server: "one", Rule: "finding", Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
	}
	g.Eventually("a warning", func() bool { return readyz(t, g).Warnings["queue"] == "full" })
	if got := g.Get("/readyz", ""); got != http.StatusOK {
		t.Errorf("status %d: calls go on", got)
	}
	if err := q.Deny(t.Context(), last, "ann"); err != nil {
		t.Fatal(err)
	}
	g.Eventually("no warning", func() bool { return readyz(t, g).Warnings["queue"] == "" })
}
