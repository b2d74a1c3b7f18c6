// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestAbout finds the records about a record: before and behind it, of its server alone, and of the guard,
// whether the index of the log has them or not.
func TestAbout(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l := open(t, where, storage.Options{}).Ledger()
		seq := sequencer(l, keyring(t))
		of, now := ledger.ID{7}, time.Now()
		put := func(kind ledger.Kind, of ledger.ID, server string, at time.Time) ledger.ID {
			t.Helper()
			e := ledger.Event{Kind: kind, Of: of, Server: server, Time: at}
			rand.Read(e.ID[:])
			add(t, l, seal(t, &e))
			return e.ID
		}
		put(ledger.ResultHeld, of, "files", now.Add(-time.Hour)) // too early
		want := []ledger.ID{put(ledger.ResultHeld, of, "files", now.Add(-time.Second))}
		put(ledger.ResultDenied, of, "other", now)
		put(ledger.ResultDenied, ledger.ID{8}, "files", now)
		put(ledger.Message, of, "files", now)
		want = append(want, put(ledger.Counterfactual, of, "", now))
		for range 1100 { // more than a page
			put(ledger.Classified, ledger.ID{9}, "files", now)
		}
		want = append(want, put(ledger.ResultDenied, of, "files", now))
		check := func(state string) {
			t.Helper()
			flush(t, seq)
			got, more, err := l.About(ctx, of, "files", now.Add(-time.Minute))
			if err != nil || more || len(got) != len(want) {
				t.Fatalf("%s: %d records, %v, %v", state, len(got), more, err)
			}
			for i := range got {
				if got[i].ID != want[i] {
					t.Errorf("%s: record %d is %s, not %s", state, i, got[i].ID, want[i])
				}
			}
		}
		check("no index")
		if err := index.NewFollower(l, quiet).Catch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		check("an index of all")
		want = append(want, put(ledger.ResultExpired, of, "files", now))
		check("an index that is behind")
	})
}
