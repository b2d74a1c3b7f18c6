// SPDX-License-Identifier: Apache-2.0

// Package storage keeps held results and blocks, pins and verdicts, and the log in SQLite or in Postgres.
//
// It is a hold.Store, a surface.PinStore and surface.Cache; its [Ledger] is a sequence.Store. The record
// of a change is stored with the change, in one transaction. Another package may keep tables of its own in the
// same database: [Store.AddTables].
package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/record/index"
	"github.com/pellucid-mcp/pellucid/record/sequence"
)

// The errors of a store, to be compared with errors.Is. Their texts hold nothing of what is stored.
// After ErrUnavailable a change may have been made or not; after the others it was not.
var (
	ErrBusy        = errors.New("the store is busy: try again later")
	ErrFull        = errors.New("the store is full")
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrNewerSchema means that a later release has migrated the store.
	ErrNewerSchema = errors.New("the store has a newer schema than this release knows")
)

// Options are the settings of a store.
type Options struct {
	// Wait is how long a change waits for other writers before it fails with
	// ErrBusy; 0 stands for 5 seconds.
	Wait time.Duration
	// Readers is the greatest number of connections that read; 0 stands for 8.
	Readers int
	// Chain authenticates records that wait for their signature; nil: a key that is public.
	Chain *sequence.ChainKey
	// Index returns the key under which the index of the log finds persons and contents. It is asked each time: a
	// process that runs on takes a new key. nil: a key that is public.
	Index func() *index.Key
	// Cache bounds the bytes of pages that the writing connection of an SQLite file keeps in
	// memory; 0 stands for 64 MiB. An import of a million attestations needs that much; a log,
	// to which records are only added, does not.
	Cache int
}

func (o Options) wait() time.Duration {
	if o.Wait <= 0 {
		return 5 * time.Second
	}
	return o.Wait
}

func (o Options) cacheKiB() int {
	if o.Cache <= 0 {
		return 64 << 10
	}
	return max(1, o.Cache>>10)
}

func (o Options) readers() int {
	if o.Readers <= 0 {
		return 8
	}
	return o.Readers
}

// Open opens the store at where, and makes or migrates it as needed: a
// "postgres://" or "postgresql://" URL, anything else the path of an SQLite file,
// which must not be on a network file system. A store that a later release has
// migrated is used if its schema says that this release can, and else refused with
// ErrNewerSchema; one of a build before the first schema is refused with ErrEarlier.
func Open(ctx context.Context, where string, o Options) (*Store, error) {
	opening := openSQLite
	if IsPostgres(where) {
		opening = openPostgres
	}
	s, err := opening(ctx, where, o)
	if err != nil {
		return nil, err
	}
	if s.chain = o.Chain; s.chain == nil {
		s.chain = sequence.NewChainKey(nil)
	}
	if s.indexKey = o.Index; s.indexKey == nil {
		public := index.NewKey(nil)
		s.indexKey = func() *index.Key { return public }
	}
	s.adds, s.changes = newWriter(s.chain), newWriter(s.chain)
	return s, nil
}

// A Store is an open database.
type Store struct {
	read, write *sql.DB // the same where the engine lets writers share
	engine      engine
	wait        time.Duration
	stmts       sync.Map // string → *sql.Stmt: what read has prepared; as many as the package has queries

	chain         *sequence.ChainKey
	indexKey      func() *index.Key
	adds, changes *writer // of records that stand alone, and of those that go with a change

	outbox atomic.Pointer[Outbox] // nil: no receiver is told what waits
}

// An engine holds the differences between SQLite and Postgres.
type engine interface {
	// rebind spells the placeholders ? of query as the engine requires.
	rebind(query string) string
	// lock keeps every other writer out until tx ends, so that numbers that are
	// assigned under it are committed in their order.
	lock(ctx context.Context, tx *sql.Tx) error
	// classify returns the error of this package that err means, and reports whether an
	// immediate retry makes sense.
	classify(err error) (sentinel error, again bool)
	// compact removes the remains of deleted rows from the files; ErrBusy if a reader
	// prevents it.
	compact(ctx context.Context, db *sql.DB) error
	// wipe removes what was just destroyed from the write-ahead file, unless a reader still needs it.
	wipe(ctx context.Context, db *sql.DB) error
	// tells reports whether the database tells other processes of a change (Store.Watch).
	tells() bool
	// keeps reports whether the driver keeps prepared statements itself. To prepare one here would cost a round trip, and
	// fail behind a pooler that gives each transaction another connection.
	keeps() bool
	// arrays reports whether an argument can be an array.
	arrays() bool
	// epoch is the query for the name of the server that answers and of its copy of the log; "": the
	// database has one copy.
	epoch() string
	// begin is a statement that every transaction which writes begins with; "": none.
	begin() string
	// derived is a statement for a transaction whose rows can be made again from others: it need not be
	// durable when it returns, as long as a lost one is lost whole; "": none.
	derived() string
	// snapshot are the options of a transaction that reads one state of the database, and statements
	// that it begins with.
	snapshot() (*sql.TxOptions, []string)
	// among is the condition that a column is one of a list of numbers, which is one argument.
	among(column string, list []int64) (condition string, arg any)
	// longRows reports whether to read a row of the table held costs as much as its body is long. Lists then read the
	// index held_rows.
	longRows() bool
	// newestOfEach is a table of rows d of decisions for which the condition holds: the newest of each group of a list, at
	// most so many. The list, as among has it, is the first argument.
	newestOfEach(condition string, most int) string
}

// Close closes the database.
func (s *Store) Close() error {
	err := s.write.Close()
	if e, ok := s.engine.(*postgresEngine); ok {
		err = errors.Join(e.apart.Close(), err)
	}
	if s.read != s.write {
		err = errors.Join(s.read.Close(), err)
	}
	return err
}

// Fail turns the error of a query or a change into one of this package.
func (s *Store) Fail(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("store: %s: %w", what, context.Cause(ctx))
	}
	sentinel, _ := s.engine.classify(err)
	if ctx.Err() != nil {
		err = errors.Join(err, context.DeadlineExceeded)
	}
	if sentinel == nil {
		sentinel = ErrUnavailable
	}
	// The cause comes from the engine. It may quote stored text, and is not shown.
	return &failure{what: what, sentinel: sentinel, cause: err}
}

// A failure says what failed. Its text does not contain the text of the engine's error, which may
// quote stored data.
type failure struct {
	what            string
	sentinel, cause error
}

// Error implements error.
func (f *failure) Error() string {
	reason := why(f.cause)
	if reason == "" {
		reason = f.sentinel.Error()
	}
	return "store: " + f.what + ": " + reason
}

// Unwrap returns the errors that a caller may compare with.
func (f *failure) Unwrap() []error { return []error{f.sentinel, f.cause} }

// A Tx is a transaction that writes.
type Tx struct {
	*sql.Tx
	engine engine
	stmts  map[string]*sql.Stmt
	writer *writer
	last   *sequence.Link // last link of the writer, whose lock tx holds then; nil: no record was added
	began  sequence.Link  // last when tx began
	outbox Outbox         // nil: no message is stored
	told   bool           // messages were stored
}

// change executes a statement, and returns how many rows it has changed.
func (t *Tx) change(ctx context.Context, query string, args ...any) (rows int64, err error) {
	var done sql.Result
	if t.engine.keeps() {
		done, err = t.ExecContext(ctx, t.engine.rebind(query), args...)
	} else {
		st := t.stmts[query]
		if st == nil {
			if st, err = t.PrepareContext(ctx, t.engine.rebind(query)); err != nil {
				return 0, err
			}
			t.stmts[query] = st
		}
		done, err = st.ExecContext(ctx, args...)
	}
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Execute executes a statement.
func (t *Tx) Execute(ctx context.Context, query string, args ...any) error {
	_, err := t.change(ctx, query, args...)
	return err
}

// EachRow calls scan for every row.
func (t *Tx) EachRow(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := t.QueryContext(ctx, t.engine.rebind(query), args...)
	return each(rows, err, scan)
}

// EachRow calls scan for every row of a query, which is prepared once.
func (s *Store) EachRow(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	if s.engine.keeps() {
		rows, err := s.read.QueryContext(ctx, s.engine.rebind(query), args...)
		return each(rows, err, scan)
	}
	st, err := s.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	return each(rows, err, scan)
}

// queryBuilt is query for a text that is put together of parts: there are too many of them to keep each one.
func (s *Store) queryBuilt(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.read.QueryContext(ctx, s.engine.rebind(query), args...)
	return each(rows, err, scan)
}

func (s *Store) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := s.stmts.Load(query); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.read.PrepareContext(ctx, s.engine.rebind(query))
	if err != nil {
		return nil, err
	}
	if other, raced := s.stmts.LoadOrStore(query, st); raced {
		st.Close()
		return other.(*sql.Stmt), nil
	}
	return st, nil
}

func each(rows *sql.Rows, err error, scan func(*sql.Rows) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Update runs f in a transaction of its own that keeps every other writer out, again
// while the engine is busy and the time to wait has not passed. f must begin anew each
// time.
func (s *Store) Update(ctx context.Context, what string, f func(*Tx) error) error {
	return s.updating(ctx, what, f, func(t *sql.Tx) error { return s.engine.lock(ctx, t) })
}

// updating is update with another way of keeping writers out.
func (s *Store) updating(ctx context.Context, what string, f func(*Tx) error, lock func(*sql.Tx) error) error {
	return s.retry(ctx, what, func() error { return s.once(ctx, f, lock) })
}

// retry does what changes the store, again while the engine is busy and the time to
// wait has not passed.
func (s *Store) retry(ctx context.Context, what string, do func() error) error {
	deadline := time.Now().Add(s.wait)
	var busy error
	waits := backoff.Waits{First: 5 * time.Millisecond, Most: 50 * time.Millisecond}
	for {
		err := do()
		if err == nil {
			return nil
		}
		if busy != nil && ctx.Err() != nil {
			err = busy // what used up the time
		}
		busy = err
		pause := waits.Next()
		if _, again := s.engine.classify(err); !again || ctx.Err() != nil || time.Now().Add(pause).After(deadline) {
			return s.Fail(ctx, what, err)
		}
		_ = backoff.Sleep(ctx, pause) // one more attempt finds out whether ctx has ended
	}
}

func (s *Store) once(ctx context.Context, f func(*Tx) error, lock func(*sql.Tx) error) error {
	t, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer t.Rollback() // does nothing after Commit
	if q := s.engine.begin(); q != "" {
		if _, err := t.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	if err := lock(t); err != nil {
		return err
	}
	w := &Tx{Tx: t, engine: s.engine, stmts: map[string]*sql.Stmt{}, writer: s.changes}
	if box := s.outbox.Load(); box != nil {
		w.outbox = *box
	}
	if err := f(w); err != nil {
		w.release(nil, false)
		return err
	}
	if err := w.closeChain(ctx); err != nil {
		w.release(nil, false)
		return err
	}
	err = t.Commit()
	w.release(err, true)
	if w.told { // also where it is not known whether the commit has succeeded
		w.outbox.Wake()
	}
	return err
}

// Chunk bounds the parameters of one statement: SQLite takes 32,766.
const Chunk = 400

// Marks returns "?,?,…" of n placeholders.
func Marks(n int) string { return strings.Repeat("?,", n-1) + "?" }

// Pad lengthens args to a power of two by repeating filler, so that lists of any
// length need few queries.
func Pad(args []any, filler any) []any {
	for n := len(args); n == 0 || n&(n-1) != 0; n++ {
		args = append(args, filler)
	}
	return args
}

// tuples returns n times the row of placeholders.
func tuples(n, width int) string {
	row := "(" + Marks(width) + ")"
	return strings.Repeat(row+",", n-1) + row
}

// stampLayout sorts as the times do and loses nothing of them.
const stampLayout = "2006-01-02T15:04:05.999999999"

// Stamp writes t; "" stands for the zero time.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(stampLayout)
}

// ParseStamp reads what Stamp has written.
func ParseStamp(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	return time.Parse(stampLayout, s)
}
