// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// recordForever is the child: it acknowledges each record that is durable, while it
// carries the log on.
func recordForever(t testing.TB, where, keys string, n int) error {
	s, err := storage.Open(ctx, where, storage.Options{Wait: time.Minute})
	if err != nil {
		return err
	}
	defer s.Close()
	dir, err := state.OpenAt(keys)
	if err != nil {
		return err
	}
	l := s.Ledger()
	seq := sequence.New(sequence.Options{Store: l, Origin: origin, Keys: &sequence.Keyring{Dir: dir}, Window: time.Millisecond, TTL: 200 * time.Millisecond,
		Gather: time.Millisecond, Poll: 5 * time.Millisecond})
	run, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); seq.Run(run) }()
	defer func() { stop(); <-done }()
	for i := 0; n <= 0 || i < n; i++ {
		rec := sealed(t, "child")
		one, err := ledger.ReadSealed(rec)
		if err != nil {
			return err
		}
		keep := l.Add
		if i%2 == 0 {
			keep = straight(seq, l)
		}
		if err := keep(ctx, [][]byte{rec}); err != nil {
			return err
		}
		seq.Wake()
		fmt.Println(one.ID)
	}
	return nil
}

// recording starts a process that records, n times or for ever.
func recording(t *testing.T, where, keys string, n int) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PELLUCID_STORE_CHILD="+where, "PELLUCID_STORE_KEYS="+keys, fmt.Sprint("PELLUCID_STORE_RECORDS=", n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(out)
}

// settled lets a process that is not killed carry the log on, and checks that it holds
// and that everything acknowledged is in it, once.
func settled(t *testing.T, where, keys string, acknowledged []ledger.ID) {
	t.Helper()
	dir, err := state.OpenAt(keys)
	if err != nil {
		t.Fatal(err)
	}
	ring := &sequence.Keyring{Dir: dir}
	l := open(t, where, storage.Options{Wait: time.Minute}).Ledger()
	seq := sequencer(l, ring)
	waittest.Until(t, "no record waits", func() bool {
		seq.Once(ctx)
		return waiting(t, l) == 0
	})
	flush(t, seq)
	seen := map[ledger.ID]int{}
	key, err := ring.First(origin)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ledger.Verify(ctx, l, ledger.VerifyOptions{Keys: []*ledger.Key{key.Key()},
		Each: func(_ int64, _ []byte, s *ledger.Statement) ledger.Fault { seen[s.ID]++; return "" }})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK() {
		t.Errorf("the log does not hold: %v", r.Problems)
	}
	for _, id := range acknowledged {
		if seen[id] != 1 {
			t.Errorf("acknowledged record %s stands in the log %d times", id, seen[id])
		}
	}
}

func ids(t *testing.T, lines *bufio.Scanner, each func(n int)) (out []ledger.ID) {
	t.Helper()
	for lines.Scan() {
		id, err := ledger.ParseID(lines.Text())
		if err != nil {
			t.Fatalf("child says %q", lines.Text())
		}
		if out = append(out, id); each != nil {
			each(len(out))
		}
	}
	return out
}

// TestLedgerKill kills a process at random moments, time and again, on one store.
func TestLedgerKill(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := t.TempDir()
		rounds := 12
		if testing.Short() {
			rounds = 3
		}
		var all []ledger.ID
		for range rounds {
			cmd, lines := recording(t, where, keys, 0)
			after := 1 + rand.IntN(40)
			all = append(all, ids(t, lines, func(n int) {
				if n == after {
					time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, func() { cmd.Process.Kill() })
				}
			})...)
			cmd.Wait()
		}
		if len(all) < rounds {
			t.Fatalf("%d records in %d rounds", len(all), rounds)
		}
		settled(t, where, keys, all)
	})
}

// TestLedgerProcesses has twenty processes write to one store and carry its log on.
func TestLedgerProcesses(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys, processes, each := t.TempDir(), 20, 10
		if testing.Short() {
			processes = 5
		}
		var mu sync.Mutex
		var all []ledger.ID
		var running sync.WaitGroup
		for range processes {
			running.Go(func() {
				cmd, lines := recording(t, where, keys, each)
				got := ids(t, lines, nil)
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, got...)
			})
		}
		running.Wait()
		if len(all) != processes*each {
			t.Errorf("%d of %d records were acknowledged", len(all), processes*each)
		}
		settled(t, where, keys, all)
	})
}

// A faulty store fails at one of its writes, and has or has not done it.
type faulty struct {
	sequence.Store
	left    int // writes until the fault
	persist bool
}

var errFault = errors.New("fault")

func (f *faulty) strike(do func() error) error {
	f.left--
	if f.left != 0 {
		return do()
	}
	if f.persist {
		if err := do(); err != nil {
			return err
		}
	}
	return errFault
}

func (f *faulty) Add(ctx context.Context, records [][]byte) error {
	return f.strike(func() error { return f.Store.Add(ctx, records) })
}

func (f *faulty) Begin(ctx context.Context, origin, signer string) error {
	return f.strike(func() error { return f.Store.Begin(ctx, origin, signer) })
}

func (f *faulty) Claim(ctx context.Context, holder string, seen sequence.Head) (h sequence.Head, err error) {
	err = f.strike(func() (err error) { h, err = f.Store.Claim(ctx, holder, seen); return err })
	return h, err
}

func (f *faulty) Release(ctx context.Context, held sequence.Head) error {
	return f.strike(func() error { return f.Store.Release(ctx, held) })
}

func (f *faulty) Integrate(ctx context.Context, held sequence.Head, b *sequence.Batch) (h sequence.Head, err error) {
	h = held
	err = f.strike(func() (err error) { h, err = f.Store.Integrate(ctx, held, b); return err })
	return h, err
}

// TestLedgerFaults fails at every write that there is, with and without its having been
// made: what was not acknowledged is repeated, as whoever records does.
func TestLedgerFaults(t *testing.T) {
	t.Parallel()
	where := func(t *testing.T) string { return filepath.Join(t.TempDir(), "l.db") }
	for _, c := range []struct{ persist, direct bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		struck := true
		for at := 1; struck && at < 100; at++ {
			t.Run(fmt.Sprintf("persist=%v/direct=%v/%d", c.persist, c.direct, at), func(t *testing.T) {
				place, keys := where(t), keyring(t)
				f := &faulty{Store: open(t, place, storage.Options{}).Ledger(), left: at, persist: c.persist}
				seq := sequencer(f, keys)
				keep := f.Add
				if c.direct {
					keep = straight(seq, f)
				}
				var all []ledger.ID
				for range 6 {
					rec := sealed(t, "a")
					one, err := ledger.ReadSealed(rec)
					if err != nil {
						t.Fatal(err)
					}
					for keep(ctx, [][]byte{rec}) != nil {
					}
					all = append(all, one.ID)
					seq.Once(ctx)
					if len(all) == 2 {
						seq.Flush(ctx)
					}
				}
				next, err := keys.Next(origin, "")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := seq.Rotate(ctx, next); err != nil && !errors.Is(err, errFault) {
					t.Error(err)
				}
				add(t, f.Store.(*storage.Ledger), sealed(t, "b"))
				struck = f.left <= 0
				settled(t, place, keys.Dir.Path(), all)
			})
		}
	}
}

// TestLedgerFull: what does not fit is refused, and nothing that was acknowledged goes.
func TestLedgerFull(t *testing.T) {
	t.Parallel()
	where, keys := filepath.Join(t.TempDir(), "full.db"), keyring(t)
	s := open(t, where, storage.Options{Readers: 1})
	l := s.Ledger()
	seq := sequencer(l, keys)
	var all []ledger.ID
	s.LimitPages(t, 120)
	for range 2000 {
		rec := sealed(t, strings.Repeat("a", 100))
		one, _ := ledger.ReadSealed(rec)
		if err := straight(seq, l)(ctx, [][]byte{rec}); err != nil {
			break
		}
		all = append(all, one.ID)
		seq.Once(ctx) // may fail
	}
	if len(all) == 2000 {
		t.Fatal("the store never was full")
	}
	s.LimitPages(t, 1<<20)
	settled(t, where, keys.Dir.Path(), all)
}

// TestLedgerClock: a clock that jumps neither stops the log nor breaks it.
func TestLedgerClock(t *testing.T) {
	t.Parallel()
	l, keys := open(t, filepath.Join(t.TempDir(), "l.db"), storage.Options{}).Ledger(), keyring(t)
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	make := func() *sequence.Sequencer {
		return sequence.New(sequence.Options{Store: l, Origin: origin, Keys: keys, Now: clock})
	}
	first, second := make(), make()
	for i, jump := range []time.Duration{time.Hour, -48 * time.Hour, 0, 10000 * time.Hour, -time.Second, 5 * time.Second, 5 * time.Second} {
		now = now.Add(jump)
		add(t, l, sealed(t, fmt.Sprint(i)))
		for _, s := range []*sequence.Sequencer{second, first} {
			if _, err := s.Once(ctx); err != nil {
				t.Errorf("jump %d: %v", i, err)
			}
		}
	}
	for range 3 {
		now = now.Add(10 * time.Second)
		first.Once(ctx)
		second.Once(ctx)
	}
	if n := waiting(t, l); n > 0 {
		t.Errorf("%d still wait", n)
	}
	verified(t, l, keys)
}

// TestLedgerTampered: whatever is changed in the store's tables is found and named.
func TestLedgerTampered(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l, keys := open(t, where, storage.Options{}).Ledger(), keyring(t)
		for range 300 {
			add(t, l, sealed(t, "a"))
		}
		flush(t, sequencer(l, keys))
		db := raw(t, where)
		first, err := keys.First(origin)
		if err != nil {
			t.Fatal(err)
		}
		ph := "?"
		if strings.HasPrefix(where, "postgres") {
			ph = "$1"
		}
		for _, c := range []struct{ column, from string }{
			{"envelope", "ledger_leaves WHERE idx = 17"}, {"envelope", "ledger_leaves WHERE idx = 300"},
			{"hashes", "ledger_tiles WHERE level = 0 AND n = 0"}, {"hashes", "ledger_tiles WHERE level = 0 AND n = 1"},
			{"hashes", "ledger_tiles WHERE level = 1 AND n = 0"}, {"checkpoint", "ledger_head WHERE one = 1"},
			{"opening", "ledger_entries WHERE idx = 23"},
		} {
			var was []byte
			if err := db.QueryRow("SELECT " + c.column + " FROM " + c.from).Scan(&was); err != nil {
				t.Fatalf("%s: %v", c.from, err)
			}
			table, cond, _ := strings.Cut(c.from, " WHERE ")
			set := func(b []byte) {
				t.Helper()
				if _, err := db.Exec("UPDATE "+table+" SET "+c.column+" = "+ph+" WHERE "+cond, b); err != nil {
					t.Fatal(err)
				}
			}
			for range 8 {
				bad := append([]byte(nil), was...)
				bad[rand.IntN(len(bad))] ^= 1 << rand.IntN(8)
				set(bad)
				r, err := ledger.Verify(ctx, l, ledger.VerifyOptions{Keys: []*ledger.Key{first.Key()}})
				if err != nil || r.OK() {
					t.Errorf("%s of %s: a flipped bit is not found (%v): %s", c.column, c.from, err, hex.EncodeToString(bad))
				}
			}
			set(was)
		}
		verified(t, l, keys)
	})
}

// TestOpenTogether: processes that begin at once on a store that is not yet there all
// find it migrated.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	for range 5 {
		where := filepath.Join(t.TempDir(), "new.db")
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				s, err := storage.Open(ctx, where, storage.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				s.Close()
			})
		}
		all.Wait()
	}
}
