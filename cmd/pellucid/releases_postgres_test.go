// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pellucid-mcp/pellucid/platform/pgtest"
	"github.com/pellucid-mcp/pellucid/storage"
)

// databases starts once a test wants Postgres.
var databases pgtest.Server

// postgresFixture is the dump of a Postgres store with the rows of an SQLite store.
func postgresFixture(t *testing.T, file string) []byte {
	t.Helper()
	url := databases.Database(t)
	for _, where := range []string{file, url} { // both of this release's schema
		s, err := storage.Open(t.Context(), where, storage.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	from, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	tables, err := from.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name NOT IN ('goose_db_version', 'schema_steps')`)
	if err != nil {
		t.Fatal(err)
	}
	defer tables.Close()
	for tables.Next() {
		var name string
		if err := tables.Scan(&name); err != nil {
			t.Fatal(err)
		}
		copyRows(t, from, to, name)
	}
	if err := tables.Err(); err != nil {
		t.Fatal(err)
	}
	return databases.Dump(t, url)
}

func copyRows(t *testing.T, from, to *sql.DB, table string) {
	t.Helper()
	rows, err := from.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Exec("DELETE FROM " + table); err != nil { // the baseline has made a row of some
		t.Fatal(err)
	}
	var marks []string
	for i := range names {
		marks = append(marks, fmt.Sprint("$", i+1))
	}
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if b, is := v.([]byte); is && b == nil { // pgx takes it for NULL
				values[i] = []byte{}
			}
		}
		insert := fmt.Sprintf("INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)", table, strings.Join(names, ", "), strings.Join(marks, ", "))
		if _, err := to.Exec(insert, values...); err != nil {
			t.Fatalf("%s: %v", table, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// TestReleasesPostgres: the Postgres store of each release is migrated, read, verified and changed by this program.
func TestReleasesPostgres(t *testing.T) {
	for _, version := range releaseNames(t) {
		t.Run(version, func(t *testing.T) {
			dir := filepath.Join(releases, version)
			dump, err := os.ReadFile(filepath.Join(dir, "postgres.sql"))
			if errors.Is(err, fs.ErrNotExist) {
				t.Fatal("the release has no postgres.sql: CONTRIBUTING.md says how it is made")
			} else if err != nil {
				t.Fatal(err)
			}
			url := databases.Database(t)
			db, err := sql.Open("pgx", url)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := db.Conn(t.Context()) // the dump changes settings of its connection
			if err == nil {
				_, err = conn.ExecContext(context.Background(), string(dump))
			}
			if err := errors.Join(err, db.Close()); err != nil {
				t.Fatal(err)
			}
			i := newInstallation(t)
			unpack(t, filepath.Join(dir, "state.tar.gz"), i.state)
			keys, err := os.ReadFile(filepath.Join(dir, "keys.txt"))
			if err != nil {
				t.Fatal(err)
			}
			key, _, _ := strings.Cut(string(keys), "\n")
			t.Setenv("PGSSLMODE", "disable")
			i.must("", "store migrate --db "+url)
			i.must("", "ledger verify --key "+key+" --db "+url)
			whileHeld(t, "pgx", url, func() {
				list := i.must("", "quarantine list --json --db "+url)
				_, id, _ := strings.Cut(list, `"id":"`)
				if len(id) < 32 {
					t.Fatalf("quarantine list: %s", list)
				}
				i.must("", "quarantine deny --db "+url+" "+id[:32])
			})
			i.must("", "ledger verify --key "+key+" --db "+url)
			i.must("", "ledger show --json --db "+url)
		})
	}
}
