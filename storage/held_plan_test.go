// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// TestHeldSumsReadNoRows: SQLite counts what waits from an index alone. A row of a long body costs as many pages as
// the body has.
func TestHeldSumsReadNoRows(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	queries := map[string][]any{heldSums: {stamp(now)}}
	for _, f := range []hold.Filter{{Server: "a", Code: finding.HiddenTag, Since: now}, {Server: "a", Tool: "t", Code: finding.HiddenTag, State: hold.Held}, {Code: finding.HiddenTag}, {State: hold.Denied}} {
		query, args := selectHeld(f, now)
		queries[query] = args
		query, args = waitingHeld(f, time.Time{}, now, 100)
		queries[query] = args
	}
	for query, args := range queries {
		reads := 0
		err := s.query(t.Context(), func(r *sql.Rows) error {
			var id, parent, unused int
			var step string
			err := r.Scan(&id, &parent, &unused, &step)
			if strings.Contains(step, " held") {
				reads++
				if !strings.Contains(step, "COVERING INDEX held_facts") {
					t.Errorf("%s\n%s", query, step)
				}
			}
			return err
		}, "EXPLAIN QUERY PLAN "+query, args...)
		if err != nil || reads == 0 {
			t.Errorf("%s: %d reads, %v", query, reads, err)
		}
	}
}
