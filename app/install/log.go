// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/pellucid-mcp/pellucid/app/exit"
	"github.com/pellucid-mcp/pellucid/grounding/ground"
	"github.com/pellucid-mcp/pellucid/platform/state"
	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/sequence"
	"github.com/pellucid-mcp/pellucid/storage"
)

// ErrNoLog says that there is no log of evidence.
var ErrNoLog = errors.New("ledger: there is no log yet: nothing was ever recorded")

// WithLog calls do with the log of the database as it is.
func (d Database) WithLog(do func(context.Context, *storage.Ledger, *state.Dir) error) error {
	err := d.withStore(func(ctx context.Context, dir *state.Dir, s *storage.Store) error {
		return do(ctx, s.Ledger(), dir)
	})
	switch {
	case errors.Is(err, ErrNoStore):
		return fmt.Errorf("%w: %w", ErrNoLog, err)
	case errors.Is(err, sequence.ErrNoLog):
		return ErrNoLog
	case errors.Is(err, ground.ErrUnavailable), errors.Is(err, ground.ErrBusy):
		return exit.With(exit.Unreachable, err)
	}
	return err
}

// WithIntegratedLog calls do with the log of the database, once the records that wait are
// part of it. Where the key is not here, or another process carries the log on, do gets the
// log without them.
func (d Database) WithIntegratedLog(do func(context.Context, *storage.Ledger, *state.Dir) error) error {
	return d.WithLog(func(ctx context.Context, l *storage.Ledger, dir *state.Dir) error {
		seq, err := Carrier(l, dir, nil)
		if err != nil {
			return err
		}
		// The process that holds the lease does so otherwise, and verify says whether what
		// is stored fits together.
		_ = seq.Flush(ctx)
		return do(ctx, l, dir)
	})
}

// Carrier carries a log on for a verb, with a key that is given or those of the installation.
func Carrier(l *storage.Ledger, dir *state.Dir, given *ledger.Signer) (*sequence.Sequencer, error) {
	keys, err := Keyring(dir, given)
	if err != nil {
		return nil, err
	}
	return sequence.New(sequence.Options{Store: l, Keys: keys, Chain: l.Chain(), Seen: &sequence.Seen{Dir: dir}}), nil
}

// Keyring finds the keys of a log: the one that is given, those of the state directory, and those that
// replicas share.
func Keyring(dir *state.Dir, given *ledger.Signer) (*sequence.Keyring, error) {
	out := &sequence.Keyring{Dir: dir, Given: given}
	if os.Getenv(KeyVar) == "" {
		return out, nil
	}
	keys, err := Keys(dir)
	if err != nil {
		return nil, err
	}
	out.Shared = Secrets(keys)
	return out, nil
}

// IntegrateWait is how long a verb waits for another process that carries the log on: longer
// than its lease lasts where it has died.
const IntegrateWait = 5 * time.Second
