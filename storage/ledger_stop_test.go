// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// seeing is a sequencer that remembers what it has seen in a directory; "": in memory.
func seeing(t testing.TB, l *storage.Ledger, keys sequence.Keys, dir string) *sequence.Sequencer {
	t.Helper()
	seen := &sequence.Seen{}
	if dir != "" {
		d, err := state.OpenAt(dir)
		if err != nil {
			t.Fatal(err)
		}
		seen.Dir = d
	}
	return sequence.New(sequence.Options{Store: l, Origin: origin, Keys: keys, Seen: seen, Window: time.Millisecond,
		TTL: 300 * time.Millisecond, Gather: time.Millisecond, Poll: 10 * time.Millisecond})
}

// once adds what waits, with the lease that may have to be waited for.
func once(t testing.TB, seq *sequence.Sequencer, l *storage.Ledger) error {
	t.Helper()
	var err error
	waittest.Until(t, "the log goes on", func() bool {
		_, err = seq.Once(ctx)
		return err != nil || waiting(t, l) == 0
	})
	return err
}

// rollBack makes the log what it was at head, as a restore of an older copy does.
func rollBack(t testing.TB, where string, head sequence.Head) {
	t.Helper()
	db := raw(t, where)
	for _, q := range []string{
		fmt.Sprintf(`DELETE FROM ledger_entries WHERE idx >= %d`, head.Size), fmt.Sprintf(`DELETE FROM ledger_leaves WHERE idx >= %d`, head.Size),
		fmt.Sprintf(`DELETE FROM ledger_chain WHERE idx >= %d`, head.Size), `DELETE FROM ledger_stop`,
		fmt.Sprintf(`UPDATE ledger_head SET size = %d`, head.Size),
		`UPDATE leases SET holder = ''`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	// The checkpoint is text: both engines take it as a parameter under another mark, so it is written in hexadecimal.
	literal := fmt.Sprintf(`x'%x'`, head.Checkpoint)
	if storage.IsPostgres(where) {
		literal = fmt.Sprintf(`'\x%x'::bytea`, head.Checkpoint)
	}
	if _, err := db.Exec(`UPDATE ledger_head SET checkpoint = ` + literal); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerLostCheckpoint: a log that lost a checkpoint which a process has seen is stopped for
// every process, whoever was to carry it on, and goes on once the database has the whole log again.
func TestLedgerLostCheckpoint(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"memory": false, "file": true} {
		t.Run(name, func(t *testing.T) {
			engines(t, func(t *testing.T, where string) {
				keys, dir := keyring(t), t.TempDir()
				l := open(t, where, storage.Options{}).Ledger()
				saw := seeing(t, l, keys, dir)
				grow := func(n int) sequence.Head {
					for range n {
						add(t, l, sealed(t, "a"))
					}
					if err := once(t, saw, l); err != nil {
						t.Fatal(err)
					}
					flush(t, saw)
					head, err := l.Head(ctx)
					if err != nil {
						t.Fatal(err)
					}
					return head
				}
				older := grow(300)
				newer := grow(7)
				copied := t.TempDir()
				if err := ledger.Export(ctx, l, nil, func(path string, data []byte) error {
					name := filepath.Join(copied, path)
					return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o600))
				}); err != nil {
					t.Fatal(err)
				}
				rollBack(t, where, older)
				if restart {
					saw = seeing(t, l, keys, dir)
				}
				other := seeing(t, l, keys, "") // has seen nothing
				add(t, l, sealed(t, "after"))
				if _, err := saw.Once(ctx); !errors.Is(err, sequence.ErrStopped) {
					t.Fatalf("the process that saw the larger log: %v", err)
				}
				if _, err := other.Once(ctx); !errors.Is(err, sequence.ErrStopped) {
					t.Errorf("another process: %v", err)
				}
				for _, s := range []*sequence.Sequencer{saw, other} {
					if f := s.Figures(); f.Stop == nil || f.Stop.Size != newer.Size || f.Stop.Reason != sequence.SeenHere {
						t.Errorf("figures: %+v", f)
					}
				}
				if _, err := other.Rotate(ctx, must(keys.Next(origin, ""))); !errors.Is(err, sequence.ErrStopped) {
					t.Errorf("a rotation signs: %v", err)
				}
				head, err := l.Head(ctx)
				if err != nil || head.Size != older.Size || head.Stop == nil || string(head.Stop.Checkpoint) != string(newer.Checkpoint) {
					t.Errorf("the store: %+v, %v", head, err)
				}
				if waiting(t, l) != 1 {
					t.Error("the record that came meanwhile is lost")
				}
				restored(t, l, keys, copied, older, newer)
			})
		})
	}
}

// restored checks that the lost records come back from a copy, and from no other copy, and that the log
// goes on as the log that it was.
func restored(t *testing.T, l *storage.Ledger, keys *sequence.Keyring, copyOf string, older, newer sequence.Head) {
	t.Helper()
	key := must(keys.First(origin)).Key()
	if _, err := l.Restore(ctx, l, []*ledger.Key{key}); !errors.Is(err, storage.ErrNothingLost) {
		t.Errorf("restored from itself: %v", err)
	}
	foreign := must(must(state.OpenAt(t.TempDir())).Key("a"))
	if _, err := l.Restore(ctx, ledger.Dir(os.DirFS(copyOf)), []*ledger.Key{must((&sequence.Keyring{Shared: [][]byte{foreign}}).First(origin)).Key()}); err == nil {
		t.Error("restored from a copy that no trusted key has signed")
	}
	n, err := l.Restore(ctx, ledger.Dir(os.DirFS(copyOf)), []*ledger.Key{key})
	if err != nil || n != newer.Size-older.Size {
		t.Fatalf("restored %d records: %v", n, err)
	}
	fresh := seeing(t, l, keys, "")
	if err := once(t, fresh, l); err != nil {
		t.Fatal(err)
	}
	flush(t, fresh)
	if r := verified(t, l, keys); r.Records != newer.Size+1 {
		t.Errorf("%d records", r.Records)
	}
}

// TestLedgerResume: to take the reason back does not help while a process knows better.
func TestLedgerResume(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		l := open(t, where, storage.Options{}).Ledger()
		saw := seeing(t, l, keys, "")
		add(t, l, sealed(t, "a"))
		if err := once(t, saw, l); err != nil {
			t.Fatal(err)
		}
		flush(t, saw)
		older := must(l.Head(ctx))
		add(t, l, sealed(t, "b"))
		if err := once(t, saw, l); err != nil {
			t.Fatal(err)
		}
		flush(t, saw)
		rollBack(t, where, older)
		add(t, l, sealed(t, "c"))
		for range 2 {
			if _, err := saw.Once(ctx); !errors.Is(err, sequence.ErrStopped) {
				t.Errorf("without the records: %v", err)
			}
			if err := l.Resume(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
}
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestLedgerForked: a log that another process has carried on from an older copy is as large as what
// was seen, and is stopped because its beginning is another one.
func TestLedgerForked(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		l := open(t, where, storage.Options{}).Ledger()
		saw, other := seeing(t, l, keys, ""), seeing(t, l, keys, "")
		add(t, l, sealed(t, "a"))
		if err := once(t, saw, l); err != nil {
			t.Fatal(err)
		}
		flush(t, saw)
		older := must(l.Head(ctx))
		add(t, l, sealed(t, "b"))
		if err := once(t, saw, l); err != nil {
			t.Fatal(err)
		}
		flush(t, saw)
		for _, more := range []int{1, 5} { // as large as what was seen, and larger
			rollBack(t, where, older)
			for range more {
				add(t, l, sealed(t, "c"))
			}
			if err := once(t, other, l); err != nil {
				t.Fatal(err)
			}
			flush(t, other)
			add(t, l, sealed(t, "d"))
			if _, err := saw.Once(ctx); !errors.Is(err, sequence.ErrStopped) {
				t.Errorf("%d records of another log: %v", more, err)
			}
			other = seeing(t, l, keys, "")
			if _, err := raw(t, where).Exec(`DELETE FROM ledger_pending`); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestLedgerObjection: what a witness has seen stops the log as well, before a process
// first adds to a copy that it does not know and later, and only where it contradicts the log.
func TestLedgerObjection(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		keys := keyring(t)
		l := open(t, where, storage.Options{}).Ledger()
		first := seeing(t, l, keys, "")
		add(t, l, sealed(t, "a"), sealed(t, "b"))
		if err := once(t, first, l); err != nil {
			t.Fatal(err)
		}
		flush(t, first)
		head := must(l.Head(ctx))
		if err := first.Object(ctx, sequence.Stop{Reason: sequence.SeenByWitness, Size: head.Size}); err != nil || must(l.Head(ctx)).Stop != nil {
			t.Fatalf("a witness that saw as much stops the log: %v", err)
		}
		asked := 0
		next := sequence.New(sequence.Options{Store: l, Origin: origin, Keys: keys, Window: time.Millisecond, Gather: time.Millisecond, Poll: 10 * time.Millisecond,
			Ask: func(_ context.Context, h sequence.Head) *sequence.Stop {
				asked++
				return &sequence.Stop{Reason: sequence.SeenByWitness, Size: h.Size + 1}
			}})
		add(t, l, sealed(t, "c"))
		if err := once(t, next, l); !errors.Is(err, sequence.ErrStopped) || asked != 1 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		if err := l.Resume(ctx); err != nil {
			t.Fatal(err)
		}
		if err := once(t, first, l); err != nil {
			t.Errorf("resumed: %v", err)
		}
		if err := first.Object(ctx, sequence.Stop{Reason: sequence.SeenByWitness, Size: 99}); !errors.Is(err, sequence.ErrStopped) {
			t.Errorf("a witness that saw more: %v", err)
		}
	})
}

// TestLedgerStandsStill: figures say for how long records wait while the log does not grow, and
// whether the key is here.
func TestLedgerStandsStill(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		l := open(t, where, storage.Options{}).Ledger()
		has := seeing(t, l, keyring(t), "")
		add(t, l, sealed(t, "a"))
		if err := once(t, has, l); err != nil {
			t.Fatal(err)
		}
		flush(t, has)
		lacks := seeing(t, l, keyring(t), "")
		if err := lacks.Ready(ctx); !errors.Is(err, sequence.ErrNoKey) {
			t.Errorf("ready without the key: %v", err)
		}
		if err := has.Ready(ctx); err != nil {
			t.Errorf("not ready with the key: %v", err)
		}
		if _, err := lacks.Once(ctx); err != nil {
			t.Fatal(err)
		}
		if f := lacks.Figures(); f.Still != 0 || f.Key {
			t.Errorf("nothing waits: %+v", f)
		}
		add(t, l, sealed(t, "b"))
		if _, err := lacks.Once(ctx); !errors.Is(err, sequence.ErrNoKey) {
			t.Errorf("without the key: %v", err)
		}
		waittest.Until(t, "it says that the log stands still", func() bool { return lacks.Figures().Still >= 20*time.Millisecond })
		if err := once(t, has, l); err != nil {
			t.Fatal(err)
		}
		if _, err := lacks.Once(ctx); err != nil {
			t.Fatal(err)
		}
		if f := lacks.Figures(); f.Still != 0 || !has.Figures().Key {
			t.Errorf("the log goes on: %+v", f)
		}
	})
}

// TestSeenFile: the largest checkpoint outlives the process, a smaller one does not replace it, and a
// file that holds something else is an error.
func TestSeenFile(t *testing.T) {
	t.Parallel()
	where, dir, keys := filepath.Join(t.TempDir(), "a.db"), t.TempDir(), keyring(t)
	l := open(t, where, storage.Options{}).Ledger()
	seq := seeing(t, l, keys, dir)
	add(t, l, sealed(t, "a"))
	if err := once(t, seq, l); err != nil {
		t.Fatal(err)
	}
	flush(t, seq)
	d := must(state.OpenAt(dir))
	got, c, err := (&sequence.Seen{Dir: d}).Largest(origin)
	if want := must(l.Checkpoint(ctx)); err != nil || string(got) != string(want) || c.Size != ledger.CheckpointSize(want) {
		t.Errorf("%q, %+v, %v", got, c, err)
	}
	if err := os.WriteFile(d.File(sequence.SeenFile(origin)), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, l, sealed(t, "b"))
	if _, err := seeing(t, l, keys, dir).Once(ctx); err == nil {
		t.Error("a damaged file is ignored")
	}
}

// lateHead answers the first question with an older head, as if the process had been stopped since.
type lateHead struct {
	*storage.Ledger
	head *sequence.Head
}

func (l *lateHead) Head(ctx context.Context) (sequence.Head, error) {
	if head := l.head; head != nil {
		l.head = nil
		return *head, nil
	}
	return l.Ledger.Head(ctx)
}

// TestLedgerSharedSeen: what another process of the same state directory has added and seen since a process read the head
// does not stop the log.
func TestLedgerSharedSeen(t *testing.T) {
	t.Parallel()
	l := open(t, filepath.Join(t.TempDir(), "a.db"), storage.Options{}).Ledger()
	keys, dir := keyring(t), t.TempDir()
	saw := seeing(t, l, keys, dir)
	grow := func() sequence.Head {
		add(t, l, sealed(t, "a"))
		if err := once(t, saw, l); err != nil {
			t.Fatal(err)
		}
		flush(t, saw)
		return must(l.Head(ctx))
	}
	older := grow()
	grow()
	add(t, l, sealed(t, "a"))
	shared := must(state.OpenAt(dir))
	late := sequence.New(sequence.Options{Store: &lateHead{l, &older}, Origin: origin, Keys: keys, Seen: &sequence.Seen{Dir: shared}, Window: time.Millisecond})
	if err := once(t, late, l); err != nil {
		t.Error(err)
	}
	if head := must(l.Head(ctx)); head.Stop != nil || head.Size <= older.Size+1 {
		t.Errorf("%+v", head)
	}
}
