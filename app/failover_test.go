// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/app/audit"
	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/storage"
)

// startPair starts a primary and a standby for one test.
func startPair(t *testing.T) *pgtest.Pair {
	t.Helper()
	programtest.Need(t)
	p, err := pgtest.StartPair()
	if errors.Is(err, pgtest.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// must is what a test does where it cannot go on without it.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestFailoverStale: a standby takes over that does not have the last records, while clients call. The log stops at every
// replica before it shows another history, the replicas say so and stay ready, and either way on leads to a log that goes on.
func TestFailoverStale(t *testing.T) {
	for _, tt := range []struct {
		name string
		out  func(t *testing.T, where, export string, start func() *apptest.Gateway, replicas []*apptest.Gateway) *apptest.Gateway
		same bool // the log is the one that was published
	}{
		{"restore", wayRestore, true},
		{"resume", wayResume, false}, // only where no copy has the lost records
	} {
		t.Run(tt.name, func(t *testing.T) {
			pair, copied := startPair(t), t.TempDir()
			where, err := pair.Database("log")
			must(t, err)
			config := "evidence: {mode: required, standby: go-on}\n" +
				"http: {rate: 0}\nservers: {one: {url: \"" + apptest.Upstream(t, "one", nil) + "\"}}\n"
			start := func() *apptest.Gateway { return startReplica(t, where, config, sharedKey) }
			all := []*apptest.Gateway{start(), start()}
			var sessions []*mcp.ClientSession
			for i := range 6 {
				sessions = append(sessions, all[i%2].Must("/mcp/one", "", "2025-11-25"))
			}
			size := func(g *apptest.Gateway) int64 { return ledger.CheckpointSize([]byte(g.Body("/log/checkpoint"))) }
			grows := func(what string) {
				t.Helper()
				want := size(all[0]) + 50
				all[0].Eventually(what, func() bool { return size(all[0]) >= want })
			}
			end := callers(t, sessions)
			grows("the log grows")
			if _, bad := end(); len(bad) > 0 {
				t.Errorf("before anything happened: %v", bad)
			}

			end = callers(t, sessions)
			must(t, pair.Cut()) // from here on the primary is alone
			for _, g := range all {
				g.Eventually("no standby is left", func() bool { return readyz(t, g).Warnings["standby"] == "missing" })
			}
			grows("records in the primary alone")
			clear(t, end)
			all[0].Eventually("the log has everything", func() bool { return metric(t, all[0], "pellucid_ledger_pending") == "0" })
			published := []byte(all[0].Body("/log/checkpoint"))
			must(t, install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
				_, err := audit.Export(ctx, l, copied, false)
				return err
			}))

			pair.Kill()
			end = callers(t, sessions)
			must(t, pair.Promote())
			for _, g := range all {
				g.Eventually("the log is stopped", func() bool {
					return readyz(t, g).Warnings["log"] == "stopped" && metric(t, g, "pellucid_ledger_stopped") == "1"
				})
				g.Eventually("the replica is ready", func() bool { return g.Get("/readyz", "") == http.StatusOK })
				g.Eventually("the log of the process says so", func() bool { return strings.Contains(g.Log.String(), "the log is stopped") })
			}
			clear(t, end)
			answered, bad := callersFor(t, sessions, 2*time.Second) // in which a sequencer would add what waits
			if answered == 0 || len(bad) > 0 {
				t.Errorf("%d calls were answered while the log is stopped, and %q failed", answered, bad)
			}
			stopped := all[1].Body("/log/checkpoint")
			if ledger.CheckpointSize([]byte(stopped)) >= ledger.CheckpointSize(published) {
				t.Error("the standby was not behind: nothing is tested")
			}
			time.Sleep(time.Second)
			for _, g := range all {
				if g.Body("/log/checkpoint") != stopped {
					t.Error("the log has signed other records in the place of lost ones")
				}
			}
			g := tt.out(t, where, copied, start, all)
			g.Eventually("the log goes on", func() bool {
				return readyz(t, g).Warnings["log"] == "" && size(g) > ledger.CheckpointSize([]byte(stopped))
			})
			for _, g := range all {
				g.Stop()
				err := <-g.Done
				g.Done <- err
			}
			verify(t, where, published, tt.same)
		})
	}
}

// callersFor is callers for a while.
func callersFor(t *testing.T, sessions []*mcp.ClientSession, d time.Duration) (answered int64, errors []string) {
	end := callers(t, sessions)
	time.Sleep(d)
	return end()
}

// clear ends callers, and checks that calls were answered, and that each of the others has an error of the gateway.
func clear(t *testing.T, end func() (int64, []string)) {
	t.Helper()
	answered, bad := end()
	texts := map[string]int{}
	for _, text := range bad {
		if texts[text]++; !strings.Contains(text, "pellucid: ") {
			t.Errorf("a call failed without saying why: %s", text)
		}
	}
	if answered == 0 {
		t.Error("no call was answered")
	}
	t.Logf("%d calls were answered; errors: %v", answered, texts)
}

// wayRestore brings the lost records back from an export, while the replicas run.
func wayRestore(t *testing.T, where, export string, _ func() *apptest.Gateway, replicas []*apptest.Gateway) *apptest.Gateway {
	must(t, install.Database(where).WithLog(func(ctx context.Context, l *storage.Ledger, _ *state.Dir) error {
		_, err := audit.Restore(ctx, l, export, nil)
		return err
	}))
	return replicas[0]
}

// wayResume goes on without the lost records: with state directories that do not know of them.
func wayResume(t *testing.T, where, _ string, start func() *apptest.Gateway, replicas []*apptest.Gateway) *apptest.Gateway {
	for _, g := range replicas {
		g.Stop()
		err := <-g.Done
		g.Done <- err
	}
	s, err := storage.Open(t.Context(), where, storage.Options{})
	must(t, err)
	defer s.Close()
	must(t, s.Ledger().Resume(t.Context()))
	g := start()
	c := g.Must("/mcp/one", "", "2025-11-25")
	_, err = g.Say(c, "echo", "hello")
	must(t, err)
	return g
}

// verify reads the whole log, and compares it with an older checkpoint.
func verify(t *testing.T, where string, older []byte, same bool) {
	t.Helper()
	s, err := storage.Open(t.Context(), where, storage.Options{})
	must(t, err)
	defer s.Close()
	keys, err := s.Ledger().Keys(t.Context())
	must(t, err)
	r, err := ledger.Verify(t.Context(), s.Ledger(), ledger.VerifyOptions{Keys: keys[:1]})
	if err != nil || !r.OK() {
		t.Errorf("the log: %+v, %v", r, err)
	}
	r, err = ledger.Verify(t.Context(), s.Ledger(), ledger.VerifyOptions{Keys: keys[:1], Older: [][]byte{older}})
	if err != nil || r.OK() != same {
		t.Errorf("beside what was published: %+v, %v", r, err)
	}
}

// TestStandby: what evidence.standby says while no synchronous standby is left, and that a gateway does not start where a
// failover would lose acknowledged records.
func TestStandby(t *testing.T) {
	pair := startPair(t)
	servers := "http: {rate: 0}\nservers: {one: {url: \"" + apptest.Upstream(t, "one", nil) + "\"}}\n"
	t.Run("asynchronous", func(t *testing.T) {
		t.Setenv("REPLICA_KEY", sharedKey)
		t.Setenv(local.KeyVar, "env:REPLICA_KEY")
		must(t, pair.Synchronous(false))
		defer func() { must(t, pair.Synchronous(true)) }()
		where, err := pair.Database("asynchronous")
		must(t, err)
		config := func(evidence string) string {
			return "version: 1\nstore: \"" + where + "\"\nevidence: {" + evidence + "}\n" + servers
		}
		err = openRefused(t, config("mode: required"))
		var coded *exit.Error
		if !errors.As(err, &coded) || coded.Code != exit.Config || !strings.Contains(err.Error(), "synchronous_standby_names") {
			t.Errorf("records are required, and would be lost by a failover: %v", err)
		}
		must(t, openRefused(t, config("mode: best-effort")))
		g := apptest.Start(t, config("mode: required, standby: go-on"), nil)
		if !strings.Contains(g.Log.String(), "the standby of the database is asynchronous") {
			t.Errorf("nothing is said: %s", g.Log)
		}
	})
	for _, tt := range []struct {
		setting string
		goesOn  bool
		says    string
	}{
		{"wait", false, "calls whose records must be durable fail until one is"},
		{"go-on", true, "records are in the primary alone until one is"},
	} {
		t.Run(tt.setting, func(t *testing.T) {
			where, err := pair.Database(strings.ReplaceAll(tt.setting, "-", ""))
			must(t, err)
			g := startReplica(t, where, "evidence: {mode: required, standby: "+tt.setting+"}\n"+servers, sharedKey)
			c := g.Must("/mcp/one", "", "2025-11-25")
			_, err = g.Say(c, "echo", "hello")
			must(t, err)
			var first []byte
			g.Eventually("the log has begun", func() bool {
				first = []byte(g.Body("/log/checkpoint"))
				return ledger.CheckpointSize(first) > 0
			})
			must(t, pair.Cut())
			g.Eventually("no standby is left", func() bool {
				return readyz(t, g).Warnings["standby"] == "missing" && metric(t, g, "pellucid_ledger_standby_missing") == "1" && strings.Contains(g.Log.String(), tt.says)
			})
			_, err = g.Say(c, "echo", "hello")
			if (err == nil) != tt.goesOn {
				t.Errorf("a call without a standby: %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "pellucid: ") {
				t.Errorf("a call failed without saying why: %v", err)
			}
			must(t, pair.Mend())
			g.Eventually("the standby is back", func() bool {
				return readyz(t, g).Warnings["standby"] == "" && metric(t, g, "pellucid_ledger_standby_missing") == "0"
			})
			g.Eventually("calls go on", func() bool { _, err := g.Say(c, "echo", "hello"); return err == nil })
			verify(t, where, first, true)
		})
	}
}
