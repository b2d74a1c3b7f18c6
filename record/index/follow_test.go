// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// A failing is a Store that refuses rows.
type failing struct {
	Store
	asked int
}

func (s *failing) Indexed(context.Context) (int64, error) { return 0, nil }

func (s *failing) Index(context.Context, int64, []Row) error {
	s.asked++
	time.Sleep(time.Millisecond)
	return errors.New("no store")
}

// TestFollowEnds: a store that fails is asked once more when the process ends, and not until the time for it is over.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &failing{}
		f := NewFollower(s, slog.New(slog.DiscardHandler))
		entries := make([]sequence.Entry, 2*largest)
		for i := range entries {
			entries[i] = sequence.Entry{Index: int64(i), Statement: &ledger.Statement{}}
		}
		f.Integrated(entries)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		f.Follow(ctx)
		if s.asked != 1 {
			t.Errorf("asked %d times", s.asked)
		}
	})
}
