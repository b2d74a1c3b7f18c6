// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/model/guard"
	"github.com/pellucid-mcp/pellucid/model/jobs"
	"github.com/pellucid-mcp/pellucid/platform/listen"
	"github.com/pellucid-mcp/pellucid/storage"
)

// guardWithWorkers makes the guard, and where there are to be workers has them begin. done
// ends them.
func guardWithWorkers(ctx context.Context, o guard.Options, workers int, db string, log *slog.Logger) (g *guard.Guard, done func(), err error) {
	if workers == 0 {
		if g, err = guard.New(o); err != nil {
			return nil, nil, exit.With(exit.Config, err)
		}
		return g, func() {}, nil
	}
	switch {
	case !storage.IsPostgres(db):
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs a database that is Postgres (--db)"))
	case !o.Audit:
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs audit mode: a client waits for what is enforced"))
	case o.Key.IsZero() && o.AWS == nil:
		return nil, nil, exit.With(exit.Config, errors.New("guard: --workers needs a key of the guard's own: clients' are never stored"))
	}
	queue := &auditQueue{ready: make(chan struct{})}
	o.Audits = queue
	if g, err = guard.New(o); err != nil {
		return nil, nil, exit.With(exit.Config, err)
	}
	most := 2 * max(time.Duration(o.Millis)*time.Millisecond, time.Minute)
	queue.Queue, err = jobs.Open(ctx, jobs.Options{URL: db, Workers: workers, Timeout: most, Log: log,
		Do: func(ctx context.Context, id string, work []byte) error {
			select {
			case <-queue.ready:
				return g.RunAudit(ctx, id, work, queue)
			case <-ctx.Done(): // it could not be opened after all
				return ctx.Err()
			}
		}})
	if err != nil {
		return nil, nil, exit.With(exit.Unreachable, err)
	}
	close(queue.ready)
	return g, func() {
		wait, stop := context.WithTimeout(context.Background(), listen.ShutdownWait)
		defer stop()
		if err := queue.Close(wait); err != nil {
			log.Warn("the guard stopped before a counterfactual run had ended: another worker will repeat it")
		}
	}, nil
}

// auditQueue is a queue whose workers may begin before it is known.
type auditQueue struct {
	*jobs.Queue
	ready chan struct{}
}
