// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

func openSQLite(ctx context.Context, path string, o Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: open: %w", err)
	}
	// SQLite does not look at a context while it waits for a lock. So it waits briefly, and
	// update tries again what was refused.
	patience := func(d time.Duration) string {
		return fmt.Sprintf("&_pragma=busy_timeout(%d)&_pragma=foreign_keys(1)&_pragma=secure_delete(1)", max(1, d.Milliseconds()))
	}
	name := "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
	s := &Store{engine: sqliteEngine{}, wait: o.wait()}
	writer := name + "?_txlock=immediate" + fmt.Sprintf("&_pragma=cache_size(-%d)", o.cacheKiB()) +
		"&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(8192)&_pragma=temp_store(MEMORY)"
	if s.write, err = sql.Open("sqlite", writer+patience(o.wait()/2)); err != nil {
		return nil, fmt.Errorf("store: open: %w", err)
	}
	s.write.SetMaxOpenConns(1)
	err = s.retryMigration(ctx, func() error { return migrate(ctx, s.write, goose.DialectSQLite3, "sqlite") })
	if err != nil {
		s.write.Close()
		return nil, err
	}
	migrated := s.write
	s.write, err = sql.Open("sqlite", writer+patience(min(o.wait()/2, 50*time.Millisecond)))
	if err != nil {
		migrated.Close()
		return nil, fmt.Errorf("store: open: %w", err)
	}
	s.write.SetMaxOpenConns(1)
	if err := errors.Join(s.write.PingContext(ctx), migrated.Close()); err != nil {
		s.write.Close()
		return nil, s.failOpen(ctx, err)
	}
	s.read, err = sql.Open("sqlite", name+"?_pragma=query_only(1)&_pragma=cache_size(-8192)"+patience(o.wait()/4))
	if err != nil {
		s.write.Close()
		return nil, fmt.Errorf("store: open: %w", err)
	}
	s.read.SetMaxOpenConns(o.readers())
	s.read.SetMaxIdleConns(o.readers())
	return s, nil
}

// migrateTries is how often a migration is tried: over a little more than a second.
const migrateTries = 7

// retryMigration migrates, again if another process does so at the same time: SQLite has
// no lock for both the version and the schema, so that one of them fails, and then
// finds that it is done.
func (s *Store) retryMigration(ctx context.Context, migrate func() error) error {
	pause := backoff.Waits{First: 10 * time.Millisecond, Most: time.Second}
	for try := 1; ; try++ {
		err := migrate()
		if err == nil || unfit(err) || try == migrateTries || backoff.Sleep(ctx, pause.Next()) != nil {
			return s.failOpen(ctx, err)
		}
	}
}

// unfit reports whether err says that this release cannot work with the schema of a store.
func unfit(err error) bool {
	return errors.Is(err, ErrNewerSchema) || errors.Is(err, ErrEarlier) || errors.Is(err, ErrAttestations)
}

func (s *Store) failOpen(ctx context.Context, err error) error {
	if unfit(err) {
		return fmt.Errorf("store: open: %w", err)
	}
	return s.Fail(ctx, "open", err)
}

// A sqliteEngine is an engine for one SQLite file.
type sqliteEngine struct{}

func (sqliteEngine) rebind(query string) string { return query }

// lock does nothing: BEGIN IMMEDIATE has locked.
func (sqliteEngine) lock(context.Context, *sql.Tx) error { return nil }

func (sqliteEngine) classify(err error) (error, bool) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return nil, false
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return ErrBusy, true
	case lib.SQLITE_FULL:
		return ErrFull, false
	}
	return ErrUnavailable, false
}

func (sqliteEngine) compact(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `VACUUM`); err != nil {
		return err
	}
	var busy, pages, moved int
	if err := db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
		return err
	}
	if busy != 0 {
		return ErrBusy
	}
	return nil
}

// wipe copies the write-ahead file into the database and empties it, as far as no reader needs it.
// secure_delete has overwritten in the database what was deleted. It waits only a moment for readers,
// since no other process can write meanwhile.
func (sqliteEngine) wipe(ctx context.Context, db *sql.DB) (err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var patience, busy, pages, moved int
	if err := c.QueryRowContext(ctx, `PRAGMA busy_timeout`).Scan(&patience); err != nil {
		return err
	}
	if _, err := c.ExecContext(ctx, `PRAGMA busy_timeout = 50`); err != nil {
		return err
	}
	defer func() {
		// A connection that keeps the short time would fail writers: it is given up.
		if _, again := c.ExecContext(context.WithoutCancel(ctx), `PRAGMA busy_timeout = `+strconv.Itoa(patience)); again != nil {
			_ = c.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	return c.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved)
}

func (sqliteEngine) tells() bool { return false }

func (sqliteEngine) keeps() bool { return false }

func (sqliteEngine) arrays() bool { return false }

func (sqliteEngine) epoch() string { return "" }

func (sqliteEngine) begin() string { return "" }

func (sqliteEngine) derived() string { return "" }

func (sqliteEngine) snapshot() (*sql.TxOptions, []string) { return nil, nil }

func (sqliteEngine) among(column string, list []int64) (string, any) {
	text := append(make([]byte, 0, 8*len(list)), '[')
	for i, n := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return column + ` IN (SELECT value FROM json_each(?))`, string(append(text, ']'))
}

// longRows: the table has no rowid, so that to find a row SQLite compares whole rows, with the bodies in them.
func (sqliteEngine) longRows() bool { return true }

func (sqliteEngine) newestOfEach(condition string, most int) string {
	return `(SELECT n.at, n.idx, n.grp FROM json_each(?) AS g CROSS JOIN decisions AS n WHERE n.idx IN (SELECT d.idx FROM decisions d
		WHERE d.grp = g.value AND ` + condition + ` ORDER BY d.at DESC, d.idx DESC LIMIT ` + strconv.Itoa(most) + `))`
}
