// SPDX-License-Identifier: Apache-2.0

package hold

import (
	"context"
	"time"
)

// A TimedStore keeps Approvals, Blocks or Exceptions: each is in force until a time, unless a person ends it before. Its
// methods may be called at the same time, also from several processes on one store. Records go with their changes, as
// in a Store.
type TimedStore[T any] interface {
	// Add stores one, unless most are in force or proposed (ErrFull), or a Block of the same source is (ErrExists).
	Add(ctx context.Context, one T, most int, evidence []byte) error
	// List returns those in force or proposed, and with all the others that are still known, the newest first.
	List(ctx context.Context, now time.Time, all bool) ([]T, error)
	// Get returns one; ErrNotFound.
	Get(ctx context.Context, id string) (T, error)
	// End ends one before its time; ErrNotFound, ErrDecided if it has ended.
	End(ctx context.Context, id, by string, now time.Time, evidence []byte) error
	// Sweep forgets what has ended, or was proposed and not confirmed, before old.
	Sweep(ctx context.Context, old time.Time) error
}

// A timed is what Approvals, Blocks and Exceptions have in common.
type timed[T any] struct {
	store    TimedStore[T]
	most     int
	remember time.Duration
	now      func() time.Time
	evidence func(T) ([]byte, error)
}

// Get returns one; ErrNotFound.
func (t *timed[T]) Get(ctx context.Context, id string) (T, error) { return t.store.Get(ctx, id) }

// List returns those in force or proposed, or all that are known, the newest first.
func (t *timed[T]) List(ctx context.Context, all bool) ([]T, error) {
	return t.store.List(ctx, t.now(), all)
}

// Sweep forgets what has ended, 30 days after.
func (t *timed[T]) Sweep(ctx context.Context) error {
	return t.store.Sweep(ctx, t.now().Add(-t.remember))
}

func (t *timed[T]) add(ctx context.Context, one T) error {
	evidence, err := recordOf(t.evidence, one)
	if err != nil {
		return err
	}
	return t.store.Add(ctx, one, t.most, evidence)
}

// end ends one, whose record is that of what end has made of it.
func (t *timed[T]) end(ctx context.Context, id, by string, end func(one *T, now time.Time)) error {
	one, err := t.store.Get(ctx, id)
	if err != nil {
		return err
	}
	now := t.now().UTC()
	end(&one, now)
	evidence, err := recordOf(t.evidence, one)
	if err != nil {
		return err
	}
	return t.store.End(ctx, id, by, now, evidence)
}
