// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// queued are 200 items in every state, of few servers, tools, codes, principals and texts, as the queue has them.
func queued(t *testing.T, s *storage.Store) (q *hold.Queue, all []hold.Item, at time.Time) {
	t.Helper()
	now := day
	q = hold.New(s, hold.Options{Now: func() time.Time { return now }, Keep: 100 * time.Minute})
	codes := []finding.Code{finding.RoleMarker, finding.HiddenTag, finding.HiddenBidi}
	for n := range 200 {
		now = day.Add(time.Duration(n/2) * time.Minute) // two of each time
		hidden := ""
		if n%7 == 0 {
			hidden = strings.Map(func(r rune) rune { return 0xE0000 + r }, []string{"Obey 100%", "send_it"}[n%2])
		}
		it := held(n, func(it *hold.Item) {
			it.Server, it.Tool, it.Principal = fmt.Sprint("s", n%3), fmt.Sprint("t", n%5), fmt.Sprint("p", n%4)
			it.Code, it.Rule = codes[n%3], []string{"finding", "policy:x"}[n%2]
			it.Body = fmt.Appendf(nil, `{"n":"%d%s"}`, n%11, hidden)
			it.Found = hold.Found{Findings: []hold.Finding{{Place: "n", Code: it.Code, Count: 1}, {Place: "n", Code: codes[(n/3)%3], Count: 1}}}
		})
		if err := q.Hold(ctx, it); err != nil {
			t.Fatal(err)
		}
		var err error
		switch n % 6 {
		case 1:
			err = q.Deny(ctx, it.ID, "bob")
		case 2:
			err = q.Release(ctx, it.ID, "bob")
		case 3:
			if err = q.Release(ctx, it.ID, "bob"); err == nil {
				q.Take(ctx, it.Call)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	now = day.Add(102 * time.Minute) // the first of them have expired
	for n := range 200 {
		it, err := q.Get(ctx, heldID(n))
		if err != nil {
			t.Fatal(err)
		}
		it.Body, it.Question = nil, nil
		all = append(all, it)
	}
	slices.SortFunc(all, func(a, b hold.Item) int { return cmp.Or(b.Held.Compare(a.Held), strings.Compare(b.ID, a.ID)) })
	return q, all, now
}

// fits is what a filter means.
func fits(f hold.Filter, it *hold.Item) bool {
	return (f.State == "" || f.State == it.State) && (f.Server == "" || f.Server == it.Server) && (f.Servers == nil || slices.Contains(f.Servers, it.Server)) && (f.Tool == "" || f.Tool == it.Tool) &&
		(f.Code == "" || f.Code == it.Code) && (f.Rule == "" || f.Rule == it.Rule) && (f.Principal == "" || f.Principal == it.Principal) &&
		(f.Digest == hold.Digest{} || f.Digest == it.Digest) && (f.Since.IsZero() || !it.Held.Before(f.Since)) && (f.AsOf.IsZero() || !it.Held.After(f.AsOf)) &&
		(f.Found == "" || slices.ContainsFunc(it.Found.Findings, func(x hold.Finding) bool { return x.Code == f.Found })) &&
		(f.Text == "" || strings.Contains(hold.LowerASCII(it.Hidden), hold.LowerASCII(f.Text)))
}

// heldFilters are filters of every kind and of many kinds together.
func heldFilters() (out []hold.Filter) {
	digest := hold.Digest(sha256.Sum256([]byte(`{"n":"3"}`)))
	for _, state := range []hold.State{"", hold.Held, hold.Released, hold.Taken, hold.Denied, hold.Expired} {
		for _, f := range []hold.Filter{{}, {Server: "s1"}, {Tool: "t2"}, {Server: "s1", Tool: "t2"}, {Code: finding.HiddenTag}, {Code: finding.HiddenTag, Server: "s2"},
			{Rule: "finding"}, {Principal: "p3"}, {Principal: "p3", Rule: "policy:x", Tool: "t0"}, {Digest: digest}, {Digest: digest, Principal: "p1"},
			{Found: finding.HiddenBidi}, {Found: finding.HiddenTag, Code: finding.HiddenBidi}, {Text: "obey"}, {Text: "OBEY 100%"}, {Text: "y 1_0"}, {Text: "send_", Server: "s1"}, {Text: "nowhere"},
			{Since: day.Add(40 * time.Minute)}, {AsOf: day.Add(40 * time.Minute)}, {Since: day.Add(20 * time.Minute), AsOf: day.Add(70 * time.Minute), Server: "s0", Found: finding.RoleMarker},
			{Server: "none"}, {Servers: []string{"s0", "s2"}}, {Servers: []string{}}, {Servers: []string{"s0"}, Code: finding.HiddenTag}} {
			for _, f.Oldest = range []bool{false, true} {
				f.State = state
				out = append(out, f)
			}
		}
	}
	return out
}

// TestHeldQueries: every filter, in both orders and by pages of any size, gives what it means: nothing else,
// nothing twice, nothing left out.
func TestHeldQueries(t *testing.T) {
	engines(t, func(t *testing.T, where string) {
		storage.SetWindow(t, 7)
		q, all, now := queued(t, open(t, where, storage.Options{}))
		for i, f := range heldFilters() {
			if testing.Short() && i%7 != 0 { // the race detector makes SQLite ten times as slow, and has nothing to find here
				continue
			}
			want, texts, people := []string{}, map[hold.Digest]bool{}, map[string]bool{}
			for i := range all {
				if it := &all[i]; fits(f, it) {
					want = append(want, it.ID)
					texts[it.Digest], people[it.Principal] = true, true
				}
			}
			if f.Oldest {
				slices.Reverse(want)
			}
			got, looks := []string{}, 0
			for f.Limit, f.After = 1+len(want)/3, ""; ; looks++ {
				p, err := q.Page(ctx, f)
				if err != nil || len(p.Items) > f.Limit || looks > 500 {
					t.Fatalf("%+v: %d items, %d pages, %v", f, len(p.Items), looks, err)
				}
				for _, it := range p.Items {
					if it.Body != nil || it.Question != nil {
						t.Error("a list holds bodies")
					}
					got = append(got, it.ID)
				}
				if f.After = p.Next; p.Next == "" {
					break
				}
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Fatalf("%+v: %s", f, diff)
			}
			f.Limit, f.After = 0, ""
			if items, err := q.List(ctx, f); err != nil || len(items) != min(len(want), 100) {
				t.Errorf("%+v: a list of %d, want %d, %v", f, len(items), len(want), err)
			}
			testGroups(t, q, all, f)
			s, err := q.Select(ctx, &f)
			if err != nil || s.N != len(want) || s.Digests != len(texts) || s.Principals != len(people) || f.AsOf.IsZero() || f.AsOf.After(now) {
				t.Errorf("%+v: selection %+v of %d, %v", f, s, len(want), err)
			}
		}
		for _, bad := range []hold.Filter{{State: "gone"}, {State: "1 = 1 --"}} {
			if _, err := q.Page(ctx, bad); err == nil {
				t.Errorf("%+v: no error", bad)
			}
		}
		for _, after := range []string{"x", "~", "2026-01-01~x", heldID(9999), "' OR 1=1~"} {
			if _, err := q.Page(ctx, hold.Filter{After: after}); !errors.Is(err, hold.ErrNotFound) {
				t.Errorf("%q: %v", after, err)
			}
		}
		if _, err := q.Groups(ctx, hold.Filter{}, "id", hold.MostFirst, 0); err == nil {
			t.Error("groups by anything")
		}
	})
}

// testGroups: groups are a partition of what the filter selects, and each leads to its items.
func testGroups(t *testing.T, q *hold.Queue, all []hold.Item, f hold.Filter) {
	t.Helper()
	for i, by := range hold.Groups {
		sort := hold.GroupSorts[i%len(hold.GroupSorts)]
		sum, seen := 0, 0
		for skip := 0; ; skip += 3 {
			f.Limit = 3
			c, err := q.Groups(ctx, f, by, sort, skip)
			if err != nil || !c.Until.IsZero() {
				t.Fatalf("%+v by %s: %v, %v", f, by, err, c.Until)
			}
			for j, g := range c.Groups {
				want := g.Filter(f, by)
				n, people := 0, map[string]bool{}
				for i := range all {
					if fits(want, &all[i]) {
						n++
						people[all[i].Principal] = true
					}
				}
				if g.N != n || g.Principals != len(people) || !fits(want, &g.Last) || !g.Last.Held.Equal(g.Newest) || g.Oldest.After(g.Newest) {
					t.Fatalf("%+v by %s: %+v, want %d of %d", f, by, g, n, len(people))
				}
				if j > 0 && sort == hold.MostFirst && g.N > c.Groups[j-1].N {
					t.Errorf("by %s: %d behind %d", by, g.N, c.Groups[j-1].N)
				}
				sum += g.N
				seen++
			}
			if len(c.Groups) < 3 {
				if sum != c.N || seen != c.Total {
					t.Fatalf("%+v by %s: %d items in %d groups, said %d in %d", f, by, sum, seen, c.N, c.Total)
				}
				break
			}
		}
	}
}

// TestDecideAll: a selection is decided as of its time, an item has one record, what another reviewer has decided
// first is counted and stays as it is, and a call that was interrupted goes on.
func TestDecideAll(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now, people := day, 1
		s := open(t, where, storage.Options{})
		records, mu := map[string]int{}, sync.Mutex{}
		fail := 0
		o := hold.Options{Room: hold.Room{PerServer: 5000}, Now: func() time.Time { return now }, TwoPersons: func() bool { return people > 1 },
			Evidence: func(it hold.Item) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				if fail--; fail == 0 {
					return nil, errors.New("no key")
				}
				records[it.ID+" "+string(it.State)]++
				return nil, nil
			},
			Seal: func(body []byte) ([]byte, error) {
				if strings.Contains(string(body), "sealed") {
					return append([]byte("age-encryption.org/v1\n"), body...), nil
				}
				return nil, nil
			}}
		q := hold.New(s, o)
		const n = 450
		for i := range n {
			now = now.Add(time.Second)
			it := held(i)
			if i%100 == 7 {
				it.Body = []byte("sealed")
			}
			if err := q.Hold(ctx, it); err != nil {
				t.Fatal(err)
			}
		}
		f := hold.Filter{Server: "files", AsOf: now}
		sel, shown, err := q.Show(ctx, f, hold.Filter{Code: held(0).Code, AsOf: now}) // the filters overlap
		if err != nil || shown.N != n || sel.N != n || sel.Principals != 1 || sel.Sources != 1 || !sel.Oldest.Equal(day.Add(time.Second)) {
			t.Fatalf("%+v, %v", sel, err)
		}
		now = now.Add(time.Minute)
		later := held(n) // comes later, and is not in the selection
		if err := q.Hold(ctx, later); err != nil {
			t.Fatal(err)
		}
		for i := range 10 { // another reviewer is first
			if err := q.Deny(ctx, heldID(i*10), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		// An item that was held before, and stored after the selection was shown: nothing is decided, though as many
		// have been decided meanwhile.
		at := now
		now = day.Add(30 * time.Second)
		if err := q.Hold(ctx, held(n+1)); err != nil {
			t.Fatal(err)
		}
		now = at
		if got, err := q.DecideAll(ctx, shown, hold.Released, "bob", f); !errors.Is(err, hold.ErrChanged) || got != (hold.Decided{}) {
			t.Fatalf("not shown: %+v, %v", got, err)
		}
		if err := q.Deny(ctx, heldID(n+1), "ann"); err != nil {
			t.Fatal(err)
		}
		if got, err := q.DecideAll(ctx, shown, hold.Released, "bob", f); !errors.Is(err, hold.ErrChanged) || got != (hold.Decided{}) {
			t.Fatalf("not shown, and denied: %+v, %v", got, err)
		}
		now = now.Add(time.Second)
		if _, shown, err = q.Show(ctx, f); err != nil || shown.N != n-10 {
			t.Fatalf("%d, %v", shown.N, err)
		}
		now = now.Add(time.Second)
		for i := range 3 {
			if err := q.Deny(ctx, heldID(i*10+1), "ann"); err != nil {
				t.Fatal(err)
			}
		}
		fail = 300 // in the second transaction: the first stays
		first, err := q.DecideAll(ctx, shown, hold.Released, "bob", f)
		if err == nil || first.Done == 0 || first.Done >= 250 {
			t.Fatalf("interrupted: %+v, %v", first, err)
		}
		rest, err := q.DecideAll(ctx, shown, hold.Released, "bob", f)
		if want := (hold.Decided{Done: n - 13 - 5 - first.Done, Sealed: 5, Others: 3 + first.Done}); err != nil || rest != want {
			t.Errorf("the rest: %+v, want %+v, %v", rest, want, err)
		}
		if it, err := q.Get(ctx, heldID(10)); err != nil || it.State != hold.Denied || it.By != "ann" {
			t.Errorf("decided by another: %+v, %v", it, err)
		}
		if it, err := q.Get(ctx, later.ID); err != nil || it.State != hold.Held {
			t.Errorf("held later: %+v, %v", it, err)
		}
		if err := q.Release(ctx, heldID(10), "bob"); !errors.Is(err, hold.ErrDecided) || !strings.Contains(err.Error(), `"ann"`) {
			t.Errorf("told by whom: %v", err)
		}
		if it, _ := q.Get(ctx, heldID(2)); it.State != hold.Released || it.By != "bob" || it.Body == nil {
			t.Errorf("released: %+v", it)
		}
		if left, err := q.DecideAll(ctx, shown, hold.Denied, "bob", f); err != nil || left.Done != 5 {
			t.Errorf("sealed ones can be denied: %+v, %v", left, err)
		}
		for id, times := range records {
			if times != 1 && !strings.HasSuffix(id, " released") { // those of the transaction that was interrupted were not stored
				t.Errorf("%s: %d records", id, times)
			}
		}
		if _, err := q.DecideAll(ctx, shown, hold.Denied, "bob", hold.Filter{}); err == nil {
			t.Error("a selection without a time")
		}
	})
}

// TestTwoPersons: where a release needs two persons, one proposes it and another one confirms it, one by one and
// for a selection; each alone can deny.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		now := day
		var records []string
		q := hold.New(open(t, where, storage.Options{}), hold.Options{Now: func() time.Time { return now }, TwoPersons: func() bool { return true },
			Evidence: func(it hold.Item) ([]byte, error) {
				records = append(records, it.ID[30:]+" "+string(it.State)+" "+it.By)
				return nil, nil
			}})
		for i := range 6 {
			now = now.Add(time.Second)
			if err := q.Hold(ctx, held(i)); err != nil {
				t.Fatal(err)
			}
		}
		records = nil
		if err := q.Release(ctx, heldID(0), "ann"); err != nil {
			t.Fatal(err)
		}
		if it, err := q.Get(ctx, heldID(0)); err != nil || it.State != hold.Held || it.Proposer != "ann" || !it.Proposed.Equal(now) || it.People != 2 {
			t.Errorf("%+v, %v", it, err)
		}
		if _, ok := q.Take(ctx, held(0).Call); ok {
			t.Error("one person has released it")
		}
		for _, again := range []string{"Ann", "ANN", "ann ", "ann"} {
			records = records[:1]
			if err := q.Release(ctx, heldID(0), again); !errors.Is(err, hold.ErrSecond) {
				t.Errorf("the same person twice, as %q: %v", again, err)
			}
		}
		if err := q.Release(ctx, heldID(0), "bob"); err != nil {
			t.Error(err)
		}
		if _, ok := q.Take(ctx, held(0).Call); !ok {
			t.Error("two persons have released it")
		}
		if err := q.Release(ctx, heldID(1), "ann"); err != nil {
			t.Error(err)
		}
		if err := q.Deny(ctx, heldID(1), "ann"); err != nil {
			t.Errorf("denied by the one who has proposed: %v", err)
		}
		now = now.Add(time.Second)
		f := hold.Filter{AsOf: now}
		_, shown, err := q.Show(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		if err := q.Release(ctx, heldID(2), "bob"); err != nil {
			t.Error(err)
		}
		for _, x := range []struct {
			by   string
			want hold.Decided
		}{{"ann", hold.Decided{Done: 1, Proposed: 3}}, {"Ann", hold.Decided{Second: 3, Others: 1}}, {"bob", hold.Decided{Done: 3, Others: 1}}} {
			if got, err := q.DecideAll(ctx, shown, hold.Released, x.by, f); err != nil || got != x.want {
				t.Errorf("%s: %+v, want %+v, %v", x.by, got, x.want, err)
			}
		}
		want := []string{"00 proposed ann", "00 released bob", "01 proposed ann", "01 denied ann", "02 proposed bob",
			"02 released ann", "03 proposed ann", "04 proposed ann", "05 proposed ann", "03 released bob", "04 released bob", "05 released bob"}
		// A record of what the store then refuses is made and not stored.
		records = slices.DeleteFunc(records, func(s string) bool { return s == "00 released ann" })
		if diff := gocmp.Diff(want, records); diff != "" {
			t.Error(diff)
		}
	})
}

// TestDecideAtOnce: of many who decide one item, one wins, and each other is told by whom.
func TestDecideAtOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		q := hold.New(open(t, where, storage.Options{Wait: time.Minute}), hold.Options{Now: func() time.Time { return day }})
		if err := q.Hold(ctx, held(0)); err != nil {
			t.Fatal(err)
		}
		errs := make([]error, 8)
		all := hold.Filter{AsOf: day.Add(time.Hour)}
		_, shown, err := q.Show(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		var done sync.WaitGroup
		for i := range errs {
			done.Go(func() {
				by := fmt.Sprint("p", i)
				switch i % 3 {
				case 0:
					errs[i] = q.Deny(ctx, heldID(0), by)
				case 1:
					errs[i] = q.Release(ctx, heldID(0), by)
				default:
					d, err := q.DecideAll(ctx, shown, hold.Denied, by, all)
					if errs[i] = err; err == nil && d.Done == 0 {
						errs[i] = fmt.Errorf("%w: %d others", hold.ErrDecided, d.Others)
					}
				}
			})
		}
		done.Wait()
		it, err := q.Get(ctx, heldID(0))
		if err != nil {
			t.Fatal(err)
		}
		won := 0
		for i, err := range errs {
			var told *hold.DecidedError
			switch {
			case err == nil:
				if won++; it.By != fmt.Sprint("p", i) {
					t.Errorf("%d won, and the item says %s", i, it.By)
				}
			case !errors.Is(err, hold.ErrDecided):
				t.Errorf("%d: %v", i, err)
			case errors.As(err, &told) && told.By != it.By:
				t.Errorf("%d was told %q, and it was %q", i, told.By, it.By)
			}
		}
		if won != 1 {
			t.Errorf("%d won", won)
		}
	})
}
