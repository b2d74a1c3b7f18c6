// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"database/sql"
	"errors"
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
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	queries := map[string][]any{heldSums: {Stamp(now)}}
	for _, f := range []hold.Filter{{Server: "a", Code: finding.HiddenTag, Since: now}, {Server: "a", Tool: "t", Code: finding.HiddenTag, State: hold.Held}, {Code: finding.HiddenTag}, {State: hold.Denied}} {
		query, args := selectHeld(f, now)
		queries[query] = args
		query, args = waitingHeld(f, time.Time{}, now, 100)
		queries[query] = args
	}
	for query, args := range queries {
		reads := 0
		err := s.EachRow(t.Context(), func(r *sql.Rows) error {
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

// TestHeldListsReadNoRows: SQLite reads a page of the queue, whatever it is filtered by, and how much room a server has,
// from indices alone.
func TestHeldListsReadNoRows(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	queries := map[string][]any{takenBy: {"a", Stamp(now)}, takenFor: {"a", Stamp(now)}, takenAll: {Stamp(now)}, takenServers: {Stamp(now)}, takenPersons: {Stamp(now)}}
	for _, state := range []hold.State{"", hold.Held, hold.Released, hold.Taken, hold.Denied, hold.Expired} {
		for _, f := range []hold.Filter{{}, {Server: "a"}, {Tool: "t"}, {Code: finding.HiddenTag}, {Rule: "finding"}, {Principal: "p"}, {Digest: hold.Digest{1}}, {Text: "x"},
			{Server: "a", Code: finding.HiddenTag}, {Server: "a", Tool: "t", Text: "x"}, {Since: now, AsOf: now, Servers: []string{"a"}}} {
			for _, f.Oldest = range []bool{false, true} {
				q := newHeldQuery(&f, now)
				q.branches = heldBranches(state, false, now)
				query, args := q.rows(50, true, q.behind(heldCursor{"2026", "1"}))
				queries[query] = args
				query, args = q.places(1000, q.behind(heldCursor{"2026", "1"}))
				queries[query] = args
			}
		}
	}
	for query, args := range queries {
		reads := 0
		err := s.queryBuilt(t.Context(), func(r *sql.Rows) error {
			var id, parent, unused int
			var step string
			err := r.Scan(&id, &parent, &unused, &step)
			if strings.Contains(step, " held") {
				reads++
				if !strings.Contains(step, "COVERING INDEX held_") {
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

// TestBuiltQueriesAreNotKept: the statements of a store do not grow with the forms that a filter can have.
func TestBuiltQueriesAreNotKept(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "a.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	q := hold.New(s, hold.Options{})
	kept := func() (n int) {
		s.stmts.Range(func(any, any) bool { n++; return true })
		return n
	}
	ask := func(f hold.Filter) {
		t.Helper()
		_, page := q.Page(t.Context(), f)
		_, groups := q.Groups(t.Context(), f, hold.ByServer, hold.NewestFirst, 0)
		_, sel := q.Select(t.Context(), &f)
		_, _, show := q.Show(t.Context(), f)
		if err := errors.Join(page, groups, sel, show); err != nil {
			t.Fatal(err)
		}
	}
	ask(hold.Filter{})
	before := kept()
	for n := range 64 {
		var f hold.Filter
		for i, set := range []func(){func() { f.Server = "a" }, func() { f.Tool = "a" }, func() { f.Code = finding.HiddenTag }, func() { f.Rule = "a" },
			func() { f.Principal = "a" }, func() { f.State = hold.Held }} {
			if n>>i&1 == 1 {
				set()
			}
		}
		ask(f)
	}
	if after := kept(); after != before {
		t.Errorf("%d statements are kept, %d before", after, before)
	}
}
