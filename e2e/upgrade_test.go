// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pellucid-mcp/pellucid/platform/programtest"
	"github.com/pellucid-mcp/pellucid/platform/waittest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// nextMigration is what a later release may add: a table, and a column that this release does not fill.
const nextMigration = `-- +goose Up
ALTER TABLE held ADD COLUMN note TEXT NOT NULL DEFAULT 'none';
CREATE TABLE upgrades (id TEXT NOT NULL PRIMARY KEY);
INSERT INTO schema_steps (version, oldest) VALUES (%d, %d);
`

// nextRelease builds this program with one more migration. oldest is the schema of the oldest
// release that can work with it.
func nextRelease(t *testing.T, version, oldest int64) (bin string) {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	step := filepath.Join(dir, "next.sql")
	if err := os.WriteFile(step, fmt.Appendf(nil, nextMigration, version, oldest), 0o600); err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, engine := range []string{"sqlite", "postgres"} {
		replace[filepath.Join(root, "storage", "migrations", engine, fmt.Sprintf("%04d_next.sql", version))] = step
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	bin = filepath.Join(dir, "pellucid")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin, "./cmd/pellucid")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

// TestUpgradeSideBySide: the next release migrates a store while this one serves calls, and both go on: calls
// of both are answered and recorded, and this release can be started again. A schema that says
// that this release cannot work with it is refused.
func TestUpgradeSideBySide(t *testing.T) {
	programtest.Need(t) // builds the program once more
	t.Parallel()
	known, err := storage.SchemaVersion()
	if err != nil {
		t.Fatal(err)
	}
	next := nextRelease(t, known+1, known)
	for name, store := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "p.db") },
		"postgres": func(t *testing.T) string { return databases.Database(t) },
	} {
		t.Run(name, func(t *testing.T) {
			in := newInstall(t)
			newer := &install{bin: next, state: in.state}
			where := store(t)
			server, _ := json.Marshal(helperServer(t, "plain", t.Name()))
			config := "version: 1\nstore: '" + where + "'\nhttp: {rate: 0}\nevidence: {mode: required}\nservers: {files: {command: " + string(server) + "}}\n"
			db := strings.TrimPrefix(where, "file:")
			base, old := in.serveUp(t, config)
			var work sync.WaitGroup
			var stop atomic.Bool
			var calls [2]atomic.Int64
			use := func(n int, base string) {
				client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, nil)
				session, err := client.Connect(soon(t), &mcp.StreamableClientTransport{Endpoint: base + "/mcp/files"}, nil)
				if err != nil {
					t.Errorf("release %d: %v", n, err)
					return
				}
				defer session.Close()
				for !stop.Load() {
					r, err := session.CallTool(soon(t), &mcp.CallToolParams{Name: "size", Arguments: map[string]any{"n": 10}})
					if err != nil || r.IsError {
						t.Errorf("release %d, call %d: %v, %+v", n, calls[n].Load(), err, r)
						return
					}
					calls[n].Add(1)
				}
			}
			both := func(bases ...string) {
				stop.Store(false)
				for n, base := range bases {
					if base != "" {
						work.Go(func() { use(n, base) })
					}
				}
			}
			settle := func() { // until each has answered twenty calls more
				before := [2]int64{calls[0].Load(), calls[1].Load()}
				waittest.Until(t, "calls", func() bool {
					return t.Failed() || calls[0].Load() >= before[0]+20 && calls[1].Load() >= before[1]+20
				})
				stop.Store(true)
				work.Wait()
			}
			both(base)
			nextBase, _ := newer.serveUp(t, config) // migrates under traffic
			work.Go(func() { use(1, nextBase) })
			settle()
			if calls[0].Load() == 0 || calls[1].Load() == 0 {
				t.Errorf("%d and %d calls", calls[0].Load(), calls[1].Load())
			}
			if s, err := storage.Inspect(t.Context(), db); err != nil || s.Current != known+1 || !s.Readable {
				t.Fatalf("%+v, %v", s, err)
			}
			old.Process.Signal(syscall.SIGTERM)
			old.Wait()
			base, _ = in.serveUp(t, config) // this release, on the newer schema
			both(base, nextBase)
			settle()
			for _, one := range []*install{in, newer} {
				if out, said, code := one.run(t, "ledger", "verify", "--db", db); code != 0 {
					t.Errorf("ledger verify: %d: %s%s", code, out, said)
				}
			}
		})
	}
	t.Run("incompatible", func(t *testing.T) {
		in := newInstall(t)
		db := filepath.Join(t.TempDir(), "p.db")
		if err := os.WriteFile(db, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		later := &install{bin: next, state: in.state}
		if out, said, code := later.run(t, "store", "migrate", "--db", db); code != 0 {
			t.Fatalf("%d: %s%s", code, out, said)
		}
		file, err := sql.Open("sqlite", db)
		if err == nil { // as if the migration had said so itself
			_, err = file.Exec(`UPDATE schema_steps SET oldest = version WHERE version = ?`, known+1)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			t.Fatal(err)
		}
		if out, said, code := in.run(t, "store", "migrate", "--db", db); code != 3 || !strings.Contains(said, "newer schema") {
			t.Errorf("%d: %s%s", code, out, said)
		}
	})
}
