// SPDX-License-Identifier: Apache-2.0

package standing_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/record/standing"
	"github.com/pellucid-mcp/pellucid/record/trust"
	"github.com/pellucid-mcp/pellucid/storage"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

var (
	ctx   = context.Background()
	quiet = slog.New(slog.DiscardHandler)
	epoch = time.Unix(1_700_000_000, 0)
)

// A world is a store with its log.
type world struct {
	t    *testing.T
	path string
	keys *sequence.Keyring
	*storage.Store
}

func newWorld(t *testing.T) *world {
	dir, err := state.OpenAt(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, path: filepath.Join(dir.Path(), "pellucid.db"), keys: &sequence.Keyring{Dir: dir}}
	w.Store = w.open()
	return w
}

func (w *world) open() *storage.Store {
	s, err := storage.Open(ctx, w.path, storage.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	return s
}

func (w *world) sequencer(s *storage.Store, told func([]sequence.Entry)) *sequence.Sequencer {
	return sequence.New(sequence.Options{Store: s.Ledger(), Origin: "log.example/standing", Keys: w.keys, Integrated: told})
}

// events are n records of several servers, some of which count.
func (w *world) events(n int) {
	kinds := []ledger.Event{
		{Kind: ledger.Message, Method: "tools/call", Shape: "result", Verdict: "passed"},
		{Kind: ledger.Message, Method: "tools/call", Shape: "result", Verdict: "changed", Findings: []ledger.Count{{Code: finding.HiddenTag, N: 1}}},
		{Kind: ledger.ResultDenied}, {Kind: ledger.ResultTaken}, {Kind: ledger.SurfaceChanged}, {Kind: ledger.ResultHeld},
	}
	var records [][]byte
	for i := range n {
		e := kinds[i%len(kinds)]
		e.Time, e.Server, e.Tool = epoch.Add(time.Duration(i)*7*time.Minute), fmt.Sprint("s", i%4), "t"
		var salt ledger.Salt
		rand.Read(e.ID[:])
		rand.Read(salt[:])
		sealed, err := e.Seal(salt)
		if err != nil {
			w.t.Fatal(err)
		}
		records = append(records, sealed.Bytes())
	}
	if err := w.Ledger().Add(ctx, records); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) follower(s *storage.Store) *standing.Follower {
	f, err := standing.Open(ctx, s.Ledger(), trust.Options{}, quiet)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// gives holds a snapshot against what an export of the log gives, replayed offline.
func (w *world) gives(what string, snapshot []byte, size int64) {
	w.t.Helper()
	out := w.t.TempDir()
	err := ledger.Export(ctx, w.Ledger(), nil, func(path string, data []byte) error {
		name := filepath.Join(out, filepath.FromSlash(path))
		os.MkdirAll(filepath.Dir(name), 0o700)
		return os.WriteFile(name, data, 0o600)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	s, err := standing.Replay(ctx, ledger.Dir(os.DirFS(out)), size, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(s.Snapshot(), snapshot) {
		w.t.Errorf("%s: not what %d records give:\n%s\nbut\n%s", what, size, snapshot, s.Snapshot())
	}
}

// TestFollow: whoever integrates, whoever only looks on and whoever comes later have
// the same scores, which are those of an export.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	run, stop := context.WithCancel(ctx)
	defer stop()
	holder, looker := w.follower(w.Store), w.follower(w.open())
	seq := w.sequencer(w.Store, holder.Integrated)
	done := make(chan struct{}, 2)
	for _, f := range []*standing.Follower{holder, looker} {
		go func() { f.Follow(run); done <- struct{}{} }()
	}
	want := int64(1) // the key
	for range 5 {
		w.events(300)
		if want += 300; seq.Flush(ctx) != nil {
			t.Fatal("not integrated")
		}
	}
	for name, f := range map[string]*standing.Follower{"holder": holder, "looker": looker} {
		waittest.Until(t, name+" has them", func() bool { return f.Size() == want })
		w.gives(name, f.Book().Snapshot(), want)
	}
	stop()
	<-done
	<-done
	late := w.follower(w.open())
	if late.Size() != want {
		t.Errorf("the snapshot stands at %d of %d", late.Size(), want)
	}
	w.gives("late", late.Book().Snapshot(), want)
}

// TestCrash: a process that dies saves nothing, and nothing is lost: the log has it.
func TestCrash(t *testing.T) {
	w := newWorld(t)
	w.events(700)
	if err := w.sequencer(w.Store, nil).Flush(ctx); err != nil {
		t.Fatal(err)
	}
	f := w.follower(w.Store)
	if f.Size() != 0 {
		t.Errorf("size %d", f.Size())
	}
	if err := f.Catch(ctx); err != nil || f.Size() != 701 {
		t.Fatalf("size %d, %v", f.Size(), err)
	}
	w.gives("caught up", f.Book().Snapshot(), 701)
}

// TestSave: a snapshot of less of the log never replaces one of more; a damaged one is
// not believed, and other options have one of their own.
func TestSave(t *testing.T) {
	w := newWorld(t)
	w.events(30)
	if err := w.sequencer(w.Store, nil).Flush(ctx); err != nil {
		t.Fatal(err)
	}
	l, name := w.Ledger(), trust.Options{}.Name()
	save := func(snapshot string, size int64) {
		t.Helper()
		if err := l.SaveScores(ctx, name, []byte(snapshot), size); err != nil {
			t.Fatal(err)
		}
	}
	save("newer", 20)
	save("older", 19)
	if got, size, err := l.LoadScores(ctx, name); err != nil || size != 20 || string(got) != "newer" {
		t.Errorf("%s at %d, %v", got, size, err)
	}
	f := w.follower(w.Store)
	if err := f.Catch(ctx); err != nil || f.Size() != 31 {
		t.Fatalf("damaged: size %d, %v", f.Size(), err)
	}
	w.gives("damaged", f.Book().Snapshot(), 31)
	if got, size, err := l.LoadScores(ctx, trust.Options{Rest: 1}.Name()); err != nil || got != nil || size != 0 {
		t.Errorf("other options: %s at %d, %v", got, size, err)
	}
}

// FuzzEnvelope: any bytes where a record should be are an error at most.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[]}`))
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if s, err := standing.Replay(ctx, one(raw), 1, nil); err != nil && s != nil {
			for range s.All(0) {
				t.Fatal("scores of what cannot be read")
			}
		}
	})
}

type one []byte

func (o one) Entries(context.Context, int64, int) ([][]byte, error) { return [][]byte{o}, nil }
