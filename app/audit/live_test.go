// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/text/finding"
)

// TestVerifyLive verifies a log while three processes record, sign, hold and decide:
// what changes meanwhile is not reported as a fault.
func TestVerifyLive(t *testing.T) {
	var server pgtest.Server
	t.Cleanup(server.Stop)
	for name, where := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "p.db") },
		"postgres": func(t *testing.T) string { return server.Database(t) },
	} {
		t.Run(name, func(t *testing.T) { verifyLive(t, newUsedLog(t, where(t))) })
	}
}

func verifyLive(t *testing.T, u *usedLog) {
	ctx, stop := context.WithCancel(context.Background())
	var writers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() { u.keepWriting(ctx, n) })
	}
	for range 12 {
		if code, out := u.verify(); code != 0 {
			t.Errorf("while others write: exit code %d: %s", code, out)
		}
	}
	stop()
	writers.Wait()
	if code, out := u.verify(); code != 0 {
		t.Errorf("in the end: exit code %d: %s", code, out)
	}
}

// keepWriting plays a process that records until ctx ends.
func (u *usedLog) keepWriting(ctx context.Context, n int) {
	dir, err := local.OpenState()
	if err != nil {
		u.t.Error(err)
		return
	}
	s, err := install.Database(u.where).Open(context.Background(), dir, true)
	if err != nil {
		u.t.Error(err)
		return
	}
	defer s.Close()
	kept := install.OpenRecords(s, dir, &rules.Evidence{Mode: rules.Required}, 20*time.Millisecond, slog.New(slog.DiscardHandler))
	defer kept.Close()
	queue := hold.New(s, hold.Options{Evidence: kept.Held})
	for i := 0; ctx.Err() == nil; i++ {
		_ = kept.Require(&ledger.Event{Kind: ledger.Message, Server: "live", Verdict: "passed"}) // a busy store may refuse
		id := fmt.Sprintf("%016x%016x", n+100, i)
		if queue.Hold(ctx, hold.Item{ID: id, Server: fmt.Sprint("s", i), Rule: "finding", Code: finding.HiddenTag, Call: hold.Digest{1}, Body: []byte(`{"content":[]}`)}) == nil && i%2 == 0 {
			_ = queue.Deny(ctx, id, "ann")
		}
	}
}

// TestVerifyBegun: Verify reports that there is no log, not a broken one, where the first process
// ended before it wrote a record.
func TestVerifyBegun(t *testing.T) {
	t.Setenv("PELLUCID_STATE", t.TempDir())
	dir, err := local.OpenState()
	must(t, err)
	s, err := install.Database(filepath.Join(t.TempDir(), "p.db")).Open(t.Context(), dir, true)
	must(t, err)
	defer s.Close()
	l := s.Ledger()
	must(t, l.Begin(t.Context(), "log.example/begun", "signer"))
	head, err := l.Head(t.Context())
	must(t, err)
	_, err = l.Claim(t.Context(), fmt.Sprintf("%032x", 1), head)
	must(t, err)
	if _, _, err := Verify(t.Context(), l, dir, Options{}); !errors.Is(err, install.ErrNoLog) {
		t.Errorf("%v, want that there is no log", err)
	}
}
