package store_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pellucid-mcp/pellucid/internal/store"
	"github.com/pellucid-mcp/pellucid/surface"
)

// TestPinRecords walks a record through everything that can become of it.
func TestPinRecords(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, store.Options{})
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
		want("files", "", 0)
		save("files", "never loaded", 1, true)
		save("files", "a", 0, false)
		want("files", "a", 1)
		save("files", "b", 0, true)
		save("files", "b", 2, true)
		save("files", "b", 1, false)
		want("files", "b", 2)
		save("Zoo", "z", 0, false)
		save("caf\u00e9 '?", "c", 0, false)
		if got, err := s.ListPins(ctx); err != nil || !slices.Equal(got, []string{"Zoo", "caf\u00e9 '?", "files"}) {
			t.Errorf("list %q, %v", got, err)
		}
		for range 2 { // what is not there is gone
			if err := s.DropPin(ctx, "files", nil); err != nil {
				t.Error(err)
			}
		}
		want("files", "", 0)
		save("files", "of who had loaded it before", 2, true)
		save("files", "c", 0, false)
		save("files", "of who had loaded it before", 2, true)
		save("files", "of who had loaded it before", 1, true)
		b, v, err := s.LoadPin(ctx, "files")
		if err != nil || string(b) != "c" || v <= 2 {
			t.Errorf("pinned anew: %q at %d, %v", b, v, err)
		}
		if got, err := s.ListPins(ctx); err != nil || len(got) != 3 {
			t.Errorf("list %q, %v", got, err)
		}
		again := open(t, where, store.Options{})
		if b, _, err := again.LoadPin(ctx, "Zoo"); err != nil || string(b) != "z" {
			t.Errorf("opened again: %q, %v", b, err)
		}
	})
}

// TestPinRace: of those who have loaded the same version, one saves.
func TestPinRace(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		stores := []*store.Store{open(t, where, store.Options{}), open(t, where, store.Options{})}
		for version := range int64(4) {
			var saved, refused atomic.Int32
			var all sync.WaitGroup
			for n := range 8 {
				all.Go(func() {
					err := stores[n%2].SavePin(ctx, "files", fmt.Append(nil, n), version, nil)
					switch {
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
	})
}

// TestPins: package surface's own use of the store, by two replicas.
func TestPins(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		one := surface.NewPins(open(t, where, store.Options{}), nil)
		two := surface.NewPins(open(t, where, store.Options{}), nil)
		dump := func(description string) *surface.Surface {
			s, err := surface.ParseDump(fmt.Appendf(nil, `{"initialize":{"protocolVersion":"2025-06-18","serverInfo":{"name":"n","version":"1"},"capabilities":{"tools":{}}},
				"tools/list":[{"tools":[{"name":"now","description":%q,"inputSchema":{"type":"object"}}]}]}`, description), surface.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		if err := one.Pin(ctx, "files", "stdio", dump("the time")); err != nil {
			t.Fatal(err)
		}
		if err := two.Pin(ctx, "files", "stdio", dump("another")); !errors.Is(err, surface.ErrPinned) {
			t.Errorf("pinned twice: %v", err)
		}
		key := surface.Key{Kind: surface.Tool, Name: "now"}
		a, err := two.Admit(ctx, "files", "stdio", dump("another"))
		if err != nil || a.State(key) != surface.Pending {
			t.Fatalf("changed: %v", err)
		}
		pin, err := one.Get(ctx, "files")
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Approve(ctx, "files", key, pin.Item(key).PendingDigest(), "ann"); err != nil {
			t.Fatal(err)
		}
		if a, err = two.Admit(ctx, "files", "stdio", dump("another")); err != nil || a.State(key) != surface.Approved {
			t.Errorf("approved: %v", err)
		}
	})
}

func TestVerdicts(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, store.Options{})
		key := surface.CacheKey(surface.Digest{1}, "model", "stdio")
		if got, err := s.GetVerdict(ctx, key); err != nil || got != nil {
			t.Errorf("none: %q, %v", got, err)
		}
		for _, entry := range []string{"OK first\n", "OK second\n"} {
			if err := s.PutVerdict(ctx, key, []byte(entry)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.GetVerdict(ctx, key); err != nil || string(got) != entry {
				t.Errorf("%q, %v", got, err)
			}
		}
		if got, err := s.GetVerdict(ctx, surface.Digest{}); err != nil || got != nil {
			t.Errorf("another key: %q, %v", got, err)
		}
	})
}
