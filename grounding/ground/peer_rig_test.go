// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
)

// follow follows p until stop is called.
func follow(t testing.TB, a *ground.Adapter, p ground.Peer, log *slog.Logger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Follow(ctx, p, log) }()
	waittest.Until(t, "it is followed", func() bool { return len(a.Peers()) > 0 })
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Follow: %v", err)
		}
	})
}

// hashes are those of all that s has, in the order of its feed.
func hashes(t testing.TB, s ground.Store) (out []string) {
	t.Helper()
	var after ground.Cursor
	for {
		page, err := s.Feed(t.Context(), after, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return out
		}
		for _, e := range page {
			out = append(out, e.Hash.String())
			after = e.Cursor
		}
	}
}

func only(t testing.TB, a *ground.Adapter) ground.PeerState {
	t.Helper()
	ps := a.Peers()
	if len(ps) != 1 {
		t.Fatalf("%d peers", len(ps))
	}
	return ps[0]
}

const soon = 5 * time.Millisecond
