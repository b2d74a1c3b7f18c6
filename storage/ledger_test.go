// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// sealed makes a record of the given server.
func sealed(t testing.TB, server string) []byte {
	e := ledger.Event{Time: time.Now(), Kind: ledger.Message, Server: server, Verdict: "passed"}
	rand.Read(e.ID[:])
	return seal(t, &e)
}

// seal is called by the processes that play the others, too: they have no t.
func seal(_ testing.TB, e *ledger.Event) []byte {
	var salt ledger.Salt
	rand.Read(salt[:])
	s, err := e.Seal(salt)
	if err != nil {
		panic(err)
	}
	return s.Bytes()
}

func keyring(t testing.TB) *sequence.Keyring {
	t.Helper()
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &sequence.Keyring{Dir: dir}
}

const origin = "log.example/test"

// straight keeps records as best effort does: in the log at once, if that can be.
func straight(seq *sequence.Sequencer, s sequence.Store) func(context.Context, [][]byte) error {
	return func(ctx context.Context, records [][]byte) error {
		all := make([]ledger.Sealed, len(records))
		for i := range records {
			var err error
			if all[i], err = ledger.ReadSealed(records[i]); err != nil {
				return err
			}
		}
		if seq.Carry(ctx, all) {
			return nil
		}
		return s.Add(ctx, records)
	}
}

func sequencer(s sequence.Store, keys sequence.Keys) *sequence.Sequencer {
	return sequence.New(sequence.Options{Store: s, Origin: origin, Keys: keys, Window: time.Millisecond, TTL: 300 * time.Millisecond, Gather: time.Millisecond, Poll: 10 * time.Millisecond})
}

// verified checks the whole log and returns how many records it has.
func verified(t testing.TB, l *storage.Ledger, keys *sequence.Keyring) *ledger.Report {
	t.Helper()
	first, err := keys.First(origin)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ledger.Verify(ctx, l, ledger.VerifyOptions{Keys: []*ledger.Key{first.Key()}})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Errorf("the log does not verify: %v, %d more", r.Problems, r.More)
	}
	return r
}

func add(t testing.TB, l *storage.Ledger, records ...[]byte) {
	t.Helper()
	if err := l.Add(ctx, records); err != nil {
		t.Fatal(err)
	}
}

func waiting(t testing.TB, l *storage.Ledger) int {
	t.Helper()
	n, err := l.Waiting(ctx, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func flush(t testing.TB, s *sequence.Sequencer) {
	t.Helper()
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestLedger(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l := open(t, where, storage.Options{}).Ledger()
		if _, err := l.Checkpoint(ctx); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("checkpoint of no log: %v", err)
		}
		keys := keyring(t)
		seq := sequencer(l, keys)
		flush(t, seq)
		if _, err := l.Head(ctx); !errors.Is(err, sequence.ErrNoLog) {
			t.Errorf("a log without a record: %v", err)
		}
		for i := range 600 { // more than two tiles
			add(t, l, sealed(t, fmt.Sprint("s", i%7)))
		}
		flush(t, seq)
		many := make([][]byte, 250)
		for i := range many {
			many[i] = sealed(t, "many")
		}
		add(t, l, many...)
		flush(t, sequencer(l, keys)) // another process
		if r := verified(t, l, keys); r.Records != 1+600+250 || r.Kinds[ledger.KeyInstalled] != 1 {
			t.Errorf("%d records, %v", r.Records, r.Kinds)
		}
		if n := waiting(t, l); n != 0 {
			t.Errorf("%d still wait", n)
		}
		one, err := ledger.ReadSealed(many[17])
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Get(ctx, one.ID)
		if err != nil || !bytes.Equal(got.Opening, one.Opening) || got.Server != "many" || got.Kind != ledger.Message {
			t.Errorf("Get: %+v, %v", got, err)
		}
		if at, err := l.At(ctx, got.Index); err != nil || at.ID != one.ID {
			t.Errorf("At: %v, %v", at.ID, err)
		}
		if _, err := l.Get(ctx, ledger.ID{1}); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("Get of what is not there: %v", err)
		}
		for name, c := range map[string]struct {
			f    sequence.Filter
			want int
		}{
			"all":    {sequence.Filter{Limit: 1000}, 851},
			"server": {sequence.Filter{Server: "many", Limit: 1000}, 250},
			"kind":   {sequence.Filter{Kind: ledger.KeyInstalled}, 1},
			"future": {sequence.Filter{Since: time.Now().Add(time.Hour)}, 0},
			"past":   {sequence.Filter{Until: time.Now().Add(-time.Hour)}, 0},
			"before": {sequence.Filter{Before: 5, Limit: 1000}, 5},
			"bound":  {sequence.Filter{}, 100},
		} {
			list, err := l.List(ctx, c.f)
			if err != nil || len(list) != c.want {
				t.Errorf("%s: %d records, %v; want %d", name, len(list), err, c.want)
			}
		}
		openings, err := l.Openings(ctx, 3, 1000)
		if err != nil || len(openings) != 848 {
			t.Errorf("%d openings, %v", len(openings), err)
		}
	})
}

// TestLedgerOnce: a record that is stored twice, since nobody could say whether it was
// stored, comes into the log once; so does one that waits again after it came in.
func TestLedgerOnce(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
		seq := sequencer(l, keys)
		a, b := sealed(t, "a"), sealed(t, "b")
		add(t, l, a, b, a)
		flush(t, seq)
		add(t, l, a)
		add(t, l, sealed(t, "c"), b)
		for range 3 { // the first attempt finds out
			if _, err := seq.Once(ctx); err == nil && waiting(t, l) == 0 {
				break
			}
		}
		if r := verified(t, l, keys); r.Records != 4 {
			t.Errorf("%d records, want 4", r.Records)
		}
	})
}

// TestLedgerDirect: while a sequencer has the lease, records go into the log at once;
// one that has lost it without knowing loses nothing.
func TestLedgerDirect(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
		seq, other := sequencer(l, keys), sequencer(l, keys)
		size := func() int64 {
			h, err := l.Head(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return h.Size
		}
		keep := func(records ...[]byte) {
			t.Helper()
			if err := straight(seq, l)(ctx, records); err != nil {
				t.Fatal(err)
			}
		}
		keep(sealed(t, "a"))
		if n := waiting(t, l); n != 1 {
			t.Errorf("without the lease %d records wait", n)
		}
		if _, err := seq.Once(ctx); err != nil {
			t.Fatal(err)
		}
		again := sealed(t, "b")
		keep(again, sealed(t, "b"))
		if n, s := waiting(t, l), size(); n != 0 || s != 4 {
			t.Errorf("with the lease %d records wait, and the log has %d", n, s)
		}
		keep(again) // as after a failure of which nobody knows what it did
		flush(t, seq)
		if s := size(); s != 4 {
			t.Errorf("a record that comes twice: the log has %d", s)
		}
		next, err := keys.Next(origin, "")
		if err != nil {
			t.Fatal(err)
		}
		keep(sealed(t, "c"))
		if _, err := seq.Once(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Rotate(ctx, next); err != nil { // takes the lease
			t.Fatal(err)
		}
		keep(sealed(t, "c"), sealed(t, "c"))
		if n, s := waiting(t, l), size(); n != 2 || s != 6 {
			t.Errorf("with a lease that was lost %d records wait, and the log has %d", n, s)
		}
		flush(t, seq)
		if r := verified(t, l, keys); r.Records != 8 {
			t.Errorf("the log has %d records", r.Records)
		}
	})
}

// TestLedgerBroken: what waits and cannot be read does not keep the rest waiting, and
// is not passed over in silence.
func TestLedgerBroken(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
		flipped := sealed(t, "b")
		flipped[10] ^= 1
		add(t, l, sealed(t, "a"), []byte("no record"), flipped, sealed(t, "c"))
		flush(t, sequencer(l, keys))
		if r := verified(t, l, keys); r.Records != 4 || r.Kinds[ledger.RecordsLost] != 1 {
			t.Errorf("%d records, %v", r.Records, r.Kinds)
		}
	})
}

// TestLedgerLease: of two processes one carries the log on, the other takes over when
// that one is dead, and what the dead one still does comes to nothing.
func TestLedgerLease(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		l := open(t, where, storage.Options{}).Ledger()
		const lease = 5 * time.Second // a busy machine may stop for a while
		of := func(l *storage.Ledger) *sequence.Sequencer {
			return sequence.New(sequence.Options{Store: l, Origin: origin, Keys: keys, Window: time.Millisecond, TTL: lease, Gather: time.Millisecond, Poll: 10 * time.Millisecond})
		}
		first, second := of(l), of(open(t, where, storage.Options{}).Ledger())
		add(t, l, sealed(t, "a"))
		if _, err := first.Once(ctx); err != nil {
			t.Fatal(err)
		}
		dead, err := l.Head(ctx)
		if err != nil || dead.Lease.Holder == "" || dead.Size != 2 {
			t.Fatalf("head %+v, %v", dead, err)
		}
		add(t, l, sealed(t, "b"))
		if _, err := second.Once(ctx); err != nil {
			t.Fatal(err)
		}
		if h, _ := l.Head(ctx); h.Size != 2 {
			t.Error("the lease was not respected")
		}
		var h sequence.Head
		waittest.Until(t, "another took over", func() bool {
			if _, err := second.Once(ctx); err != nil {
				t.Fatal(err)
			}
			h, _ = l.Head(ctx)
			return h.Size != 2
		})
		if h.Size != 3 || h.Lease.Fence != dead.Lease.Fence+1 {
			t.Errorf("it took over: %+v", h)
		}
		for _, stale := range []func() error{
			func() error { _, err := l.Integrate(ctx, dead, &sequence.Batch{}); return err },
			func() error { return l.Release(ctx, dead) },
			func() error { _, err := l.Claim(ctx, "x", dead); return err },
		} {
			if err := stale(); !errors.Is(err, sequence.ErrLost) {
				t.Errorf("what the dead holder does: %v", err)
			}
		}
		add(t, l, sealed(t, "c"))
		if _, err := first.Once(ctx); err != nil { // not dead after all
			t.Fatal(err)
		}
		flush(t, second)
		if r := verified(t, l, keys); r.Records != 4 {
			t.Errorf("%d records", r.Records)
		}
	})
}

// TestLedgerRotate: the records say which key signs, from the first one on.
func TestLedgerRotate(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		l := open(t, where, storage.Options{}).Ledger()
		running, rotating := sequencer(l, keys), sequencer(l, keys)
		for i := range 3 {
			add(t, l, sealed(t, "a"))
			if _, err := running.Once(ctx); err != nil { // holds the lease
				t.Fatal(err)
			}
			next, err := keys.Next(origin, "")
			if err != nil {
				t.Fatal(err)
			}
			index, err := rotating.Rotate(ctx, next)
			if err != nil {
				t.Fatal(err)
			}
			if h, _ := l.Head(ctx); h.Signer != next.Key().ID() || h.Size != index+1 {
				t.Errorf("rotation %d: %+v", i, h)
			}
			add(t, l, sealed(t, "b"))
			for range 2 { // once to learn of it
				if _, err := running.Once(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		if r := verified(t, l, keys); r.Records != 1+3*3 || len(r.Keys) != 4 {
			t.Errorf("%d records, %d keys", r.Records, len(r.Keys))
		}
		stranger := sequencer(l, keyring(t))
		flush(t, running)
		add(t, l, sealed(t, "c"))
		if _, err := stranger.Once(ctx); !errors.Is(err, sequence.ErrNoKey) {
			t.Errorf("a process without the key: %v", err)
		}
		flush(t, running)
		verified(t, l, keys)
	})
}

// TestEvidenceWithChange: the record of a change is there with the change, or neither is.
func TestEvidenceWithChange(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{})
		l := s.Ledger()
		expect := func(what string, more int, do func() error) {
			t.Helper()
			before := waiting(t, l)
			err := do()
			if got := waiting(t, l) - before; got != more {
				t.Errorf("%s (%v): %d records, want %d", what, err, got, more)
			}
		}
		now := time.Now().UTC()
		it := hold.Item{ID: strings.Repeat("a", 32), Server: "s", State: hold.Held, Code: finding.Denied, Held: now, Until: now.Add(time.Hour), Body: []byte("x")}
		rec := sealed(t, "s")
		expect("hold", 1, func() error { return s.AddHeld(ctx, it, hold.Room{PerServer: 1, Bytes: 1 << 30}, rec) })
		expect("hold twice", 0, func() error { return s.AddHeld(ctx, it, hold.Room{PerServer: 9, Bytes: 1 << 30}, rec) })
		other := it
		other.ID = strings.Repeat("b", 32)
		expect("hold beyond the bound", 0, func() error { return s.AddHeld(ctx, other, hold.Room{PerServer: 1, Bytes: 1 << 30}, rec) })
		expect("release", 1, func() error { return s.DecideHeld(ctx, it.ID, hold.Released, "me", now, nil, rec) })
		expect("deny what is released", 0, func() error { return s.DecideHeld(ctx, it.ID, hold.Denied, "me", now, nil, rec) })
		expect("deny what is not there", 0, func() error { return s.DecideHeld(ctx, other.ID, hold.Denied, "me", now, nil, rec) })
		expire := func(err error) func() error {
			return func() error {
				_, e := s.SweepHeld(ctx, now.Add(2*time.Hour), now, func(it hold.Item) ([]byte, error) {
					if it.State != hold.Expired || it.Body != nil {
						t.Errorf("%+v", it)
					}
					return rec, err
				})
				return e
			}
		}
		expect("sweep that cannot be recorded", 0, expire(errors.New("no")))
		if got, err := s.GetHeld(ctx, it.ID, now); err != nil || got.State != hold.Released {
			t.Errorf("expired without its record: %+v, %v", got, err)
		}
		expect("sweep", 1, expire(nil))
		expect("sweep again", 0, expire(nil))
		expect("pin", 1, func() error { return s.SavePin(ctx, "s", []byte("{}"), 0, rec) })
		expect("conflict", 0, func() error { return s.SavePin(ctx, "s", []byte("{}"), 0, rec) })
		expect("pin again", 1, func() error { return s.SavePin(ctx, "s", []byte("{}"), 1, rec) })
		expect("drop", 1, func() error { return s.DropPin(ctx, "s", rec) })
		expect("without evidence", 0, func() error { return s.SavePin(ctx, "t", []byte("{}"), 0, nil) })
	})
}

// TestLedgerStored: nothing is added to a log whose store does not fit its checkpoint.
func TestLedgerStored(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		for _, statement := range []string{
			`UPDATE ledger_tiles SET hashes = (SELECT hashes FROM ledger_tiles WHERE level = 0 AND n = 1) WHERE level = 1 AND n = 0`,
			`DELETE FROM ledger_tiles WHERE level = 0 AND n = 1`,
			`UPDATE ledger_head SET size = size - 1`,
		} {
			l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
			if h, err := l.Head(ctx); err == nil && h.Size > 0 {
				for _, table := range []string{"head", "tiles", "leaves", "entries", "pending"} {
					if _, err := raw(t, where).Exec("DELETE FROM ledger_" + table); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 260 {
				add(t, l, sealed(t, "a"))
			}
			flush(t, sequencer(l, keys))
			if _, err := raw(t, where).Exec(statement); err != nil {
				t.Fatal(err)
			}
			add(t, l, sealed(t, "b"))
			if err := once(t, sequencer(l, keys), l); !errors.Is(err, sequence.ErrStored) {
				t.Errorf("%s: %v", statement, err)
			}
			if n := waiting(t, l); n != 1 {
				t.Errorf("%s: %d records wait", statement, n)
			}
		}
	})
}

// TestPendingNumbers: a number is never given twice, so that a stale list of what is
// done removes nothing that came since.
func TestPendingNumbers(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
		seen := map[int64]bool{}
		for range 3 {
			add(t, l, sealed(t, "a"), sealed(t, "b"))
			list, err := l.Pending(ctx, 10, 1<<20)
			if err != nil || len(list) != 2 {
				t.Fatalf("%d wait, %v", len(list), err)
			}
			for _, p := range list {
				if seen[p.Seq] {
					t.Errorf("number %d is given twice", p.Seq)
				}
				seen[p.Seq] = true
			}
			flush(t, sequencer(l, keys))
		}
	})
}
