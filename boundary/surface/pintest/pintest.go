// SPDX-License-Identifier: Apache-2.0

// Package pintest is the contract of surface.PinStore and surface.Cache as tests that every store of them passes.
package pintest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
)

// Records walks a record through everything that can become of it. open opens the
// store, which is empty at first, as another process would.
func Records(t *testing.T, open func() surface.PinStore) {
	ctx, s := t.Context(), open()
	want := func(server, record string, version int64) {
		t.Helper()
		b, v, err := s.LoadPin(ctx, server)
		if err != nil || string(b) != record || (b == nil) != (record == "") || v != version {
			t.Errorf("load %q: %q at %d, %v; want %q at %d", server, b, v, err, record, version)
		}
	}
	save := func(server, record string, version int64, conflict bool) {
		t.Helper()
		err := s.SavePin(ctx, server, []byte(record), version, nil)
		if conflict && !errors.Is(err, surface.ErrConflict) || !conflict && err != nil {
			t.Errorf("save %q at %d: %v", server, version, err)
		}
	}
	listed := func(names ...string) {
		t.Helper()
		if got, err := s.ListPins(ctx); err != nil || !slices.Equal(got, names) {
			t.Errorf("list %q, %v; want %q", got, err, names)
		}
	}
	want("files", "", 0)
	save("files", "never loaded", 1, true)
	save("files", "a\n", 0, false)
	want("files", "a\n", 1)
	save("files", "b", 0, true)
	save("files", "b", 2, true)
	save("files", "b", 1, false)
	want("files", "b", 2)
	save("Zoo", "z", 0, false)
	save("caf\u00e9 '?", "c", 0, false)
	listed("Zoo", "caf\u00e9 '?", "files")
	for range 2 { // what is not there is gone
		if err := s.DropPin(ctx, "files", nil); err != nil {
			t.Error(err)
		}
	}
	want("files", "", 0)
	listed("Zoo", "caf\u00e9 '?")
	save("files", "of who had loaded it before", 2, true)
	save("files", "c", 0, false)
	save("files", "of who had loaded it before", 2, true)
	save("files", "of who had loaded it before", 1, true)
	if b, v, err := s.LoadPin(ctx, "files"); err != nil || string(b) != "c" || v <= 2 {
		t.Errorf("pinned anew: %q at %d, %v", b, v, err)
	}
	s = open()
	want("Zoo", "z", 1)
	listed("Zoo", "caf\u00e9 '?", "files")
}

// Race: of those who have loaded the same version, one saves.
func Race(t *testing.T, open func() surface.PinStore) {
	stores := []surface.PinStore{open(), open()}
	for version := range int64(4) {
		var saved, refused atomic.Int32
		var all sync.WaitGroup
		for n := range 8 {
			all.Go(func() {
				switch err := stores[n%2].SavePin(t.Context(), "files", fmt.Append(nil, n), version, nil); {
				case err == nil:
					saved.Add(1)
				case errors.Is(err, surface.ErrConflict):
					refused.Add(1)
				default:
					t.Errorf("save: %v", err)
				}
			})
		}
		all.Wait()
		if saved.Load() != 1 || refused.Load() != 7 {
			t.Errorf("at %d: %d saved, %d refused", version, saved.Load(), refused.Load())
		}
	}
}

// Verdicts: the last entry for a key is what there is, for this key only.
func Verdicts(t *testing.T, c surface.Cache) {
	ctx := t.Context()
	key := surface.CacheKey(surface.Digest{1}, "model", "stdio")
	if got, err := c.GetVerdict(ctx, key); err != nil || got != nil {
		t.Errorf("none: %q, %v", got, err)
	}
	for _, entry := range []string{"OK first\n", "OK second\n"} {
		if err := c.PutVerdict(ctx, key, []byte(entry)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetVerdict(ctx, key); err != nil || string(got) != entry {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got, err := c.GetVerdict(ctx, surface.Digest{}); err != nil || got != nil {
		t.Errorf("another key: %q, %v", got, err)
	}
}
