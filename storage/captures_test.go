// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/captures"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// TestHeldFound: findings stay with an item as long as it is listed; the question and what was decoded end with
// its text, whatever ends that.
func TestHeldFound(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		s := open(t, where, storage.Options{})
		q := hold.New(s, hold.Options{Now: func() time.Time { return now },
			SealQuestion: func(document []byte, id string) ([]byte, error) {
				if id == heldID(9) {
					return nil, errors.New("no key")
				}
				return append([]byte("sealed for "+id+" "), document...), nil
			}})
		tags := strings.Map(func(r rune) rune { return 0xE0000 + r }, "obey")
		found := hold.Found{Findings: []hold.Finding{{Place: "content/0/text", Code: finding.HiddenTag, Count: 4, Spans: []hold.Span{{Start: 1, End: 17}}}},
			Scores: []hold.Score{{Name: "local", Mode: "shadow", P: 0.75, Outcome: "pass"}}}
		for n := range 10 {
			it := held(n)
			it.Body, it.Found, it.Question = fmt.Appendf(nil, `{"content":[{"text":"a%s"}],"n":%d}`, tags, n), found, []byte("arguments")
			if err := q.Hold(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		get := func(n int) hold.Item {
			t.Helper()
			it, err := q.Get(ctx, heldID(n))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(found, it.Found); diff != "" {
				t.Errorf("%d: %s", n, diff)
			}
			return it
		}
		if it := get(0); string(it.Question) != "sealed for "+heldID(0)+" arguments" || it.Hidden != "obey" {
			t.Errorf("%q %q", it.Question, it.Hidden)
		}
		if it := get(9); it.Question != nil || it.Body == nil {
			t.Errorf("a question that cannot be sealed: %q", it.Question)
		}
		items, err := q.List(ctx, hold.Filter{})
		if err != nil || len(items) != 10 || items[0].Hidden != "obey" || items[0].Question != nil || len(items[0].Found.Findings) != 1 {
			t.Errorf("%+v, %v", items[0], err)
		}
		if err := q.Deny(ctx, heldID(1), "ann"); err != nil {
			t.Error(err)
		}
		if err := q.Release(ctx, heldID(2), "ann"); err != nil {
			t.Error(err)
		}
		if it := get(2); it.Question == nil || it.Hidden != "obey" {
			t.Error("a release ends the text")
		}
		if _, ok := q.Take(ctx, held(2).Call); !ok {
			t.Error("not taken")
		}
		for _, n := range []int{1, 2} {
			if it := get(n); it.Question != nil || it.Hidden != "" || it.Body != nil {
				t.Errorf("%d: %q %q %q", n, it.Question, it.Hidden, it.Body)
			}
		}
		now = now.Add(25 * time.Hour)
		if it := get(3); it.Question != nil || it.Hidden != "" {
			t.Error("past its time and not swept")
		}
		if _, err := q.Sweep(ctx); err != nil {
			t.Error(err)
		}
		db := raw(t, where)
		left := 0
		if err := db.QueryRow(`SELECT count(*) FROM held WHERE question IS NOT NULL OR hidden <> '' OR body IS NOT NULL`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d rows still hold text, %v", left, err)
		}
	})
}

// TestCaptures walks captures through all that can become of them, on each engine.
func TestCaptures(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		row := func(n int, who string) captures.Row {
			return captures.Row{ID: heldID(n), Principal: captures.PrincipalDigest(who), At: day.Add(time.Duration(n) * time.Minute), Until: day.Add(time.Hour + time.Duration(n)*time.Minute),
				Sealed: bytes.Repeat([]byte{byte(n)}, 1000)}
		}
		var rows []captures.Row
		for n := range 1200 {
			rows = append(rows, row(n, []string{"ann", "bob"}[n%2]))
		}
		if err := s.PutCaptures(ctx, rows); err != nil {
			t.Fatal(err)
		}
		again := row(5, "eve")
		again.Sealed = []byte("other")
		if err := s.PutCaptures(ctx, []captures.Row{again}); err != nil {
			t.Error(err)
		}
		got, err := s.GetCapture(ctx, heldID(5), day)
		if err != nil || !bytes.Equal(got.Sealed, rows[5].Sealed) || !got.Until.Equal(rows[5].Until) || !got.At.Equal(rows[5].At) {
			t.Errorf("%v %v, %v", got.At, got.Until, err)
		}
		kept := func(n int, now time.Time) bool {
			t.Helper()
			_, err := s.GetCapture(ctx, heldID(n), now)
			if err != nil && !errors.Is(err, captures.ErrNotKept) {
				t.Fatal(err)
			}
			return err == nil
		}
		if kept(5, rows[5].Until) || kept(1200, day) {
			t.Error("kept past its time, or never")
		}
		// 700 have ended; of the other 500 there is room for 100, the newest.
		if err := s.SweepCaptures(ctx, rows[699].Until, 100_000); err != nil {
			t.Fatal(err)
		}
		for n, want := range map[int]bool{0: false, 699: false, 700: false, 1099: false, 1100: true, 1199: true} {
			if kept(n, day) != want {
				t.Errorf("%d: kept %t", n, !want)
			}
		}
		if f, err := s.Forget(ctx, "ann", nil); err != nil || f.Captures != 50 || kept(1198, day) || !kept(1199, day) {
			t.Errorf("%+v, %v", f, err)
		}
	})
}
