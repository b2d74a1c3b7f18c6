// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// TestUpRestoredDatabase restores an older dump under a running gateway. The log stops before it shows
// another history, the gateway stays ready and says so, and the log goes on as the log that it was once
// the lost records came back from an export.
func TestUpRestoredDatabase(t *testing.T) {
	var server pgtest.Server
	t.Cleanup(server.Stop)
	where, copied := server.Database(t), t.TempDir()
	t.Setenv("REPLICA_KEY", strings.Repeat("0a", 32))
	t.Setenv(local.KeyVar, "env:REPLICA_KEY")
	g := apptest.Start(t, "version: 1\nstore: \""+where+"\"\nevidence: {mode: required}\nservers:\n  one: {url: \""+apptest.Upstream(t, "one", nil)+"\"}\n", nil)
	c := g.Must("/mcp/one", "", "2025-11-25")
	say := func(n int) {
		t.Helper()
		for range n {
			if _, err := g.Say(c, "echo", "hello"); err != nil {
				t.Fatalf("%v\n%s", err, g.Log)
			}
		}
	}
	settled := func() []byte {
		t.Helper()
		g.Eventually("the log has everything", func() bool { return strings.Contains(g.Body("/metrics"), "\npellucid_ledger_pending 0") })
		return []byte(g.Body("/log/checkpoint"))
	}
	say(3)
	settled()
	dump := server.Output(t, nil, "pg_dump", "--clean", "--if-exists", where)
	say(5)
	published := settled()
	must(t, install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		_, err := audit.Export(ctx, l, copied, false)
		return err
	}))
	server.Output(t, []byte("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();\n"+string(dump)), "psql", "-q", "-v", "ON_ERROR_STOP=1", "-1", where)
	g.Eventually("the log is stopped", func() bool { return strings.Contains(g.Body("/readyz"), `"log":"stopped"`) })
	g.Eventually("calls go on", func() bool { _, err := g.Say(c, "echo", "hello"); return err == nil })
	if status := g.Get("/readyz", ""); status != http.StatusOK {
		t.Errorf("not ready: %d", status)
	}
	g.Eventually("it is told", func() bool {
		return strings.Contains(g.Body("/metrics"), "pellucid_ledger_stopped 1") && strings.Contains(g.Log.String(), "the log is stopped")
	})
	if now := ledger.CheckpointSize([]byte(g.Body("/log/checkpoint"))); now >= ledger.CheckpointSize(published) {
		t.Errorf("the log has signed %d records again", now)
	}
	if err := install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		_, err := audit.Restore(ctx, l, copied, nil)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	g.Eventually("the log goes on", func() bool {
		return !strings.Contains(g.Body("/readyz"), `"log"`) && ledger.CheckpointSize([]byte(g.Body("/log/checkpoint"))) > ledger.CheckpointSize(published)
	})
	s, err := storage.Open(t.Context(), where, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	keys, err := s.Ledger().Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := ledger.Verify(t.Context(), s.Ledger(), ledger.VerifyOptions{Keys: keys[:1], Older: [][]byte{published}})
	if err != nil || !r.OK() {
		t.Errorf("the log is not the one that was published: %+v, %v", r, err)
	}
}
