// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/record/hold"
	"github.com/pellucid-mcp/pellucid/storage"
)

const perBatch = 25

// importForever is the child: it acknowledges each batch that Put has returned.
func importForever(where string) {
	s, err := storage.Open(ctx, where, storage.Options{})
	for n := 0; err == nil; n++ {
		var batch []ground.Record
		for i := range perBatch {
			batch = append(batch, numbered(n*perBatch+i))
		}
		if _, err = s.Put(ctx, batch, nil); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func numbered(i int) ground.Record { return record("v", fmt.Sprint("claim number ", i)) }

func TestKill(t *testing.T) {
	t.Parallel()
	engines(t, func(t *testing.T, where string) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "PELLUCID_STORE_CHILD="+where)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		acknowledged := -1
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if acknowledged, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
			if acknowledged == 12 {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		if acknowledged < 12 {
			t.Fatalf("child ended after batch %d", acknowledged)
		}
		s := open(t, where, storage.Options{})
		for i := range (acknowledged + 1) * perBatch {
			if _, err := s.ByHash(ctx, numbered(i).Hash); err != nil {
				t.Fatalf("acknowledged record %d is lost: %v", i, err)
			}
		}
		// What was under way is there whole or not at all.
		_, first := s.ByHash(ctx, numbered((acknowledged+1)*perBatch).Hash)
		_, last := s.ByHash(ctx, numbered((acknowledged+2)*perBatch-1).Hash)
		if errors.Is(first, ground.ErrNotFound) != errors.Is(last, ground.ErrNotFound) {
			t.Errorf("half a batch: %v, %v", first, last)
		}
		put(t, s, record("v", "The store still takes records."))
	})
}

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
		if _, err := tx.Exec(`UPDATE feed SET hash = hash`); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(where, "postgres") {
			if _, err := tx.Exec(`LOCK TABLE feed IN EXCLUSIVE MODE`); err != nil {
				t.Fatal(err)
			}
		}
		r, began := record("a", "Locked."), time.Now()
		if _, err := s.Put(ctx, []ground.Record{r}, nil); !errors.Is(err, ErrBusy) {
			t.Errorf("Put while locked: %v", err)
		}
		if d := time.Since(began); d > 20*time.Second {
			t.Errorf("Put waited for %v", d)
		}
		if _, err := s.Search(ctx, ground.Query{Text: "locked"}); err != nil {
			t.Errorf("Search while locked: %v", err)
		}
		time.AfterFunc(50*time.Millisecond, func() { tx.Rollback() })
		if out := put(t, patient, r); out[0].Disposition != ground.Added {
			t.Errorf("after the lock: %+v", out)
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
			if (err == nil) != step.readable || err != nil && !errors.Is(err, ErrNewerSchema) {
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
			put(t, s, record("a", step.name))
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

func TestFull(t *testing.T) {
	t.Parallel()
	where := t.TempDir() + "/full.db"
	s := open(t, where, storage.Options{Readers: 1})
	s.LimitPages(t, 80)
	big := record("a", "Big.")
	big.Original = make([]byte, 1<<20)
	if _, err := s.Put(ctx, []ground.Record{big}, nil); !errors.Is(err, ErrFull) {
		t.Fatalf("Put into a full store: %v", err)
	}
	if _, err := s.ByHash(ctx, big.Hash); !errors.Is(err, ground.ErrNotFound) {
		t.Errorf("after: %v", err)
	}
}

func TestGone(t *testing.T) {
	t.Parallel()
	where := server.Database(t)
	s := open(t, where, storage.Options{})
	put(t, s, record("a", "Here."))
	// Drops every connection, and lets nobody in again.
	admin := raw(t, server.URL(t))
	name := strings.TrimSuffix(where[strings.LastIndexByte(where, 0x2f)+1:], "?sslmode=disable")
	if _, err := admin.Exec(`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1`, name); err != nil {
		t.Fatal(err)
	}
	_, put := s.Put(ctx, []ground.Record{record("a", "Gone.")}, nil)
	_, find := s.Search(ctx, ground.Query{Text: "here"})
	for what, err := range map[string]error{"Put": put, "Search": find} {
		if !errors.Is(err, ErrUnavailable) || strings.Contains(err.Error(), name) {
			t.Errorf("%s with the database gone: %v", what, err)
		}
	}
}
