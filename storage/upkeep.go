// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pellucid-mcp/pellucid/platform/privacy"
)

// ErrPostgres is that of Backup for a Postgres store, which has tools of its own.
var ErrPostgres = errors.New("store: back up Postgres by its own means, such as pg_dump --format=custom")

// A Schema says how far a store has been migrated, and how far this release would.
type Schema struct {
	Current, Known int64
	// Readable: the schema is newer, and this release can work with it.
	Readable bool
	// Earlier: the schema did not begin with that of this release.
	Earlier bool
}

// IsPostgres reports whether where is a URL and not the path of a file.
func IsPostgres(where string) bool {
	return strings.HasPrefix(where, "postgres://") || strings.HasPrefix(where, "postgresql://")
}

// Inspect reads the schema's version of the store at where and changes nothing. The
// error is one of this package, or fs.ErrNotExist for a file that is not there.
func Inspect(ctx context.Context, where string) (Schema, error) {
	dir, open := "sqlite", openReadOnly
	if IsPostgres(where) {
		dir, open = "postgres", func(where string) (*sql.DB, error) { return sql.Open("pgx", where) }
	}
	known, err := lastMigration(dir)
	if err != nil {
		return Schema{}, fmt.Errorf("store: migrations: %w", err)
	}
	db, err := open(where)
	if err != nil {
		return Schema{}, inspectError(err)
	}
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return Schema{}, inspectError(err)
	}
	table := `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'goose_db_version'`
	if dir == "postgres" {
		table = `SELECT count(*) FROM pg_catalog.pg_tables WHERE tablename = 'goose_db_version' AND schemaname = ANY (current_schemas(false))`
	}
	s, n := Schema{Known: known}, 0
	if err := db.QueryRowContext(ctx, table).Scan(&n); err != nil || n == 0 {
		return s, inspectError(err)
	}
	err = db.QueryRowContext(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&s.Current)
	if err == nil && s.Current > 0 {
		if err = checkBaseline(ctx, db); errors.Is(err, ErrEarlier) {
			s.Earlier = true
			return s, nil
		}
	}
	if err == nil && s.Current > s.Known {
		s.Readable, err = readable(ctx, db, s.Known)
	}
	return s, inspectError(err)
}

// inspectError keeps the cause, which may repeat a URL with a password, to itself.
func inspectError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("store: inspect: %w", fs.ErrNotExist)
	}
	return &failure{what: "inspect", sentinel: ErrUnavailable, cause: err}
}

// SchemaVersion returns the schema's version in a store that this release has opened. It is the
// same for both engines.
func SchemaVersion() (int64, error) { return lastMigration("sqlite") }

// lastMigration is the number of the newest migration for an engine.
func lastMigration(dir string) (int64, error) {
	files, err := fs.Glob(migrations, "migrations/"+dir+"/*.sql")
	if err != nil {
		return 0, err
	}
	last := int64(0)
	for _, f := range files {
		number, _, _ := strings.Cut(filepath.Base(f), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return 0, err
		}
		last = max(last, n)
	}
	return last, nil
}

func openReadOnly(path string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	name := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	return sql.Open("sqlite", name+"?mode=ro&_pragma=busy_timeout(5000)")
}

// Backup writes what the SQLite store at where holds at this moment into a new file
// for its owner alone, while others go on to write. The file is there whole, or not
// at all; one that exists already is an error.
func Backup(ctx context.Context, where, into string) (err error) {
	if IsPostgres(where) {
		return ErrPostgres
	}
	if _, err := os.Lstat(into); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: back up: %q: %w", into, fs.ErrExist)
	}
	db, err := openReadOnly(where)
	if err != nil {
		return inspectError(err)
	}
	defer db.Close()
	part := into + ".partial"
	f, err := privacy.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	defer func() {
		f.Close()
		os.Remove(part) // gone already where all went well
	}()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, part); err != nil {
		return &failure{what: "back up", sentinel: ErrUnavailable, cause: err}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	if err := errors.Join(f.Close(), os.Rename(part, into)); err != nil {
		return fmt.Errorf("store: back up: %w", err)
	}
	return nil
}
