// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
)

// Asynchronous says what to do where a standby of the database is behind the primary.
const Asynchronous = `evidence is required, and the standby of the database is asynchronous: a failover would lose records that
  were acknowledged. Set synchronous_standby_names in Postgres, such as 'ANY 1 (*)', or accept it with evidence: {standby: go-on}`

// standbys refuses a database whose standby is asynchronous, where each record must outlive a failover.
func (r *Records) standbys(ctx context.Context) error {
	if r.rules.Mode != rules.Required {
		return nil
	}
	got, err := r.store.Replication(ctx)
	switch {
	case err != nil:
		return local.OpenError(err)
	case !got.Asynchronous():
		return nil
	case r.rules.Standby == rules.StandbyWaits:
		return exit.With(exit.Config, errors.New("store: "+Asynchronous))
	}
	r.say.Warn("the standby of the database is asynchronous: a failover may lose records that were acknowledged")
	return nil
}

// StandbyMissing reports whether records need a synchronous standby of the database, and none is there.
func (r *Records) StandbyMissing() bool { return r.missing.Load() }

// standbyEvery is how often the standbys are looked at.
const standbyEvery = 2 * time.Second

// watchStandbys follows whether a synchronous standby is connected. Where none is, records wait for one,
// or are durable in the primary alone, as the rules say.
func (r *Records) watchStandbys(ctx context.Context) {
	for {
		got, err := r.store.Replication(ctx)
		if err == nil && got == nil {
			return // SQLite
		}
		missing, alone := got.Missing(), r.rules.Standby == rules.StandbyMissing
		if err == nil && alone {
			err = r.store.CommitAlone(ctx, missing)
		}
		if err == nil && missing != r.missing.Swap(missing) {
			switch {
			case missing && alone:
				r.say.Warn("no synchronous standby of the database is connected: records are in the primary alone until one is")
			case missing:
				r.say.Error("no synchronous standby of the database is connected: calls whose records must be durable fail until one is")
			default:
				r.say.Info("a synchronous standby of the database is connected again")
			}
		}
		if backoff.Sleep(ctx, standbyEvery) != nil {
			return
		}
	}
}
