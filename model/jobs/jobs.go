// SPDX-License-Identifier: Apache-2.0

// Package jobs keeps counterfactual runs as jobs in Postgres, for the workers of several processes.
//
// What is to be run stands in the table runs of storage, and goes into it in one
// transaction with its job, which names it. The record of a run that is under way is
// kept beside it after every answer, so that a worker that dies leaves no more undone
// than the question it was asking: another one goes on with the record.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/pellucid-mcp/pellucid/model/counterfactual/run"
)

var _ run.Store = (*Queue)(nil)

// Options are what a Queue is made of. URL and Do have to be set.
type Options struct {
	// URL is that of a Postgres database which storage has migrated.
	URL string
	// Workers is how many jobs this process runs at the same time; 0 = 4.
	Workers int
	// Timeout is how long one may take; 0 = 2 minutes. One that is said to run for half
	// a minute longer has lost its worker, and is begun again.
	Timeout time.Duration
	// Do does what was put under id. A job whose context has ended is not done: it is
	// left to another worker. Where Do fails it is tried again, Attempts times in all.
	Do       func(ctx context.Context, id string, work []byte) error
	Attempts int // 0 = 5

	Log *slog.Logger // nil: nothing is logged
}

// A Queue puts jobs into a database, and works on what it finds there. It is safe for
// concurrent use.
type Queue struct {
	o      Options
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
}

// errUnavailable means that the database does not do what it should. Its own words
// stand in no error: they may quote what is stored.
var errUnavailable = errors.New("jobs: the database is not available")

// Bounds of what is done behind a caller's back.
const (
	connectWait = 15 * time.Second
	rescueAfter = 30 * time.Second    // behind Timeout
	forgetAfter = 14 * 24 * time.Hour // what no job names any more
)

// args are what river keeps of a job. What is to be run is not part of it: river
// writes arguments into its log.
type args struct {
	ID string `json:"id"`
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "counterfactual" }

// Open connects, brings river's tables up to date and begins to work.
func Open(ctx context.Context, o Options) (*Queue, error) {
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.Timeout <= 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, errors.New("jobs: the URL of the database cannot be read") // it may hold a password
	}
	c.MaxConns = int32(o.Workers + 4)
	wait, stop := context.WithTimeout(ctx, connectWait)
	defer stop()
	q := &Queue{o: o}
	if q.pool, err = pgxpool.NewWithConfig(wait, c); err == nil {
		err = q.start(ctx, wait)
	}
	if err != nil {
		if q.pool != nil {
			q.pool.Close()
		}
		o.Log.Debug("jobs", "error", err.Error())
		return nil, errUnavailable
	}
	return q, nil
}

func (q *Queue) start(ctx, wait context.Context) error {
	// River's own lines are about itself, and may hold what the database says.
	silent := slog.New(slog.DiscardHandler)
	driver := riverpgxv5.New(q.pool)
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: silent})
	if err != nil {
		return err
	}
	if err := q.migrate(wait, m); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{q: q})
	q.client, err = river.NewClient(driver, &river.Config{
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: q.o.Workers}}, Workers: workers, Logger: silent,
		JobTimeout: q.o.Timeout, RescueStuckJobsAfter: q.o.Timeout + rescueAfter, MaxAttempts: q.o.Attempts, RetryPolicy: soon{},
		FetchPollInterval: time.Second,
	})
	if err != nil {
		return err
	}
	if _, err := q.pool.Exec(wait, `DELETE FROM runs WHERE at < now() - make_interval(secs => $1)`, forgetAfter.Seconds()); err != nil {
		return err
	}
	return q.client.Start(context.WithoutCancel(ctx))
}

// migrate lets one process after the other look at river's tables.
func (q *Queue) migrate(ctx context.Context, m *rivermigrate.Migrator[pgx.Tx]) error {
	tx, err := q.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // committed already if all went well
	const lock = 0x70656c6a                       // "pelj"
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, lock); err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// soon tries again after a few seconds: a run that failed has met a provider or a
// store that was away.
type soon struct{}

// NextRetry implements river.ClientRetryPolicy.
func (soon) NextRetry(j *riverJob) time.Time {
	return time.Now().Add(time.Duration(min(1<<min(j.Attempt, 6), 60)) * time.Second)
}

// Put stores what is to be run under id, and a job for it, or neither. Another Put of
// the same id changes nothing.
func (q *Queue) Put(ctx context.Context, id string, work []byte) error {
	tx, err := q.pool.Begin(ctx)
	if err != nil {
		return errUnavailable
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // committed already if all went well
	tag, err := tx.Exec(ctx, `INSERT INTO runs (id, work) VALUES ($1, $2) ON CONFLICT DO NOTHING`, id, work)
	if err == nil && tag.RowsAffected() == 0 {
		return nil
	}
	if err == nil {
		_, err = q.client.InsertTx(ctx, tx, args{id}, nil)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return errUnavailable
	}
	return nil
}

// Waiting is how many jobs are not done, those under way included.
func (q *Queue) Waiting(ctx context.Context) (n int64, err error) {
	if q.pool.QueryRow(ctx, `SELECT count(*) FROM runs WHERE work IS NOT NULL`).Scan(&n) != nil {
		return 0, errUnavailable
	}
	return n, nil
}

// SaveRun implements run.Store.
func (q *Queue) SaveRun(ctx context.Context, id string, record []byte) error {
	_, err := q.pool.Exec(ctx, `INSERT INTO runs (id, record) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET record = excluded.record`, id, record)
	if err != nil {
		return errUnavailable
	}
	return nil
}

// LoadRun implements run.Store.
func (q *Queue) LoadRun(ctx context.Context, id string) ([]byte, error) {
	return q.load(ctx, id, `record`)
}

func (q *Queue) load(ctx context.Context, id, column string) (b []byte, err error) {
	err = q.pool.QueryRow(ctx, `SELECT `+column+` FROM runs WHERE id = $1`, id).Scan(&b)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, errUnavailable
	}
	return b, nil
}

// forget removes a run with all its records.
func (q *Queue) forget(ctx context.Context, id string) error {
	if _, err := q.pool.Exec(ctx, `DELETE FROM runs WHERE id = $1 OR starts_with(id, $1 || '/')`, id); err != nil {
		return errUnavailable
	}
	return nil
}

// Close leaves what is under way to others and ends when this process works on
// nothing, or with ctx.
func (q *Queue) Close(ctx context.Context) error {
	err := q.client.StopAndCancel(ctx)
	q.pool.Close()
	if err != nil {
		return errors.New("jobs: a job did not end in time")
	}
	return nil
}
