// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

// raw opens the database without the store.
func raw(t testing.TB, where string) *sql.DB {
	driver := "sqlite"
	if strings.HasPrefix(where, "postgres") {
		driver = "pgx"
	} else {
		where = "file:" + strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23", " ", "%20").Replace(where) + "?_txlock=immediate"
	}
	db, err := sql.Open(driver, where)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestLocked(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		s := open(t, where, storage.Options{Wait: 300 * time.Millisecond})
		patient := open(t, where, storage.Options{Wait: time.Minute})
		tx, err := raw(t, where).Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(`UPDATE schema_steps SET oldest = oldest`); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(where, "postgres") {
			if _, err := tx.Exec(`LOCK TABLE schema_steps IN EXCLUSIVE MODE`); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := addRecord(s, "locked"); !errors.Is(err, storage.ErrBusy) {
			t.Errorf("add while locked: %v", err)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("add waited for %v", d)
		}
		if n := countWaiting(t, s); n != 0 {
			t.Errorf("%d records while locked", n)
		}
		time.AfterFunc(50*time.Millisecond, func() { tx.Rollback() })
		if err := addRecord(patient, "after the lock"); err != nil || countWaiting(t, s) != 1 {
			t.Errorf("after the lock: %v", err)
		}
	})
}

// TestNewerSchema: a schema of a later release is used if each of its steps says that this
// release can work with it, and is refused otherwise.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	known, err := storage.SchemaVersion()
	if err != nil {
		t.Fatal(err)
	}
	engines(t, func(t *testing.T, where string) {
		open(t, where, storage.Options{}).Close()
		db := raw(t, where)
		for _, step := range []struct {
			name, do string
			readable bool
		}{
			{"a step that says nothing", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9001, true)`, false},
			{"a step for this release", fmt.Sprintf(`INSERT INTO schema_steps (version, oldest) VALUES (9001, %d)`, known), true},
			{"its column", `ALTER TABLE held ADD COLUMN note TEXT NOT NULL DEFAULT 'none'`, true},
			{"its table", `CREATE TABLE next (id TEXT NOT NULL PRIMARY KEY)`, true},
			{"a step for an older release", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9002, true); INSERT INTO schema_steps (version, oldest) VALUES (9002, 9)`, true},
			{"a step for a later release", fmt.Sprintf(`UPDATE schema_steps SET oldest = %d WHERE version = 9002`, known+1), false},
			{"a row without a step", `UPDATE schema_steps SET oldest = 9, version = 9003 WHERE version = 9002`, false},
		} {
			if _, err := db.Exec(step.do); err != nil {
				t.Fatal(err)
			}
			s, err := storage.Open(ctx, where, storage.Options{})
			if (err == nil) != step.readable || err != nil && !errors.Is(err, storage.ErrNewerSchema) {
				t.Errorf("%s: %v", step.name, err)
			}
			seen, err := storage.Inspect(ctx, where)
			if err != nil || seen.Readable != step.readable || seen.Current <= seen.Known {
				t.Errorf("%s: %+v, %v", step.name, seen, err)
			}
			if s == nil {
				continue
			}
			if err := hold.New(s, hold.Options{}).Hold(ctx, hold.Item{ID: hold.NewID(), Server: "s", Rule: "finding"}); err != nil {
				t.Errorf("%s: %v", step.name, err)
			}
			s.Close()
		}
	})
}

// contracts are words of a migration after which an older release may fail.
var contracts = regexp.MustCompile(`(?i)\b(DROP|RENAME|SET NOT NULL|ALTER COLUMN|ADD CONSTRAINT|CREATE UNIQUE INDEX|DELETE FROM|TRUNCATE)\b`)

// needed is a column that an older release does not fill.
var needed = regexp.MustCompile(`(?i)ADD COLUMN [^,;]*NOT NULL`)

// TestMigrationsSayWhoCanWork: each migration stores which releases can work with what it makes, the
// same for both engines, and one that an older release can work with takes nothing away.
func TestMigrationsSayWhoCanWork(t *testing.T) {
	t.Parallel()
	declared := map[string]string{}
	for _, engine := range []string{"sqlite", "postgres"} {
		files, err := filepath.Glob("migrations/" + engine + "/*.sql")
		if err != nil || len(files) == 0 {
			t.Fatalf("%v, %v", files, err)
		}
		for _, file := range files {
			digits, _, _ := strings.Cut(filepath.Base(file), "_")
			version, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			row := regexp.MustCompile(fmt.Sprintf(`INSERT INTO schema_steps \(version, oldest\) VALUES [^;]*\(%d, (\d+)\);`, version)).FindSubmatch(b)
			if row == nil {
				t.Errorf("%s does not store its row of schema_steps: CONTRIBUTING.md says how", file)
				continue
			}
			oldest := string(row[1])
			if other, ok := declared[digits]; ok && other != oldest {
				t.Errorf("%s: the engines differ: %s and %s", file, oldest, other)
			}
			declared[digits] = oldest
			if n, _ := strconv.Atoi(oldest); n > version {
				t.Errorf("%s: no release can work with it", file)
			} else if n == version {
				continue
			}
			if word := contracts.Find(b); word != nil {
				t.Errorf("%s: %s is for a later release, when no process needs what it takes away", file, word)
			}
			for _, column := range needed.FindAll(b, -1) {
				if !bytes.Contains(bytes.ToUpper(column), []byte("DEFAULT")) {
					t.Errorf("%s: %s: an older release does not fill it: give it a default", file, column)
				}
			}
		}
	}
}

// TestEarlierStore: a store from before the baseline is refused with a sentence that says what to do.
func TestEarlierStore(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		open(t, where, storage.Options{}).Close()
		for _, rows := range []string{
			`UPDATE goose_db_version SET version_id = 23 WHERE version_id > 0`,
			`INSERT INTO goose_db_version (version_id, is_applied) VALUES (100, true)`,
			`DELETE FROM goose_db_version WHERE version_id IN (23, 100); INSERT INTO goose_db_version (version_id, is_applied) VALUES (101, true); INSERT INTO schema_steps (version, oldest) VALUES (101, 1)`,
		} {
			if _, err := raw(t, where).Exec(rows); err != nil {
				t.Fatal(err)
			}
			if _, err := storage.Open(ctx, where, storage.Options{}); !errors.Is(err, storage.ErrEarlier) {
				t.Errorf("%s: Open: %v", rows, err)
			}
			if s, err := storage.Inspect(ctx, where); err != nil || !s.Earlier {
				t.Errorf("%s: Inspect: %+v, %v", rows, s, err)
			}
		}
	})
}

// TestAttestationsOfEarlierStore: a store in which an earlier build has kept attestations is refused with a sentence that says
// what to do, and nothing of it is lost; one without any loses the empty tables.
func TestAttestationsOfEarlierStore(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		open(t, where, storage.Options{}).Close()
		db := raw(t, where)
		tables := []string{"claims", "claim_domains", "postings", "tokens", "attestations", "originals", "dependencies", "events", "retractions", "feed"}
		for _, table := range tables {
			if _, err := db.Exec(`CREATE TABLE ` + table + ` (seq INTEGER)`); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := db.Exec(`DELETE FROM goose_db_version WHERE version_id = 106; DELETE FROM schema_steps WHERE version = 106; INSERT INTO feed VALUES (1)`); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Open(ctx, where, storage.Options{}); !errors.Is(err, storage.ErrAttestations) || !strings.Contains(err.Error(), "pellucid-ground import") {
			t.Errorf("with attestations: %v", err)
		}
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM feed`).Scan(&n); err != nil || n != 1 {
			t.Errorf("the attestations are gone: %d, %v", n, err)
		}
		if _, err := db.Exec(`DELETE FROM feed`); err != nil {
			t.Fatal(err)
		}
		open(t, where, storage.Options{}).Close()
		for _, table := range tables {
			if _, err := db.Exec(`SELECT * FROM ` + table); err == nil {
				t.Errorf("table %s is still there", table)
			}
		}
	})
}

func TestFull(t *testing.T) {
	t.Parallel()
	where := t.TempDir() + "/full.db"
	s := open(t, where, storage.Options{Readers: 1})
	s.LimitPages(t, 80)
	if err := addRecord(s, strings.Repeat("x", 1<<20)); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("add to a full store: %v", err)
	}
	if n := countWaiting(t, s); n != 0 {
		t.Errorf("%d records after", n)
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	s := open(t, where, storage.Options{})
	if err := addRecord(s, "here"); err != nil {
		t.Fatal(err)
	}
	// Drops every connection, and lets nobody in again.
	admin := raw(t, server.URL(t))
	name := strings.TrimSuffix(where[strings.LastIndexByte(where, 0x2f)+1:], "?sslmode=disable")
	if _, err := admin.Exec(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name); err != nil {
		t.Fatal(err)
	}
	_, count := s.Ledger().Waiting(ctx, 1)
	for what, err := range map[string]error{"add": addRecord(s, "gone"), "count": count} {
		if !errors.Is(err, storage.ErrUnavailable) || strings.Contains(err.Error(), name) {
			t.Errorf("%s with the database gone: %v", what, err)
		}
	}
}
