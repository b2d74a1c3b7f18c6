// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/logtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// heard are the changes that a Watch has told of.
type heard struct {
	mu   sync.Mutex
	list []storage.Changed
}

func (h *heard) add(c storage.Changed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, c)
}

func (h *heard) has(c storage.Changed) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, x := range h.list {
		if x == c {
			return true
		}
	}
	return false
}

// TestWatch: a process hears of what another one changes, and goes on after its connection was lost.
func TestWatch(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	a, b := open(t, where, storage.Options{}), open(t, where, storage.Options{})
	var h heard
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	log := &logtest.Buffer{}
	go func() { defer close(done); a.Watch(ctx, slog.New(slog.NewTextHandler(log, nil)), h.add) }()
	defer func() { stop(); <-done }()
	hears := func(c storage.Changed) {
		t.Helper()
		waittest.Until(t, string(c), func() bool { return h.has(c) })
	}
	hears(storage.AnyChanged)
	id := strings.Repeat("a", 64)
	changes := func() {
		t.Helper()
		if err := b.SavePin(ctx, "s", []byte("{}"), 0, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Blocks().Add(ctx, hold.Block{ID: id, Server: "s", Since: day, Until: day.Add(time.Hour)}, 10, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.Exceptions().Add(ctx, hold.Exception{ID: id, Server: "s", Tool: "t", Code: "x", Since: day, Until: day.Add(time.Hour)}, 10, nil); err != nil {
			t.Fatal(err)
		}
		for _, c := range []storage.Changed{storage.PinsChanged, storage.BlocksChanged, storage.ExceptionsChanged} {
			hears(c)
		}
	}
	changes()
	h.mu.Lock()
	h.list = nil
	h.mu.Unlock()
	if err := b.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	hears(storage.AnyChanged) // some may have been missed
	if err := b.DropPin(ctx, "s", nil); err != nil {
		t.Fatal(err)
	}
	hears(storage.PinsChanged)
	for _, odd := range []string{"pins x", "session", "session a", "any", "other", "session a b c", ""} {
		if err := b.Exec(ctx, `SELECT pg_notify('pellucid', '`+odd+`')`); err != nil {
			t.Fatal(err)
		}
	}
	if log.String() != "" {
		t.Errorf("logged: %s", log)
	}
}

// TestWatchPooler: behind a pooler that gives each transaction another connection no notification
// arrives. That is found out, and logged once.
func TestWatchPooler(t *testing.T) {
	t.Parallel()
	t.Run("a stand-in", func(t *testing.T) { eaten(t, pooler(t, server.Database(t))) })
	t.Run("pgbouncer", func(t *testing.T) { eaten(t, server.Pooler(t, server.Database(t))) })
}

func eaten(t *testing.T, where string) {
	s := open(t, where, storage.Options{})
	var h heard
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	log := &logtest.Buffer{}
	go func() { defer close(done); s.Watch(ctx, slog.New(slog.NewTextHandler(log, nil)), h.add) }()
	waittest.Until(t, "the log says it", func() bool { return strings.Contains(log.String(), "the database does not tell of changes") })
	stop()
	<-done
	if len(h.list) != 0 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("heard %v, logged %s", h.list, log)
	}
}

// pooler stands for a pooler in transaction mode: LISTEN succeeds, and is another connection's.
func pooler(t *testing.T, where string) string {
	t.Helper()
	u, err := url.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	to := u.Host
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				return
			}
			go func() { io.Copy(in, out); in.Close() }()
			go func() {
				defer out.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := in.Read(b)
					if err != nil {
						return
					}
					out.Write(bytes.ReplaceAll(b[:n], []byte("LISTEN pellucid"), []byte("SELECT 12345678")))
				}
			}()
		}
	}()
	u.Host = l.Addr().String()
	return u.String()
}

// TestPooler: stores of several processes read and write through pgbouncer in transaction mode.
func TestPooler(t *testing.T) {
	t.Parallel()
	where := server.Pooler(t, server.Database(t))
	var all sync.WaitGroup
	for range 3 {
		s := open(t, where, storage.Options{})
		for range 4 {
			all.Go(func() {
				for range 20 {
					if err := s.Ledger().Add(ctx, [][]byte{sealed(t, "a")}); err != nil {
						t.Error(err)
					}
					if _, err := s.Ledger().Waiting(ctx, 5); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if n, err := open(t, where, storage.Options{}).Ledger().Waiting(ctx, 1000); n != 240 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
}

// TestWatchSQLite: a file tells nothing.
func TestWatchSQLite(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir()+"/a.db", storage.Options{})
	s.Watch(ctx, slog.New(slog.DiscardHandler), func(c storage.Changed) { t.Errorf("told: %v", c) })
}
