// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var quiet = slog.New(slog.DiscardHandler)

// A deed makes events as a gateway records them.
type deed struct{ *rand.Rand }

var (
	deedServers  = []string{"mail", "files", "web"}
	deedTools    = []string{"read", "send", "list", ""}
	deedVerdicts = []string{"passed", "passed", "passed", "changed", "withheld", "dropped"}
	deedCodes    = []finding.Code{finding.HiddenTag, finding.RoleMarker, finding.Unapproved}
	deedPeople   = []string{"ann", "bob", "cyd \u202e"}
)

func pick[T any](d deed, list []T) T { return list[d.IntN(len(list))] }

// event is one at a time that is roughly after the one before.
func (d deed) event(at time.Time) *ledger.Event {
	e := &ledger.Event{Time: at, Kind: ledger.Message, Server: pick(d, deedServers), Tool: pick(d, deedTools), Verdict: pick(d, deedVerdicts), Method: "tools/call", Shape: "result"}
	for i := range e.ID {
		e.ID[i] = byte(d.Uint32())
	}
	if e.Verdict != "passed" {
		e.Findings = []ledger.Count{{Code: pick(d, deedCodes), N: 1 + d.Int64N(4)}}
		if d.IntN(3) == 0 {
			e.Withheld = []ledger.Count{{Code: pick(d, deedCodes), N: 1}}
		}
	}
	switch d.IntN(8) {
	case 2:
		e.Kind, e.Rule, e.Findings, e.Withheld = ledger.Classified, "classifier:"+pick(d, []string{"local", "own"}), nil, nil
		e.Verdict = pick(d, []string{"suspected", "injection", "benign", "not-judged", "skipped", "dropped"})
	case 0:
		e.Kind, e.Verdict, e.Findings, e.Withheld, e.Reason = ledger.ResultHeld, "", nil, nil, string(pick(d, deedCodes))
		e.Of[0] = byte(d.IntN(4))
	case 1:
		e.Kind, e.Verdict, e.Findings, e.Withheld = ledger.ResultDenied, "", nil, nil
		e.Of[0] = byte(d.IntN(4))
		e.Subjects = append(e.Subjects, ledger.Subject{Role: ledger.By, Digest: sha256.Sum256([]byte(pick(d, deedPeople)))})
	}
	if d.IntN(4) > 0 {
		e.Subjects = append(e.Subjects, ledger.Subject{Role: ledger.Principal, Digest: sha256.Sum256([]byte(pick(d, deedPeople)))})
	}
	e.Subjects = append(e.Subjects, ledger.Subject{Role: ledger.Received, Digest: deedDigest(d.IntN(5))})
	return e
}

func deedDigest(n int) ledger.Digest { return sha256.Sum256(fmt.Append(nil, "answer", n)) }

// fill adds n events to a log, from day on.
func (d deed) fill(t testing.TB, l *storage.Ledger, keys *sequence.Keyring, n int) {
	t.Helper()
	var batch [][]byte
	at := day
	for i := range n {
		at = at.Add(time.Duration(d.IntN(int(20*time.Minute))) - 4*time.Minute)
		batch = append(batch, seal(t, d.event(at.Add(time.Duration(d.IntN(1000))))))
		if len(batch) == 200 || i == n-1 {
			add(t, l, batch...)
			batch = nil
		}
	}
	flush(t, sequencer(l, keys))
}

// everything are the rows of the log, the newest first.
func everything(t testing.TB, l *storage.Ledger) (rows []index.Row) {
	t.Helper()
	for {
		entries, err := l.Span(ctx, int64(len(rows)), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			break
		}
		for i := range entries {
			rows = append(rows, index.RowOfEntry(&entries[i]))
		}
	}
	slices.SortFunc(rows, func(a, b index.Row) int {
		return -cmp.Or(cmp.Compare(index.Micros(a.Time), index.Micros(b.Time)), cmp.Compare(a.Index, b.Index))
	})
	return rows
}

// filter is one that selects something more often than not.
func (d deed) filter() index.Filter {
	var f index.Filter
	some := func(n int) bool { return d.IntN(n) == 0 }
	when := func() time.Time {
		at := day.Add(time.Duration(d.Int64N(int64(7 * 24 * time.Hour))))
		if some(2) {
			at = at.Truncate(30 * time.Minute)
		}
		return at
	}
	if some(2) {
		f.Since = when()
	}
	if some(3) {
		f.Until = when()
	}
	if some(3) {
		f.Servers = []string{pick(d, deedServers)}
	}
	if some(5) {
		f.Servers = append(f.Servers, pick(d, deedServers), "absent")
	}
	if some(5) {
		f.Tools = []string{pick(d, deedTools[:3])}
	}
	if some(4) {
		f.Verdicts = []string{pick(d, deedVerdicts), "dropped"}
	}
	if some(6) {
		f.Kinds = []ledger.Kind{pick(d, []ledger.Kind{ledger.Message, ledger.ResultDenied, ledger.Classified})}
	}
	if some(3) {
		f.Code = pick(d, deedCodes)
	}
	if some(5) {
		f.Principal = sha256.Sum256([]byte(pick(d, deedPeople)))
	}
	if some(9) {
		f.By = sha256.Sum256([]byte(pick(d, deedPeople)))
	}
	if some(7) {
		f.Digest = deedDigest(d.IntN(6))
	}
	if some(9) {
		f.Of[0] = byte(d.IntN(4))
	}
	return f
}

// selected are the rows that the filter selects, by looking at each.
func selected(all []index.Row, f *index.Filter) (out []index.Row) {
	for i := range all {
		if f.Match(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

// asIndexed is a row as the index returns it.
func asIndexed(r index.Row) index.Row {
	r.Time, r.Subjects = time.UnixMicro(index.Micros(r.Time)).UTC(), nil
	return r
}

// pages reads a list page by page.
func pages(t testing.TB, v *storage.View, f *index.Filter, limit int) (out []index.Row) {
	t.Helper()
	p := storage.Page{Limit: limit}
	for range 10_000 {
		list, err := v.List(f, p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list.Rows...)
		if len(list.Rows) > limit || list.Partial {
			t.Fatalf("%d rows on a page of %d, partial: %v", len(list.Rows), limit, list.Partial)
		}
		if list.Next == (storage.Cursor{}) {
			return out
		}
		if again, ok := storage.ParseCursor(list.Next.String()); !ok || again != list.Next {
			t.Fatalf("the cursor %v is read as %v", list.Next, again)
		}
		p.After = list.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

func compareIndex(t *testing.T, v *storage.View, all []index.Row, f index.Filter, d deed) {
	t.Helper()
	want := selected(all, &f)
	var wantRows []index.Row
	for _, r := range want {
		wantRows = append(wantRows, asIndexed(r))
	}
	if diff := gocmp.Diff(wantRows, pages(t, v, &f, 1+d.IntN(200))); diff != "" {
		t.Fatalf("list %q: %s", f.String(), diff)
	}
}

// TestIndexEqualsLog: what the index says of a filter is what looking at each record of the log says.
func TestIndexEqualsLog(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		d := deed{rand.New(rand.NewPCG(1, 2))}
		l := open(t, where, storage.Options{}).Ledger()
		d.fill(t, l, keyring(t), 1200)
		if err := index.NewFollower(l, quiet).Catch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		all := everything(t, l)
		err := l.View(ctx, func(v *storage.View) error {
			if v.Status.Indexed != 1201 || v.Status.Behind() != 0 || v.Status.KeyMissing {
				t.Fatalf("%+v", v.Status)
			}
			compareIndex(t, v, all, index.Filter{}, d)
			for range 400 {
				compareIndex(t, v, all, d.filter(), d)
			}
			for range 20 {
				compareIndex(t, v, all, index.Filter{ID: pick(d, all).ID}, d)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// TestIndexFollows: several processes add records and index them at the same time; each record is indexed
// once, also across a rebuild.
func TestIndexFollows(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		run, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		defer func() { stop(); wg.Wait() }()
		first := open(t, where, storage.Options{Wait: time.Minute})
		for range 2 {
			s := open(t, where, storage.Options{Wait: time.Minute})
			f := index.NewFollower(s.Ledger(), quiet)
			seq := sequence.New(sequence.Options{Store: s.Ledger(), Origin: origin, Keys: keys, Window: time.Millisecond, TTL: 300 * time.Millisecond,
				Gather: time.Millisecond, Poll: 10 * time.Millisecond, Integrated: f.Integrated})
			wg.Go(func() { f.Follow(run) })
			wg.Go(func() { seq.Run(run) })
		}
		d := deed{rand.New(rand.NewPCG(3, 4))}
		l := first.Ledger()
		for i := range 40 {
			for range 10 {
				add(t, l, seal(t, d.event(day.Add(time.Duration(i)*time.Minute))))
			}
			if i == 20 {
				if err := l.Unindex(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		waittest.Until(t, "every record is indexed", func() bool {
			st, err := index.Look(ctx, l)
			if err != nil {
				t.Fatal(err)
			}
			return st.Indexed == 401
		})
		all := everything(t, l)
		if err := l.View(ctx, func(v *storage.View) error {
			for range 40 {
				compareIndex(t, v, all, d.filter(), d)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestIndexForgets: what an erased opening has told is not in the index any more, and does not come back
// when it is made anew, nor where the opening was erased after an indexer has read it.
func TestIndexForgets(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{Index: underKey(index.NewKey([]byte("new"), []byte("old")))})
		was := open(t, where, storage.Options{Index: underKey(index.NewKey([]byte("old")))})
		l, keys := s.Ledger(), keyring(t)
		d := deed{rand.New(rand.NewPCG(5, 6))}
		d.fill(t, l, keys, 300)
		if err := index.NewFollower(was.Ledger(), quiet).Catch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		d.fill(t, l, keys, 300)
		late, err := l.Span(ctx, 301, 300)
		if err != nil {
			t.Fatal(err)
		}
		var rows []index.Row
		for i := range late {
			rows = append(rows, index.RowOfEntry(&late[i]))
		}
		check := func(name string, records int64, gone bool) {
			t.Helper()
			all := everything(t, l)
			ann, err := index.Parse("principal:ann", day)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.View(ctx, func(v *storage.View) error {
				if list, err := v.List(&ann, storage.Page{}); err != nil || (len(list.Rows) == 0) != gone || v.Status.KeyMissing || v.Status.Indexed != records {
					t.Errorf("%s: %d records of the principal, %v; %+v", name, len(list.Rows), err, v.Status)
				}
				if records == int64(len(all)) {
					for range 30 {
						compareIndex(t, v, all, d.filter(), d)
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		check("before", 301, false)
		if n, err := s.Forget(ctx, "ann", nil); err != nil || n.Openings == 0 {
			t.Fatalf("%+v, %v", n, err)
		}
		check("after", 301, true)
		if err := l.Index(ctx, 301, rows); err != nil { // read before
			t.Fatal(err)
		}
		check("indexed late", 601, true)
		if err := l.Index(ctx, 301, rows); !errors.Is(err, index.ErrMoved) {
			t.Errorf("the same rows again: %v", err)
		}
		if err := l.Unindex(ctx); err != nil {
			t.Fatal(err)
		}
		if err := index.NewFollower(l, quiet).Catch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		check("anew", 601, true)
		other := open(t, where, storage.Options{Index: underKey(index.NewKey([]byte("other")))})
		if st, err := other.Ledger().IndexStatus(ctx); err != nil || !st.KeyMissing {
			t.Errorf("with another key: %+v, %v", st, err)
		}
	})
}

// underKey is the setting of a store that always has the key.
func underKey(k *index.Key) func() *index.Key { return func() *index.Key { return k } }

// TestIndexForgetsUnderRetiredKey: a person is erased from the index too where a process has indexed under a key
// that the process which erases does not have any more; what stands in the log stays found.
func TestIndexForgetsUnderRetiredKey(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		running := open(t, where, storage.Options{Index: underKey(index.NewKey([]byte("old")))})
		now := index.NewKey([]byte("new"))
		s := open(t, where, storage.Options{Index: func() *index.Key { return now }})
		d := deed{rand.New(rand.NewPCG(7, 8))}
		d.fill(t, running.Ledger(), keyring(t), 300)
		if err := index.NewFollower(running.Ledger(), quiet).Catch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		count := func(of *storage.Store, filter string) (n int64) {
			t.Helper()
			f, err := index.Parse(filter, day)
			if err != nil {
				t.Fatal(err)
			}
			if err := of.Ledger().View(ctx, func(v *storage.View) error {
				list, err := v.List(&f, storage.Page{Limit: 1000})
				n = int64(len(list.Rows))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if count(running, "principal:ann") == 0 || count(running, "by:ann") == 0 || count(running, "principal:bob") == 0 {
			t.Fatal("the records have nobody in them")
		}
		var about [2]int
		for i := range about {
			if i == 1 {
				if n, err := s.Forget(ctx, "ann", nil); err != nil || n.Openings == 0 {
					t.Fatalf("%+v, %v", n, err)
				}
			}
			for _, code := range deedCodes {
				about[i] += int(count(running, "code:"+string(code)))
			}
			for _, row := range everything(t, running.Ledger())[:40] {
				if row.Of != (ledger.ID{}) {
					about[i] += int(count(running, "of:"+row.Of.String()))
				}
			}
		}
		if n, by := count(running, "principal:ann"), count(running, "by:ann"); n+by != 0 {
			t.Errorf("the person is still found in %d records, and as a reviewer in %d", n, by)
		}
		if about[0] != about[1] || about[0] == 0 {
			t.Errorf("%d records found by what stands in the log, %d before", about[1], about[0])
		}
		now = index.NewKey([]byte("new"), []byte("old"))
		if count(s, "principal:bob") == 0 {
			t.Error("another person is not found, and the store does not follow its key")
		}
	})
}
