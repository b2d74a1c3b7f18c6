// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"errors"
	"testing"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
)

// A feedStore is a real store whose feed fails behind a cursor, and counts its pages.
type feedStore struct {
	ground.Store
	fails ground.Cursor // 0: never
	asked []int         // limits of the pages
}

var errFeed = errors.New("the store is away")

func (s *feedStore) Feed(ctx context.Context, after ground.Cursor, limit int) ([]ground.Entry, error) {
	s.asked = append(s.asked, limit)
	if s.fails > 0 && after >= s.fails {
		return nil, errFeed
	}
	return s.Store.Feed(ctx, after, limit)
}

// TestEntries: every entry once and in order, in pages of a bounded size, no more than the
// limit, and no entry behind an error.
func TestEntries(t *testing.T) {
	s := &feedStore{Store: openStore(t)}
	ingest(t, newAdapter(t, ground.Options{Store: s, Now: testClock}), sayings(600)...)
	for _, c := range []struct {
		name         string
		after, fails ground.Cursor
		limit        int
		first, last  int // cursors that are yielded
		pages        int
	}{
		{"all", 0, 0, 0, 1, 600, 4},
		{"behind a cursor", 256, 0, 0, 257, 600, 3},
		{"a limit", 10, 0, 300, 11, 310, 2},
		{"a limit of one page", 0, 0, 256, 1, 256, 1},
		{"nothing there", 600, 0, 0, 601, 600, 1},
		{"the store fails", 0, 256, 0, 1, 256, 2},
	} {
		s.fails, s.asked = c.fails, nil
		next, failed := c.first, false
		for entry, err := range ground.Entries(t.Context(), s, c.after, c.limit) {
			if failed {
				t.Errorf("%s: something is behind the error", c.name)
			}
			if failed = err != nil; failed {
				if !errors.Is(err, errFeed) {
					t.Errorf("%s: %v", c.name, err)
				}
				continue
			}
			if entry.Cursor != ground.Cursor(next) {
				t.Fatalf("%s: cursor %d, want %d", c.name, entry.Cursor, next)
			}
			next++
		}
		if next != c.last+1 || failed != (c.fails > 0) || len(s.asked) != c.pages {
			t.Errorf("%s: up to %d, want %d; failed %v; pages %v", c.name, next-1, c.last, failed, s.asked)
		}
	}
	s.asked = nil
	for range ground.Entries(t.Context(), s, 0, 0) {
		break
	}
	if len(s.asked) != 1 {
		t.Errorf("pages after the reader has gone: %v", s.asked)
	}
}
