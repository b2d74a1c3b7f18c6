// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/app/apptest"
	"github.com/pellucid-mcp/pellucid/platform/pgtest"
)

// A storeFault makes a store unusable, and says which word /readyz then has for it.
type storeFault struct {
	name, state, log string
	where            func(t *testing.T) string // of the database; "" skips
	begin            func(t *testing.T, where string)
}

func opened(t *testing.T, where string) *sql.DB {
	t.Helper()
	driver := "pgx"
	if !strings.HasPrefix(where, "postgres") { // the gateway writes at the same time
		driver, where = "sqlite", "file:"+where+"?_pragma=busy_timeout(30000)"
	}
	db, err := sql.Open(driver, where)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func executed(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func sqliteFile(t *testing.T) string { return filepath.Join(t.TempDir(), "p.db") }

// storeFaults are the ways in which a store is away. stopped is a server of its own, since
// it ends.
func storeFaults(stopped *pgtest.Server) []storeFault {
	var running pgtest.Server
	postgres := func(t *testing.T) string { t.Cleanup(running.Stop); return running.Database(t) }
	return []storeFault{
		{"sqlite locked", "locked", "holds a lock", sqliteFile, func(t *testing.T, where string) {
			executed(t, opened(t, where), "BEGIN EXCLUSIVE")
		}},
		{"sqlite without a table", "missing-table", "a table of the database is missing", sqliteFile, func(t *testing.T, where string) {
			executed(t, opened(t, where), "DROP TABLE ledger_pending")
		}},
		{"sqlite on a full disk", "full", "the disk of the database is full", smallDisk, func(t *testing.T, where string) {
			f, err := os.Create(filepath.Join(filepath.Dir(where), "filler"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for n := 64 << 10; n > 0; {
				if _, err := f.Write(make([]byte, n)); err != nil {
					n /= 2
				}
			}
		}},
		{"postgres locked", "locked", "holds a lock", postgres, func(t *testing.T, where string) {
			tx, err := opened(t, where).Begin()
			if err == nil {
				_, err = tx.Exec("LOCK TABLE ledger_pending IN ACCESS EXCLUSIVE MODE")
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { tx.Rollback() })
		}},
		{"postgres stopped", "unreachable", "the database cannot be reached", func(t *testing.T) string { return stopped.Database(t) }, func(t *testing.T, _ string) { stopped.Stop() }},
	}
}

// TestUpStoreAway: while the store is locked, full, damaged or stopped, a call is answered
// within about a second, once that is known. /readyz names the reason, and the operator's log does so, too.
// What cannot be recorded is withheld where evidence is required, and else delivered.
func TestUpStoreAway(t *testing.T) {
	for _, mode := range []string{"required", "best-effort"} {
		for _, f := range storeFaults(&pgtest.Server{}) {
			t.Run(mode+"/"+f.name, func(t *testing.T) { storeAwayFor(t, mode, f) })
		}
	}
}

func storeAwayFor(t *testing.T, mode string, f storeFault) {
	where := f.where(t)
	g := apptest.Start(t, "version: 1\nevidence: {mode: "+mode+"}\nservers:\n  one: {url: "+apptest.Upstream(t, "one", nil)+"}\n", map[string]string{"PELLUCID_DB": where})
	s := g.Must("/mcp/one", "", "2025-11-25")
	if got, err := g.Say(s, "echo", "before"); err != nil || !strings.Contains(got, "before") {
		t.Fatalf("%q, %v\n%s", got, err, g.Log)
	}
	g.Eventually("ready", func() bool { return g.Get("/readyz", "") == http.StatusOK })
	f.begin(t, where)
	fastest := time.Hour
	for i := 0; i < 3 || i < 20 && fastest > 1500*time.Millisecond; i++ { // a busy machine has slow calls as well
		began := time.Now()
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "during"}})
		fastest = min(fastest, time.Since(began))
		delivered := err == nil && strings.Contains(r.Content[0].(*mcp.TextContent).Text, "during")
		if delivered == (mode == "required") {
			t.Errorf("delivered: %v, %v", delivered, err)
		}
		if err != nil && !strings.Contains(err.Error(), "withheld: the decision about the result could not be recorded") {
			t.Errorf("the error is %v", err)
		}
	}
	if fastest > 1500*time.Millisecond { // the second, and what the machine needs beside it
		t.Errorf("a call takes %v", fastest)
	}
	g.Eventually("/readyz names the reason", func() bool { return ready(t, g, http.StatusServiceUnavailable)["store"] == f.state })
	g.Eventually("the log names the reason", func() bool { return strings.Contains(g.Log.String(), f.log) })
}

// TestUpStoreBusy: while another process keeps the store busy for two seconds, a result waits for its record, and is
// delivered then.
func TestUpStoreBusy(t *testing.T) {
	var running pgtest.Server
	t.Cleanup(running.Stop)
	for name, place := range map[string]func(*testing.T) string{"sqlite": sqliteFile, "postgres": func(t *testing.T) string { return running.Database(t) }} {
		t.Run(name, func(t *testing.T) {
			where := place(t)
			g := apptest.Start(t, "version: 1\nevidence: {mode: required}\nservers:\n  one: {url: "+apptest.Upstream(t, "one", nil)+"}\n", map[string]string{"PELLUCID_DB": where})
			s := g.Must("/mcp/one", "", "2025-11-25")
			db, lock := opened(t, where), "BEGIN IMMEDIATE"
			if name == "postgres" {
				lock = "BEGIN; LOCK TABLE ledger_pending IN ACCESS EXCLUSIVE MODE"
			}
			executed(t, db, lock)
			end := make(chan error, 1)
			time.AfterFunc(2*time.Second, func() { _, err := db.Exec("ROLLBACK"); end <- err })
			began := time.Now()
			got, err := g.Say(s, "echo", "during")
			if err != nil || !strings.Contains(got, "during") {
				t.Errorf("%q, %v\n%s", got, err, g.Log)
			}
			if d := time.Since(began); d < 1500*time.Millisecond {
				t.Errorf("the record was there after %v: nothing was tested", d)
			}
			if err := <-end; err != nil {
				t.Error(err)
			}
		})
	}
}

// ready asks /readyz, which must answer with the status; nil if it does not.
func ready(t *testing.T, g *apptest.Gateway, status int) map[string]string {
	t.Helper()
	resp, err := http.Get(g.Base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	var answer struct{ Checks map[string]string }
	if err != nil || json.Unmarshal(b, &answer) != nil {
		t.Fatalf("%s, %v", b, err)
	}
	if resp.StatusCode != status {
		return nil
	}
	return answer.Checks
}
