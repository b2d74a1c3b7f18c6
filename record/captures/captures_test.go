// SPDX-License-Identifier: Apache-2.0

package captures

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/capture"
	"github.com/pellucid-mcp/pellucid/platform/keyring"
)

// A memory keeps rows, and fails or waits while it is told to.
type memory struct {
	mu    sync.Mutex
	rows  map[string]Row
	fails bool
	slow  chan struct{} // nil: it does not wait
	most  int64
}

func (m *memory) PutCaptures(ctx context.Context, rows []Row) error {
	if m.slow != nil {
		select {
		case <-m.slow:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails {
		return errors.New("full")
	}
	for _, r := range rows {
		m.rows[r.ID] = r
	}
	return nil
}

func (m *memory) GetCapture(_ context.Context, id string, now time.Time) (Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.rows[id]
	if !ok || !now.Before(r.Until) {
		return Row{}, ErrNotKept
	}
	return r, nil
}

func (m *memory) SweepCaptures(_ context.Context, _ time.Time, most int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most = most
	return nil
}

func sealer(t *testing.T, fill byte) *capture.Sealer {
	t.Helper()
	key, err := keyring.NewKey(bytes.Repeat([]byte{fill}, keyring.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.New(key)
	if err != nil {
		t.Fatal(err)
	}
	return &capture.Sealer{Keys: ring}
}

func keep(k *Keeper, id, text string) {
	if k.Room(len(text)) {
		k.Keep(Capture{ID: id, Time: time.Now(), Server: "files", Principal: "ann", Verdict: "changed", Received: NewPart([]byte(text))}, len(text))
	}
}

// TestKeeper: what is kept is sealed, is read again by its id until its time is over, and by no other key.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, by := &memory{rows: map[string]Row{}}, sealer(t, 1)
		k := New(Options{Store: m, Sealer: by, Limits: func() Limits { return Limits{For: time.Hour, Total: 5 << 20} }})
		keep(k, "a", "secret text")
		keep(k, "b", strings.Repeat("x", MaxPart+1))
		k.Close()
		if m.most != 5<<20 || len(m.rows) != 2 || bytes.Contains(m.rows["a"].Sealed, []byte("secret")) || bytes.Contains(m.rows["a"].Sealed, []byte("ann")) {
			t.Errorf("%d rows, %d", len(m.rows), m.most)
		}
		got, err := Read(t.Context(), m, by, "a", "", time.Now())
		if err != nil || got.Received.Text != "secret text" || got.Principal != "ann" || got.Arguments != nil || !got.Until.Equal(got.Time.Add(time.Hour)) {
			t.Errorf("%+v, %v", got, err)
		}
		if got, err := Read(t.Context(), m, by, "b", "", time.Now()); err != nil || got.Received.Text != "" || got.Received.Bytes != MaxPart+1 {
			t.Errorf("too long: %v", err)
		}
		m.rows["c"] = m.rows["a"] // another process has moved it
		for name, err := range map[string]error{"ended": second(Read(t.Context(), m, by, "a", "", time.Now().Add(time.Hour))),
			"moved": second(Read(t.Context(), m, by, "c", "", time.Now())), "none": second(Read(t.Context(), m, by, "d", "", time.Now())),
			"another key": second(Read(t.Context(), m, sealer(t, 2), "a", "", time.Now()))} {
			if err == nil {
				t.Errorf("%s: read", name)
			}
		}
		keep(k, "e", "after the end")
		if k.Lost() != 1 || k.waiting.Load() != 0 {
			t.Errorf("%d lost, %d bytes wait", k.Lost(), k.waiting.Load())
		}
	})
}

func second(_ *Capture, err error) error { return err }

// TestKeeperNeverWaits: a store that is slow, full or gone costs captures and no time of a call, and the room
// of what was lost is free again.
func TestKeeperNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		m := &memory{rows: map[string]Row{}, slow: make(chan struct{})}
		k := New(Options{Store: m, Sealer: sealer(t, 1), room: 10_000, Log: slog.New(slog.NewTextHandler(&log, nil))})
		began := time.Now()
		for i := range 3 * maxQueue {
			keep(k, string(rune('a'+i%26))+strings.Repeat("i", i%100), "text")
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("waited %s", took)
		}
		if k.Lost() == 0 {
			t.Error("all of it found room")
		}
		m.fails = true
		close(m.slow)
		k.Close()
		if k.waiting.Load() != 0 {
			t.Errorf("%d bytes still count as waiting", k.waiting.Load())
		}
		if strings.Count(log.String(), "captures of calls could not be kept") != 1 {
			t.Errorf("log %q", log.String())
		}
	})
}

// TestKeeperTellsOfNoRoom: what is lost because calls come faster than the store is said too.
func TestKeeperTellsOfNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		k := New(Options{Store: &memory{rows: map[string]Row{}}, Sealer: sealer(t, 1), room: 10_000, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if k.Room(10_001) {
			t.Fatal("there is room")
		}
		time.Sleep(10 * time.Minute)
		k.Close()
		if said := log.String(); strings.Count(said, "captures of calls could not be kept") != 1 || !strings.Contains(said, "lost=1") {
			t.Errorf("log %q", said)
		}
	})
}
