// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pellucid-mcp/pellucid/boundary/surface"
	"github.com/pellucid-mcp/pellucid/boundary/surface/pintest"
	"github.com/pellucid-mcp/pellucid/storage"
)

func TestPinRecords(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		pintest.Records(t, func() surface.PinStore { return open(t, where, storage.Options{}) })
	})
}

func TestPinRace(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		pintest.Race(t, func() surface.PinStore { return open(t, where, storage.Options{}) })
	})
}

// TestPins: package surface's own use of the store, by two replicas.
func TestPins(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		one := surface.NewPins(open(t, where, storage.Options{}), nil)
		two := surface.NewPins(open(t, where, storage.Options{}), nil)
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
	t.Parallel()
	engines(t, func(t *testing.T, where string) { pintest.Verdicts(t, open(t, where, storage.Options{})) })
}
