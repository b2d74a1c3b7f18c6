// SPDX-License-Identifier: Apache-2.0

package hold_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pellucid-mcp/pellucid/record/hold"
)

// A sharedStore is a store that another process writes to.
type sharedStore struct {
	hold.Store
	released bool
	taken    int
}

func (s *sharedStore) IsReleased(context.Context, hold.Digest, time.Time) (bool, error) {
	return s.released, nil
}

func (s *sharedStore) TakeHeld(context.Context, hold.Digest, time.Time) (hold.Item, error) {
	if !s.released {
		return hold.Item{}, hold.ErrNotFound
	}
	s.released = false
	s.taken++
	body := []byte("result")
	return hold.Item{Body: body, Digest: sha256.Sum256(body)}, nil
}

// TestTakeAtOnce: what another process has just released is there for the next call,
// however shortly before another call has found nothing. Else the server would be asked
// to do again what it has done.
func TestTakeAtOnce(t *testing.T) {
	s := &sharedStore{}
	now := time.Now()
	q := hold.New(s, hold.Options{Now: func() time.Time { return now }})
	for i := range 3 {
		if _, ok := q.Take(t.Context(), hold.Digest{1}); ok {
			t.Error("taken before it was released")
		}
		s.released = true
		if _, ok := q.Take(t.Context(), hold.Digest{1}); !ok || s.taken != i+1 {
			t.Error("missed right after it was released")
		}
	}
}

// A sweptStore counts sweeps; every second one fails.
type sweptStore struct {
	hold.Store
	n int
}

func (s *sweptStore) SweepHeld(context.Context, time.Time, time.Time, func(hold.Item) ([]byte, error)) (int, error) {
	if s.n++; s.n%2 == 0 {
		return 0, errors.New("busy")
	}
	return 0, nil
}

// TestKeepSwept: a queue is swept at once and at every interval, until the context ends.
func TestKeepSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, failed := &sweptStore{}, 0
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Hour+time.Minute)
		defer stop()
		hold.New(s, hold.Options{}).KeepSwept(ctx, hold.SweepEvery, func(error) { failed++ })
		if s.n != 4 || failed != 2 {
			t.Errorf("swept %d times, %d failed", s.n, failed)
		}
	})
}

func TestNewID(t *testing.T) {
	a, b := hold.NewID(), hold.NewID()
	if !hold.ValidID(a) || !hold.ValidID(b) || a == b {
		t.Errorf("%s, %s", a, b)
	}
}
