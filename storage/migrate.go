// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// baseline is the number of the first migration. A schema with a lower one is that of a build before it.
const baseline = 100

// ErrEarlier means that a build before the baseline has made the store.
var ErrEarlier = errors.New("store: it is that of an earlier build: export its log with that build (pellucid ledger export), then move the store away")

// withoutAttestations is the migration that removes the tables of attestations, which a program of its own keeps.
const withoutAttestations = 106

// ErrAttestations means that an earlier build has stored attestations with everything else.
var ErrAttestations = errors.New("store: an earlier build has stored attestations in it: export them with that build (pellucid ground export) and the log (pellucid ledger export), move the store away, and import them (pellucid-ground import)")

// migrate brings the schema up to date. A schema that is newer than this binary is left as it is:
// the store is used if every step of it says that this binary can work with it, and refused otherwise.
// One from before the baseline is refused.
func migrate(ctx context.Context, db *sql.DB, dialect goose.Dialect, dir string, opts ...goose.ProviderOption) error {
	files, err := fs.Sub(migrations, "migrations/"+dir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, db, files, opts...)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err == nil && current > 0 {
		err = checkBaseline(ctx, db)
	}
	if err == nil && current >= baseline && current < withoutAttestations {
		err = checkAttestations(ctx, db)
	}
	switch {
	case err != nil:
		return err
	case current > target:
		if compatible, err := readable(ctx, db, target); err != nil || compatible {
			return err
		}
		return fmt.Errorf("%w: %d, not %d", ErrNewerSchema, current, target)
	case current == target:
		return nil
	}
	_, err = p.Up(ctx)
	return err
}

// checkBaseline returns ErrEarlier where the schema did not begin with the baseline.
func checkBaseline(ctx context.Context, db *sql.DB) error {
	var first int64
	err := db.QueryRowContext(ctx, `SELECT COALESCE(MIN(version_id), 0) FROM goose_db_version WHERE version_id > 0 AND is_applied`).Scan(&first)
	if err == nil && first != baseline {
		return ErrEarlier
	}
	return err
}

// checkAttestations returns ErrAttestations where the store holds any, or an event about one.
func checkAttestations(ctx context.Context, db *sql.DB) error {
	var entries int64
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM feed`).Scan(&entries)
	if err == nil && entries > 0 {
		return ErrAttestations
	}
	return err
}

// AddTables brings the tables that another package keeps in the store up to date. The folder dir of files has
// the migrations of each engine in sqlite and postgres, and versions is the table that counts them.
func (s *Store) AddTables(ctx context.Context, files fs.FS, dir, versions string) error {
	var locked []goose.ProviderOption
	dialect, engine := goose.DialectSQLite3, "sqlite"
	if s.engine.tells() {
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return err
		}
		dialect, engine, locked = goose.DialectPostgres, "postgres", []goose.ProviderOption{goose.WithSessionLocker(locker)}
	}
	files, err := fs.Sub(files, dir+"/"+engine)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(dialect, s.write, files, append(locked, goose.WithTableName(versions))...)
	if err != nil {
		return err
	}
	return s.retryMigration(ctx, func() error {
		current, target, err := p.GetVersions(ctx)
		if err == nil && current > target {
			err = fmt.Errorf("%w: %d, not %d", ErrNewerSchema, current, target)
		}
		if err == nil && current < target {
			_, err = p.Up(ctx)
		}
		return err
	})
}

// readable reports whether a binary whose schema is known can work with a newer one: each
// migration after it has a row in schema_steps, and none of these asks for a newer binary. A migration
// stores its row itself, so that no other program has to know it.
func readable(ctx context.Context, db *sql.DB, known int64) (bool, error) {
	// The number is this program's own, and the engines spell placeholders differently.
	query := fmt.Sprintf(`SELECT count(*) FROM goose_db_version AS g WHERE g.version_id > %[1]d AND g.is_applied
		AND NOT EXISTS (SELECT 1 FROM schema_steps AS s WHERE s.version = g.version_id AND s.oldest <= %[1]d)`, known)
	var unfit int64
	err := db.QueryRowContext(ctx, query).Scan(&unfit)
	return err == nil && unfit == 0, err
}
