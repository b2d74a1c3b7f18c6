// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// Changed says what another process may have changed, and this process may hold an older copy of.
type Changed string

// The changes that are told.
const (
	PinsChanged       Changed = "pins"
	BlocksChanged     Changed = "blocks"
	ExceptionsChanged Changed = "exceptions"
	AnyChanged        Changed = "any" // some may have been missed: all copies are to be read again
)

// channel is that of NOTIFY, one for each database.
const channel = "pellucid"

// tell has Postgres tell every process of a change when the transaction is committed. A commit that tells
// something waits for others that do, so it is for rare changes alone.
func (t *Tx) tell(ctx context.Context, what Changed) error {
	if !t.engine.tells() {
		return nil
	}
	return t.Execute(ctx, `SELECT pg_notify('`+channel+`', ?)`, string(what))
}

// Times of Watch.
const (
	testWait  = 3 * time.Second  // for a notification of this process's own
	testPause = 30 * time.Second // between two tests of a connection that is silent
	poolPause = time.Minute      // before another attempt where notifications do not arrive
)

var errEaten = errors.New("storage: notifications do not arrive")

// Watch calls changed for every change that a process makes, until ctx ends; other ways to learn of a
// change, by looking now and then, are needed beside it: an SQLite store tells nothing, and neither does a
// Postgres behind a pooler that gives each transaction another connection. Watch finds that out, and logs
// it once. changed must not block.
func (s *Store) Watch(ctx context.Context, log *slog.Logger, changed func(Changed)) {
	e, ok := s.engine.(*postgresEngine)
	if !ok {
		return
	}
	waits := backoff.Waits{First: 200 * time.Millisecond, Most: 5 * time.Second}
	eaten := false
	for ctx.Err() == nil {
		err := s.watch(ctx, e.config, func() {
			waits.Reset()
			if eaten {
				log.Info("the database tells of changes again")
			}
			eaten = false
			changed(AnyChanged)
		}, changed)
		pause := waits.Next()
		if errors.Is(err, errEaten) {
			if !eaten {
				log.Warn("the database does not tell of changes: a pooler in transaction mode may stand in between. Changes that other replicas make take effect within about a second")
			}
			eaten, pause = true, poolPause
		}
		_ = backoff.Sleep(ctx, pause)
	}
}

// watch is one connection of Watch. arrived is called once notifications arrive.
func (s *Store) watch(ctx context.Context, config *pgx.ConnConfig, arrived func(), changed func(Changed)) error {
	dial, stop := context.WithTimeout(ctx, s.wait+testWait)
	defer stop()
	c, err := pgx.ConnectConfig(dial, config.Copy())
	if err != nil {
		return err
	}
	defer func() {
		bye, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		c.Close(bye)
	}()
	if _, err := c.Exec(dial, "LISTEN "+channel, pgx.QueryExecModeSimpleProtocol); err != nil {
		return err
	}
	for first := true; ; first = false {
		if err := s.test(ctx, c, changed); err != nil {
			return err
		}
		if first {
			arrived()
		}
		for end := time.Now().Add(testPause); time.Now().Before(end); {
			wait, stop := context.WithDeadline(ctx, end)
			n, err := c.WaitForNotification(wait)
			late := wait.Err() != nil
			stop()
			switch {
			case err == nil:
				if ch, ok := parseChange(n.Payload); ok {
					changed(ch)
				}
			case ctx.Err() != nil || !late:
				return err
			}
		}
	}
}

// test sends a notification over another connection and waits for it.
func (s *Store) test(ctx context.Context, c *pgx.Conn, changed func(Changed)) error {
	own := "test " + rand.Text()
	ctx, stop := context.WithTimeout(ctx, s.wait+testWait)
	defer stop()
	if _, err := s.write.ExecContext(ctx, `SELECT pg_notify('`+channel+`', $1)`, own); err != nil {
		return err
	}
	wait, stop := context.WithTimeout(ctx, testWait)
	defer stop()
	for {
		n, err := c.WaitForNotification(wait)
		switch {
		case err != nil && wait.Err() != nil && ctx.Err() == nil:
			return errEaten
		case err != nil:
			return err
		case n.Payload == own:
			return nil
		}
		if ch, ok := parseChange(n.Payload); ok {
			changed(ch)
		}
	}
}

// parseChange reads a notification. Any process that may use the database may send any.
func parseChange(s string) (Changed, bool) {
	switch what := Changed(s); what {
	case PinsChanged, BlocksChanged, ExceptionsChanged:
		return what, true
	}
	return "", false
}
