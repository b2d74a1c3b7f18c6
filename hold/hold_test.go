package hold_test

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/pellucid-mcp/pellucid/hold"
)

// A slowStore has one released item, and takes its time to count it.
type slowStore struct {
	hold.Store
	counting chan struct{} // somebody counts
	counted  chan struct{} // closed: the count may end
}

func (s *slowStore) CountReleased(ctx context.Context, _ time.Time) (int, error) {
	s.counting <- struct{}{}
	select {
	case <-s.counted:
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (s *slowStore) TakeHeld(_ context.Context, call hold.Digest, _ time.Time) (hold.Item, error) {
	if call != (hold.Digest{1}) {
		return hold.Item{}, hold.ErrNotFound
	}
	body := []byte("result")
	return hold.Item{Body: body, Digest: sha256.Sum256(body)}, nil
}

// TestTakeWhileLooking: a released result is found while another call looks whether
// there is one, and after a call that looked was given up. Else the server would be asked
// to do again what it has done.
func TestTakeWhileLooking(t *testing.T) {
	s := &slowStore{counting: make(chan struct{}, 9), counted: make(chan struct{})}
	q := hold.New(s, hold.Options{})
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan bool)
	look := func(ctx context.Context) { _, ok := q.Take(ctx, hold.Digest{2}); done <- ok }

	go look(ctx)
	<-s.counting
	if _, ok := q.Take(t.Context(), hold.Digest{1}); !ok {
		t.Error("missed while another call was looking")
	}
	giveUp()
	if <-done {
		t.Error("another call's result was taken")
	}
	close(s.counted)
	if _, ok := q.Take(t.Context(), hold.Digest{1}); !ok {
		t.Error("missed after a call was given up")
	}
}
