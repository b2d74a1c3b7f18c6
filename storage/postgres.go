// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

func openPostgres(ctx context.Context, where string, o Options) (*Store, error) {
	config, err := pgx.ParseConfig(where)
	if err != nil {
		// The cause repeats the URL, which may hold a password.
		return nil, errors.New("store: open: malformed Postgres URL")
	}
	config.RuntimeParams["application_name"] = applicationName
	config.RuntimeParams["synchronous_commit"] = "on"
	// A transaction that gets no lock begins again until the time is over. The short timeout is for callers who wait less
	// than o.wait: their error is that of a lock, and not of a context that has ended.
	config.RuntimeParams["lock_timeout"] = strconv.FormatInt(max(1, min(o.wait()/2, 450*time.Millisecond).Milliseconds()), 10)
	db := stdlib.OpenDB(*config)
	db.SetMaxOpenConns(o.readers())
	db.SetMaxIdleConns(o.readers())
	apart := stdlib.OpenDB(*config)
	apart.SetMaxOpenConns(1)
	s := &Store{read: db, write: db, engine: &postgresEngine{config: config, apart: apart}, wait: o.wait()}
	locker, err := lock.NewPostgresSessionLocker()
	if err == nil {
		err = migrate(ctx, db, goose.DialectPostgres, "postgres", goose.WithSessionLocker(locker))
	}
	if err != nil {
		db.Close()
		apart.Close()
		return nil, s.failOpen(ctx, err)
	}
	return s, nil
}

// applicationName is what Postgres calls the connections.
const applicationName = "pellucid"

// A postgresEngine is an engine for a Postgres database.
type postgresEngine struct {
	config *pgx.ConnConfig
	apart  *sql.DB     // a connection that no commit uses: all the others may be waiting for a standby
	alone  atomic.Bool // a commit waits for no standby
}

// rebind numbers the placeholders. No query of this package has a ? in a literal.
func (*postgresEngine) rebind(query string) string {
	b := make([]byte, 0, len(query)+16)
	for n := 1; ; n++ {
		part, rest, more := strings.Cut(query, "?")
		if b = append(b, part...); !more {
			return string(b)
		}
		b, query = strconv.AppendInt(append(b, '$'), int64(n), 10), rest
	}
}

// lock takes a lock that does not block readers, and that ends after the commit, on a table that only migrations change.
func (*postgresEngine) lock(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, `LOCK TABLE schema_steps IN EXCLUSIVE MODE`); err != nil {
		return err
	}
	// A plan that was made when a table was empty is a bad one soon after.
	_, err := tx.ExecContext(ctx, `SET LOCAL plan_cache_mode = force_custom_plan`)
	return err
}

func (e *postgresEngine) classify(err error) (error, bool) {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return ErrUnavailable, false // the connection, or a driver's complaint
	}
	switch {
	case said.Code == "55P03", said.Code == "40001", said.Code == "40P01": // lock timeout, serialization, deadlock
		return ErrBusy, true
	case said.Code == "57014" && e.alone.Load(): // CommitAlone has met the statement after the wait that it ends
		return ErrBusy, true
	case said.Code == "53300": // too many connections
		return ErrBusy, true
	case said.Code == "53100": // disk full
		return ErrFull, false
	}
	return ErrUnavailable, false
}

func (*postgresEngine) compact(context.Context, *sql.DB) error { return nil }

// wipe does nothing: autovacuum and later rows overwrite what was deleted.
func (*postgresEngine) wipe(context.Context, *sql.DB) error { return nil }

func (*postgresEngine) tells() bool { return true }

func (*postgresEngine) keeps() bool { return true }

func (*postgresEngine) arrays() bool { return true }

// epoch changes where another server answers, or the server has started anew, and where the tables
// were made again by a restore.
func (*postgresEngine) epoch() string {
	return `SELECT pg_postmaster_start_time()::text || ' ' || 'ledger_head'::regclass::oid::text`
}

// begin is what a transaction begins with.
func (e *postgresEngine) begin() string {
	if e.alone.Load() {
		return `SET LOCAL synchronous_commit = local`
	}
	return ""
}

func (*postgresEngine) derived() string { return `SET LOCAL synchronous_commit = off` }

// snapshot: a plan that was made for other arguments, and compiling one, cost more than the query.
func (*postgresEngine) snapshot() (*sql.TxOptions, []string) {
	return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		[]string{`SET LOCAL plan_cache_mode = force_custom_plan`, `SET LOCAL jit = off`}
}

func (*postgresEngine) among(column string, list []int64) (string, any) {
	return column + ` = ANY (?)`, list
}

func (*postgresEngine) longRows() bool { return false }

func (*postgresEngine) newestOfEach(condition string, most int) string {
	return `(SELECT n.* FROM unnest(?::bigint[]) AS g(id), LATERAL (SELECT d.at, d.idx, d.grp FROM decisions d
		WHERE d.grp = g.id AND ` + condition + ` ORDER BY d.at DESC, d.idx DESC LIMIT ` + strconv.Itoa(most) + `) AS n)`
}
