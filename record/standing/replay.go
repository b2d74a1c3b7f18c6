// SPDX-License-Identifier: Apache-2.0

package standing

import (
	"context"
	"errors"
	"fmt"

	"github.com/pellucid-mcp/pellucid/record/ledger"
	"github.com/pellucid-mcp/pellucid/record/trust"
)

// errRecord means that a record of the log cannot be read: the scores behind it are
// not known.
var errRecord = errors.New("standing: a record of the log cannot be read")

// A Reader reads the records of a log: a ledger.Source, or an export.
type Reader interface {
	Entries(ctx context.Context, first int64, n int) ([][]byte, error)
}

// stride is how many records are read at once: a bundle of tlog-tiles.
const stride = 256

// read calls f with each statement of a log from one size to another.
func read(ctx context.Context, src Reader, from, to int64, f func(*ledger.Statement)) error {
	for from < to {
		list, err := src.Entries(ctx, from, int(min(stride-from%stride, to-from)))
		if err != nil {
			return fmt.Errorf("standing: read record %d: %w", from, err)
		}
		for _, raw := range list {
			st, err := ledger.UnverifiedStatement(raw)
			if err != nil {
				return fmt.Errorf("%w: record %d", errRecord, from)
			}
			f(st)
			if from++; from == to {
				break
			}
		}
		if len(list) == 0 {
			return fmt.Errorf("standing: read record %d: %w", from, ledger.ErrNotFound)
		}
	}
	return nil
}

// Replay applies the first size records of a log. o nil stands for the options that
// the last record to name any says are in force. Signatures are not checked:
// ledger.Verify does that.
func Replay(ctx context.Context, src Reader, size int64, o *trust.Options) (*trust.State, error) {
	if o == nil {
		found, err := Latest(ctx, src, size)
		if err != nil {
			return nil, err
		}
		o = &found
	}
	state := trust.New(*o)
	return state, apply(ctx, src, 0, size, state)
}

// apply applies the records of a log from one size to another.
func apply(ctx context.Context, src Reader, from, to int64, s *trust.State) error {
	return read(ctx, src, from, to, func(st *ledger.Statement) {
		if e, counts := Of(&st.Event); counts {
			s.Apply(e)
		}
	})
}

// Latest are the options that the last record to name any says are in force; the
// default ones if none does.
func Latest(ctx context.Context, src Reader, size int64) (o trust.Options, err error) {
	for to := size; to > 0; {
		from, found := (to-1)/stride*stride, false
		err := read(ctx, src, from, to, func(st *ledger.Statement) {
			if named, ok := optionsOf(&st.Event); ok {
				o, found = named, true
			}
		})
		if err != nil || found {
			return o, err
		}
		to = from
	}
	return o, nil
}
