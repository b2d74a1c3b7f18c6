// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/boundary/rules"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/platform/terminal"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// logs looks at the log of each store: whether it goes on, and whether this machine could carry it on.
func (x *examiner) logs(ctx context.Context, dir *state.Dir, cfg *rules.Rules) {
	for _, where := range x.stores {
		if dir == nil {
			return
		}
		ctx, stop := context.WithTimeout(ctx, maxWait)
		x.logOf(ctx, dir, cfg, where)
		stop()
	}
}

// logOf looks at the log of a store of this release: opening another would change it.
func (x *examiner) logOf(ctx context.Context, dir *state.Dir, cfg *rules.Rules, where string) {
	if v, err := storage.Inspect(ctx, where); err != nil || v.Current != v.Known {
		return
	}
	s, err := local.OpenStore(ctx, where, storage.Options{}, func() error { return fs.ErrNotExist })
	if err != nil {
		return
	}
	defer s.Close()
	l, name := s.Ledger(), install.StoreName(where)
	if cfg != nil && cfg.Evidence.Mode == rules.Required {
		x.standby(ctx, s, name)
	}
	head, err := l.Head(ctx)
	switch {
	case errors.Is(err, sequence.ErrNoLog):
		return
	case err != nil:
		x.report.add("log", Failed, "%s: %v", name, err)
		return
	case head.Stop != nil:
		x.report.add("log", Failed, "%s: stopped on %s: the database has %d records of a log of which a %s has seen %d: "+
			"bring back the database that has them all, or see docs/evidence.md, \"When the database has lost a part of the log\"",
			name, head.Stop.At.Format(time.RFC3339), head.Size, head.Stop.Reason, head.Stop.Size)
		return
	}
	x.lost(ctx, dir, l, head, name)
	x.killedProcesses(dir, head, name)
	x.still(ctx, l, head, name)
	x.keyOf(dir, cfg, head, name, storage.IsPostgres(where))
}

// lost compares the log with the largest checkpoint that processes of this state directory have seen.
func (x *examiner) lost(ctx context.Context, dir *state.Dir, l *storage.Ledger, head sequence.Head, name string) {
	_, seen, err := (&sequence.Seen{Dir: dir}).Largest(head.Origin)
	if err != nil {
		x.report.add("log", Failed, "%s: %v", name, err)
		return
	}
	switch wrong, err := sequence.Contradicts(ctx, l, head, seen); {
	case err != nil:
		x.report.add("log", Failed, "%s: the log cannot be compared with what was seen of it: %v", name, err)
	case wrong:
		x.report.add("log", Failed, "%s: the database has lost a part of the log: this machine has seen %d records of it", name, seen.Size)
	}
}

// killedProcesses reports processes that were killed before they had written their last records. Once the log has a record
// of them, it is silent.
func (x *examiner) killedProcesses(dir *state.Dir, head sequence.Head, name string) {
	killed, err := install.Killed(dir, head.Origin)
	switch {
	case err != nil:
		x.report.add("log", Failed, "%s: %v", name, err)
	case len(killed) > 0:
		x.report.add("log", Warning, "%s: %d processes that record best-effort were killed: the records of the last 50 ms of each may be missing", name, len(killed))
	}
}

// still says since when records wait, by the clock of the process that stored the oldest of them.
func (x *examiner) still(ctx context.Context, l *storage.Ledger, head sequence.Head, name string) {
	age, err := l.Still(ctx, time.Now())
	switch {
	case err != nil:
		x.report.add("log", Failed, "%s: %v", name, err)
		return
	case age > 0:
		x.report.add("log", Failed, "%s: stands still: records have been waiting for %s: no process that has its key adds them", name, age.Round(time.Second))
		return
	}
	x.report.add("log", OK, "%s: %s", name, terminal.Plural(int(head.Size), "record"))
}

// keyOf says whether the key of the log is here.
func (x *examiner) keyOf(dir *state.Dir, cfg *rules.Rules, head sequence.Head, name string, shared bool) {
	var given *ledger.Signer
	if cfg != nil {
		given = cfg.Evidence.Signer()
	}
	keys, err := local.Keyring(dir, given)
	if err == nil {
		_, err = keys.Find(head.Origin, head.Signer)
	}
	switch {
	case errors.Is(err, sequence.ErrNoKey) && shared:
		x.report.add("log key", Failed, "%s: the key of the log is not here: this machine cannot carry the log on, and up refuses to start: %s", name, install.SameKey)
	case errors.Is(err, sequence.ErrNoKey):
		x.report.add("log key", Warning, "%s: the key of the log is not here: this machine cannot carry the log on", name)
	case err != nil:
		x.report.add("log key", Failed, "%s: %v", name, err)
	default:
		x.report.add("log key", OK, "%s: here", name)
	}
}

// standby says whether a failover of the database could lose records that were acknowledged.
func (x *examiner) standby(ctx context.Context, s *storage.Store, name string) {
	switch r, err := s.Replication(ctx); {
	case err != nil:
		x.report.add("standby", Failed, "%s: %v", name, err)
	case r == nil, r.Standbys == 0 && !r.Waits:
	case r.Asynchronous():
		x.report.add("standby", Failed, "%s: %s", name, install.Asynchronous)
	case r.Missing():
		x.report.add("standby", Failed, "%s: no synchronous standby is connected: records wait for one, or are in the primary alone (evidence.standby)", name)
	default:
		x.report.add("standby", OK, "%s: synchronous", name)
	}
}
