// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

type riverJob = rivertype.JobRow

// worker is what river calls for each job.
type worker struct {
	river.WorkerDefaults[args]
	q *Queue
}

// errFailed is all that river is told, and keeps, of what went wrong.
var errFailed = errors.New("the run has failed")

// Work implements river.Worker.
func (w *worker) Work(ctx context.Context, j *river.Job[args]) error {
	work, err := w.q.load(ctx, j.Args.ID, `work`)
	if err == nil && work == nil {
		return nil // done, by a worker that died before it could say so
	}
	if err == nil {
		err = w.q.o.Do(ctx, j.Args.ID, work)
	}
	switch {
	case err == nil:
		return w.q.forget(context.WithoutCancel(ctx), j.Args.ID)
	case ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return river.JobSnooze(0) // this process ends: another goes on, and no attempt is lost
	case j.Attempt >= j.MaxAttempts:
		w.q.o.Log.Error("a counterfactual run failed too often: no further attempt is made", "run", j.Args.ID, "attempts", j.Attempt)
		return errors.Join(errFailed, w.q.forget(context.WithoutCancel(ctx), j.Args.ID))
	}
	w.q.o.Log.Warn("a counterfactual run failed: the next attempt follows", "run", j.Args.ID, "attempt", j.Attempt)
	return errFailed
}
