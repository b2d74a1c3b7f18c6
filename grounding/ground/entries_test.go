// SPDX-License-Identifier: Apache-2.0

package ground_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/grounding/store/storetest"
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
	s := &feedStore{Store: storetest.Open(t)}
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

// sayings makes n attestations of distinct claims.
func sayings(n int) []saying {
	out := make([]saying, n)
	for i := range out {
		out[i] = saying{by: "a", claim: fmt.Sprintf("There are %d kinds of snow.", i)}
	}
	return out
}

// TestEntryAsJSON: a line has the stored bytes, for attestations and events.
func TestEntryAsJSON(t *testing.T) {
	store := storetest.Open(t)
	a := newAdapter(t, ground.Options{Store: store, Now: testClock, Issuers: []string{validator(t, "issuer").DID()}})
	all := sayings(3)
	receipts := ingest(t, a, all...)
	retraction, reversal := event(t, ground.Retract, source, "issuer", testTime.Add(-time.Hour)), event(t, ground.Reverse, source, "issuer", testTime)
	r1, _ := send(t, a, retraction)
	r2, _ := send(t, a, reversal)

	type line struct{ Cursor, Kind, Hash, Original string }
	var want, got []line
	for i, r := range receipts {
		want = append(want, line{strconv.Itoa(i + 1), "attestation", r.Hash, string(all[i].sign(t))})
	}
	want = append(want, line{"4", "retract", r1.Hash, string(retraction)}, line{"5", "reverse", r2.Hash, string(reversal)})
	for e, err := range ground.Entries(t.Context(), store, 0, 0) {
		var l line
		if err = errors.Join(err, json.Unmarshal(e.AppendJSON(nil), &l)); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
