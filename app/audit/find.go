// SPDX-License-Identifier: Apache-2.0

// Package audit answers what an operator asks of the record of decisions: where a record stands, and whether a stored log holds.
package audit

import (
	"context"
	"errors"
	"time"

	"github.com/pellucid-mcp/pellucid/app/install"
	"github.com/pellucid-mcp/pellucid/app/local"
	"github.com/pellucid-mcp/pellucid/platform/backoff"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// errNoRecord says that the log has no record of an id.
var errNoRecord = errors.New("ledger: no record has this id")

// Find returns the record of an id. One that was stored this moment is integrated first,
// here or by the process that has the key.
func Find(ctx context.Context, l *storage.Ledger, dir *state.Dir, id ledger.ID) (e sequence.Entry, err error) {
	if e, err = l.Get(ctx, id); !errors.Is(err, ledger.ErrNotFound) {
		return e, err
	}
	seq, err := local.Carrier(l, dir, nil)
	if err != nil {
		return e, err
	}
	for end := time.Now().Add(install.IntegrateWait); ; {
		if err := seq.Flush(ctx); err != nil && !errors.Is(err, sequence.ErrNoKey) && !errors.Is(err, sequence.ErrNoLog) {
			return e, err
		}
		n, waiting := l.Waiting(ctx, 1) // first: another process may add the records in between
		if e, err = l.Get(ctx, id); !errors.Is(err, ledger.ErrNotFound) {
			return e, err
		}
		switch {
		case waiting != nil:
			return e, waiting
		case n == 0:
			return e, errNoRecord
		case time.Now().After(end):
			return e, errors.New("ledger: no record of the log has this id yet: some records wait until a process with the log's key adds them")
		}
		if err := backoff.Sleep(ctx, 100*time.Millisecond); err != nil {
			return e, err
		}
	}
}
